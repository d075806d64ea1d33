"""What models this server offers: their names, what client programs call them, and who provides them.

Read by `settings.py` alone, which knows what the operator has set; everybody else reads the setting `VOICE_MODELS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Card = dict[str, Any]
"""An entry of `VOICE_MODELS` (`voiceapp.engines.catalogue.Card`)."""

VOICE = "voice"
"""Our own conversation."""
REALTIME_ALIASES = (
    "qwen3.8-omni-flash-realtime",
    "qwen3.5-omni-flash-realtime",
    "qwen3.5-omni-plus-realtime",
    "qwen3-omni-flash-realtime",
    "qwen-omni-turbo-realtime",
    "qwen-audio-3.0-realtime-plus",
    "qwen-audio-3.0-realtime-flash",
    "gpt-realtime",
    "gpt-4o-realtime-preview",
)
CHAT_ALIASES = (
    "qwen-plus",
    "qwen-plus-latest",
    "qwen-turbo",
    "qwen-turbo-latest",
    "qwen-max",
    "qwen-max-latest",
    "qwen-flash",
    "qwen3-max",
    "qwen-vl-plus",
    "qwen-vl-max",
    "qwen3-vl-plus",
    "gpt-3.5-turbo",
    "gpt-4o",
    "gpt-4o-mini",
)
"""Names that client programs have built in: those of the first chat model."""
IMAGE_ALIASES = ("qwen-image", "wanx-v1", "wanx2.1-t2i-turbo", "wan2.2-t2i-flash", "dall-e-3", "gpt-image-1")

EMBEDDERS: dict[str, Card] = {
    "text-embedding-v4": {
        "options": {
            "dimensions": [2048, 1536, 1024, 768, 512, 256, 128, 64],
            "default_dimension": 1024,
            "has_instruct": True,
        }
    },
    "text-embedding-v3": {"options": {"dimensions": [1024, 768, 512], "default_dimension": 1024}},
    "text-embedding-async-v2": {
        "aliases": ["text-embedding-async-v1"],
        "options": {"dimensions": [1536], "default_dimension": 1536},
    },
    "text-embedding-3-small": {
        "aliases": ["text-embedding-ada-002"],
        "options": {"dimensions": [1536, 1024, 768, 512, 256, 128, 64], "default_dimension": 1536},
    },
}
"""One engine under the names, and with the dimensions, that clients know."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server elsewhere; without a `base_url` there is none."""

    base_url: str
    api_key: str
    model: str
    """Its own name for its model."""
    timeout_s: float | None = None

    def __bool__(self) -> bool:
        return bool(self.base_url)

    @property
    def options(self) -> dict[str, Any]:
        """What an engine needs to know to reach it."""
        found: dict[str, Any] = {"base_url": self.base_url, "api_key": self.api_key, "model": self.model}
        return found if self.timeout_s is None else found | {"timeout_s": self.timeout_s}


@dataclass(frozen=True, slots=True)
class Upstream(Server):
    """A service elsewhere of the same interface as ours, and its models that draw and make films."""

    image_models: Sequence[str] = ()
    video_models: Sequence[str] = ()


def voice_cards(service: Upstream) -> list[Card]:
    """Conversation, recognition, turns and speech inside this process; no name that the `service` has for its model."""
    taken = service.model if service else ""
    return [
        {
            "name": VOICE,
            "kind": "realtime",
            "title": "Voice assistant",
            "provider": "voiceapp.engines.cascade.CascadeModel",
            "aliases": [alias for alias in REALTIME_ALIASES if alias != taken],
        },
        {
            "name": "moonshine-tiny-en",
            "kind": "asr",
            "provider": "voiceapp.engines.embedded.asr.Moonshine",
            "aliases": [
                *("whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe"),
                *("paraformer-v2", "paraformer-v1", "fun-asr", "qwen3-asr-flash-filetrans"),
            ],
        },
        {"name": "smart-turn-v3.2", "kind": "turn", "provider": "voiceapp.engines.embedded.turn.SmartTurn"},
        {
            "name": "espeak-ng",
            "kind": "tts",
            "provider": "voiceapp.engines.embedded.tts.Espeak",
            "aliases": ["tts-1", "tts-1-hd", "gpt-4o-mini-tts"],
        },
    ]


def chat_cards(server: Server, *, sees_images: bool, folder: str) -> list[Card]:
    """A server's model first, then one that runs in this process from `folder`, then the built-in assistant."""
    cards: list[Card] = []
    if server:
        cards.append(
            {
                "name": server.model or "default",
                "kind": "chat",
                "provider": "voiceapp.engines.openai.chat.OpenAIChat",
                "options": {**server.options, "sees_images": sees_images},
            }
        )
    if folder:
        cards.append(
            {
                "name": Path(folder).name or "local",
                "kind": "chat",
                "provider": "voiceapp.engines.genai.chat.GenaiChat",
                "options": {"folder": folder},
            }
        )
    cards.append(
        {
            "name": "embedded-retrieval",
            "kind": "chat",
            "provider": "voiceapp.engines.embedded.chat.RetrievalAssistant",
        }
    )
    cards[0]["aliases"] = [alias for alias in CHAT_ALIASES if alias != cards[0]["name"]]
    return cards


def retrieval_cards(embedding: Server, rerank: Server, *, rerank_shape: str) -> list[Card]:
    """Embedding and reranking, inside this process or by servers."""
    embedder = "openai.embedding.OpenAIEmbedder" if embedding else "embedded.embedder.MiniLMEmbedder"
    reranker = "openai.rerank.OpenAIReranker" if rerank else "embedded.rerank.FusedReranker"
    reaching = embedding.options if embedding else {}
    return [
        *(
            {
                "name": name,
                "kind": "embedding",
                "provider": f"voiceapp.engines.{embedder}",
                **card,
                "options": {**card["options"], **reaching},
            }
            for name, card in EMBEDDERS.items()
        ),
        {
            "name": "qwen3-rerank",
            "kind": "rerank",
            "provider": f"voiceapp.engines.{reranker}",
            "aliases": ["gte-rerank", "gte-rerank-v2", "qwen3.7-text-rerank"],
            "options": {**rerank.options, "shape": rerank_shape} if rerank else {},
        },
    ]


def upstream_cards(service: Upstream) -> list[Card]:
    """What a service elsewhere offers."""
    if not service:
        return []
    realtime = {
        "name": "upstream",
        "kind": "realtime",
        "title": f"{service.model or 'Model'} (service elsewhere)",
        "provider": "voiceapp.engines.upstream.media.RelayedRealtime",
        "aliases": [service.model] if service.model not in ("", "upstream", VOICE) else [],
        "options": service.options,
    }
    tasks = (
        {
            "name": name,
            "kind": kind,
            "provider": "voiceapp.engines.upstream.tasks.RelayedTasks",
            "options": {**service.options, "model": name},
        }
        for kind, names in (("image", service.image_models), ("video", service.video_models))
        for name in names
    )
    return [realtime, *tasks]


def image_cards(server: Server, service: Upstream) -> list[Card]:
    """A server that draws, under the names that client programs have built in, but for those of the `service`."""
    if not server:
        return []
    taken = (server.model, *service.image_models)
    return [
        {
            "name": server.model or "images",
            "kind": "image",
            "provider": "voiceapp.engines.openai.images.OpenAIImages",
            "aliases": [name for name in IMAGE_ALIASES if name not in taken],
            "options": server.options,
        }
    ]
