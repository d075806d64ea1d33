"""The cards of a fresh installation: names, what client programs call them, and who provides them.

Read by `settings/models.py` alone, which knows what the operator has set; all other code looks cards up (`lookup.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from voiceapp.catalogue.cards import ChatCapabilities, ModelCard
from voiceapp.catalogue.client_names import CLIENT_NAMES
from voiceapp.catalogue.embedders import EMBEDDERS
from voiceapp.catalogue.languages import ENGLISH
from voiceapp.catalogue.servers import ServerSettings

VOICE = "voice"
"""Our own conversation."""
_REALTIME, _NAMES = CLIENT_NAMES["realtime"], CLIENT_NAMES["models"]
OPENAI_REALTIME_ALIASES = (*_REALTIME["openai"], *_REALTIME["openai_listening"])
"""Names whose client libraries send 24 kHz without saying so."""
REALTIME_ALIASES = (*_REALTIME["own"], *_REALTIME["listening"], *OPENAI_REALTIME_ALIASES)
CHAT_ALIASES = tuple(_NAMES["chat"])

_ENGINES = "voiceapp.engines"


SMALL_WHISPER = "whisper-base"
"""Below the folder of model files: the recognizer of other languages that `fetch_models` brings."""


def whisper_folder(given: str, models_dir: Path) -> Path:
    """Return the folder of the Whisper for other languages, fetched or not; `given` is a path, an address, or empty."""
    if given.startswith("https://"):
        return models_dir / "whisper" / hashlib.sha256(given.encode()).hexdigest()[:16]
    return Path(given) if given else models_dir / SMALL_WHISPER


def voice_cards(*, languages: tuple[str, ...] = (), whisper: Path | None = None) -> list[ModelCard]:
    """Conversation, recognition, turns and speech inside this process; with the folder of a `whisper`, recognition of
    its `languages`."""
    moonshine = ModelCard(
        "moonshine-tiny-en",
        "asr",
        f"{_ENGINES}.embedded.asr.Moonshine",
        aliases=tuple(_NAMES["recognition"]),
        runs_here=True,
        languages=(ENGLISH,),
    )
    both = replace(
        moonshine,
        name="moonshine-whisper",
        provider=f"{_ENGINES}.embedded.two_recognizers.MoonshineAndWhisper",
        aliases=(moonshine.name, *moonshine.aliases),
        options={"languages": languages, "folder": str(whisper)},
        languages=languages,
        translates=True,
    )
    return [
        ModelCard(
            VOICE,
            "realtime",
            f"{_ENGINES}.cascade.CascadeModel",
            title="Voice assistant",
            aliases=REALTIME_ALIASES,
            runs_here=True,
            transports=("aoq", "webrtc", "websocket"),
            input_rates_hz=dict.fromkeys(OPENAI_REALTIME_ALIASES, 24_000),
            listens_only=frozenset((*_REALTIME["listening"], *_REALTIME["openai_listening"])),
        ),
        ModelCard("silero-vad-6", "vad", f"{_ENGINES}.embedded.vad.Silero", runs_here=True),
        ModelCard("smart-turn-v3.2", "turn", f"{_ENGINES}.embedded.turn.SmartTurn", runs_here=True),
        both if languages else moonshine,
        ModelCard(
            "hibari",
            "tts",
            f"{_ENGINES}.voices.synthesizer.EmbeddedSpeech",
            aliases=("piper", *_NAMES["synthesis"]),
            runs_here=True,
        ),
        ModelCard("espeak-ng", "tts", f"{_ENGINES}.espeak.voice.Espeak", runs_here=True),
    ]


@dataclass(frozen=True, slots=True)
class LocalModelSettings:
    """A language model in a child process of this server."""

    file: Path
    """GGUF."""
    threads: int
    context_tokens: int
    slots: int
    timeout_s: float
    idle_s: float | None = None
    """Time without a call after which it leaves the memory; None keeps it there."""
    is_small: bool = False
    """It is the one that the server brings, which needs to be told how to reply."""

    @property
    def options(self) -> dict[str, Any]:
        """Options that the engine is made with."""
        found = {
            "file": str(self.file),
            "threads": self.threads,
            "context_tokens": self.context_tokens,
            "slots": self.slots,
            "timeout_s": self.timeout_s,
            "idle_s": self.idle_s,
        }
        return {**found, **SMALL_MODEL_OPTIONS} if self.is_small else found


SMALL_MODEL = "smollm2/smollm2-135m-instruct.gguf"
"""Below the folder of model files: the language model that `fetch_models` brings."""


HUB_NAME = re.compile(r"hf:([\w.-]{1,96}/[\w.-]{1,96})(?::([\w.-]{1,40}))?")
"""A model of a hub, and its quantization."""


def chat_model_file(given: str, models_dir: Path) -> Path:
    """Return the path of the language model's file, fetched or not; `given` is a path, an address, a name on the hub
    such as `hf:owner/repository:Q4_K_M`, or empty."""
    if given.startswith("hf:"):
        return models_dir / "chat" / f"{given.removeprefix('hf:').replace('/', '--').replace(':', '--')}.gguf"
    if given.startswith("https://"):
        last = re.split("[?#]", given)[0].rpartition("/")[2]
        name = re.sub(r"[^\w.-]", "_", last, flags=re.ASCII)[-100:].strip(".") or "model.gguf"
        return models_dir / "chat" / hashlib.sha256(given.encode()).hexdigest()[:16] / name
    return Path(given) if given else models_dir / SMALL_MODEL


SMALL_MODEL_OPTIONS: Mapping[str, Any] = {
    "instructions": (
        "You are a friendly voice assistant. Reply in one or two short, simple English sentences. "
        "You cannot look anything up or control anything."
    ),
    "sampling": {"temperature": 0.2, "repeat_penalty": 1.1},
    "max_reply_tokens": 256,
    "quotes_results": True,
    "writes_short_json": True,
}


def chat_cards(
    server: ServerSettings,
    *,
    sees_images: bool,
    local: LocalModelSettings | None,
    engine: str,
    reads_documents: bool = True,
    context_tokens: int = 0,
) -> list[ModelCard]:
    """The chat models; conversations use the first.

    With the engine `both` that is a server's model, else the built-in assistant with the `local` model behind it. With
    `model` it is a language model alone. With `skills` skills and documents reply, and the `local` model to the
    instructions, functions and formats of programs. An empty engine is `both` where a model converses, else `skills`.
    With `reads_documents` the server's model is given passages of the documents.
    """
    engine = engine or ("both" if server or (local is not None and not local.is_small) else "skills")
    theirs: list[ModelCard] = []
    ours: list[ModelCard] = []
    if server:
        theirs.append(
            ModelCard(
                server.model or "default",
                "chat",
                f"{_ENGINES}.openai.chat.OpenAIChat",
                options=server.options | {"context_tokens": context_tokens},
                chat=ChatCapabilities(
                    images=sees_images, tools=True, response_format=True, reads_sources=reads_documents
                ),
            )
        )
    if local is not None:
        model = ModelCard(
            local.file.stem.lower(),
            "chat",
            f"{_ENGINES}.llama_cpp.chat.LlamaChat",
            options=local.options,
            runs_here=True,
            chat=ChatCapabilities(
                tools=True,
                response_format=True,
                reads_sources=not local.is_small,
                is_english=local.is_small,
                converses=not local.is_small,
                is_small=local.is_small,
            ),
        )
        assistant = replace(
            model,
            name="assistant",
            title="Built-in assistant",
            provider=f"{_ENGINES}.assistant.built_in.Assistant",
            options={"model": model, "is_brief": local.is_small, "converses": engine != "skills"},
            chat=replace(
                model.chat,
                reads_sources=False,
                is_english=local.is_small or engine == "skills",
                converses=engine != "skills",
                is_small=local.is_small and engine != "skills",
            ),
        )
        ours = [model, assistant] if engine == "model" else [assistant, model]
    retrieval = ModelCard(
        "embedded-retrieval",
        "chat",
        f"{_ENGINES}.assistant.chat.RetrievalAssistant",
        runs_here=True,
        chat=ChatCapabilities(instructions=False, is_english=True, converses=False),
    )
    ours.append(retrieval)
    cards = [*ours, *theirs] if engine == "skills" else [*theirs, *ours]
    first = cards[0]
    return [replace(first, aliases=tuple(alias for alias in CHAT_ALIASES if alias != first.name)), *cards[1:]]


def of_agent(card: ModelCard, documents: str, forbidden: tuple[str, ...]) -> ModelCard:
    """Return a chat model as an agent has it: with the folder of its own `documents`, if any, and words that it neither
    takes nor gives."""
    options, able = card.options, card.chat
    if documents and card.provider.startswith(f"{_ENGINES}.assistant."):  # they find passages themselves
        options = {**options, "documents": documents}
    elif documents:
        able = replace(able, reads_sources=True)
    return replace(card, aliases=(), options=options, chat=able, documents=documents, forbidden=forbidden)


def retrieval_cards(embedding: ServerSettings, rerank: ServerSettings, *, rerank_shape: str) -> list[ModelCard]:
    """Embedding and reranking, inside this process or by servers."""
    reranker = ModelCard(
        "qwen3-rerank",
        "rerank",
        f"{_ENGINES}.embedded.rerank.FusedReranker",
        aliases=tuple(_NAMES["rerank"]),
        runs_here=True,
    )
    if rerank:
        options = {**rerank.options, "shape": rerank_shape}
        reranker = replace(
            reranker, provider=f"{_ENGINES}.openai.rerank.OpenAIReranker", options=options, runs_here=False
        )
    return [*(_served_by(embedding, card) if embedding else card for card in EMBEDDERS), reranker]


def _served_by(server: ServerSettings, card: ModelCard) -> ModelCard:
    """The card of an embedding model when a server computes the vectors, in its own length unless one is asked for."""
    return replace(
        card,
        provider=f"{_ENGINES}.openai.embedding.OpenAIEmbedder",
        options=server.options,
        runs_here=False,
        embedding=replace(card.embedding, default_dimension=None, has_sparse=False),
    )


def image_cards(server: ServerSettings) -> list[ModelCard]:
    """An image server, under the names that client programs have built in."""
    if not server:
        return []
    return [
        ModelCard(
            server.model or "images",
            "image",
            f"{_ENGINES}.openai.images.OpenAIImages",
            aliases=tuple(name for name in _NAMES["images"] if name != server.model),
            options=server.options,
        )
    ]
