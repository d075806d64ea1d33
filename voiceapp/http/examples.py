"""A body for each operation that works as it stands on a server as it comes; the reference and OpenAPI show them."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings

RESPONSES = settings.BASE_DIR / "docs" / "examples" / "responses.json"
"""JSON responses by method and path, as this server gave them."""
QUESTION = "How do I create an API key?"
DOCUMENTS = ["Keys are made under Accounts, and shown once.", "The circle shows who is speaking."]

_WEBHOOKS: dict[str, dict[str, Any]] = {
    "": {"url": "https://example.org/hooks", "events": ["session.created", "task.finished"], "description": "Ours"},
    "/{endpoint_id}": {"events": ["session.status_terminated"]},
    "/{endpoint_id}/reset_secret": {"keep_old_secret_active_for_24_hours": True},
    "/{endpoint_id}/events/replay": {"since": "2026-03-04T05:06:07Z"},
}
"""By path, at either root of the agents' interface."""

BODIES: dict[str, dict[str, Any]] = {
    "/api/v1/webrtc/realtime": {"clientIp": "203.0.113.9"},
    "/api/v1/webrtc/inference": {"clientIp": "203.0.113.9"},
    "/api/v1/webrtc/sessions/{name}": {"state": "connected"},
    "/api/v1/services/aigc/text-generation/generation": {
        "model": "assistant",
        "input": {"messages": [{"role": "user", "content": QUESTION}]},
        "parameters": {"result_format": "message"},
    },
    "/api/v1/services/aigc/multimodal-generation/generation": {
        "model": "assistant",
        "input": {"messages": [{"role": "user", "content": [{"text": QUESTION}]}]},
    },
    "/api/v1/services/embeddings/text-embedding/text-embedding": {
        "model": "text-embedding-v4",
        "input": {"texts": [QUESTION, "Which voices are there?"]},
        "parameters": {"dimension": 256, "text_type": "query"},
    },
    "/api/v1/services/rerank/text-rerank/text-rerank": {
        "model": "qwen3-rerank",
        "input": {"query": QUESTION, "documents": DOCUMENTS},
        "parameters": {"top_n": 1, "return_documents": True},
    },
    "/api/v1/services/audio/asr/transcription": {
        "model": "moonshine-tiny-en",
        "input": {"file_urls": ["https://example.org/monday.mp3", "https://example.org/tuesday.mp3"]},
    },
    "/api/v1/services/audio/tts/synthesis": {
        "model": "hibari",
        "input": {"text": "Good morning. Here is the news."},
        "parameters": {"format": "opus"},
    },
    "/api/v1/services/aigc/text-generation/batch": {
        "model": "assistant",
        "input": {"url": "https://example.org/conversations.jsonl"},
    },
    "/api/v1/services/aigc/text2image/image-synthesis": {
        "model": "qwen-image",
        "input": {"prompt": "A lighthouse at dusk, in watercolour"},
        "parameters": {"n": 2, "size": "1024*1024"},
    },
    "/api/v1/services/aigc/image2image/image-synthesis": {
        "model": "qwen-image",
        "input": {"prompt": "The same by night", "images": ["https://example.org/lighthouse.png"]},
    },
    "/api/v1/services/aigc/image-generation/generation": {
        "model": "qwen-image",
        "input": {"messages": [{"role": "user", "content": [{"text": "A lighthouse at dusk"}]}]},
    },
    "/api/v1/services/aigc/video-generation/video-synthesis": {
        "model": "wan2.2-t2v-plus",
        "input": {"prompt": "Waves break at a lighthouse"},
        "parameters": {"size": "1280*720", "duration": 5},
    },
    "/api/v1/services/aigc/image2video/video-synthesis": {
        "model": "wan2.2-t2v-plus",
        "input": {"prompt": "The light begins to turn", "img_url": "https://example.org/lighthouse.png"},
    },
    "/api/v1/services/rerank/text-rerank/batch": {
        "model": "qwen3-rerank",
        "input": {"url": "https://example.org/queries.jsonl"},
    },
    **{
        f"/api/v1/{root}/webhook_endpoints{path}": body
        for root in ("agentsvc", "agentstudio")
        for path, body in _WEBHOOKS.items()
    },
    "/compatible-api/v1/reranks": {"model": "qwen3-rerank", "query": QUESTION, "documents": DOCUMENTS},
    "/compatible-mode/v1/chat/completions": {
        "model": "assistant",
        "messages": [{"role": "user", "content": QUESTION}],
    },
    "/compatible-mode/v1/responses": {"model": "assistant", "input": QUESTION},
    "/compatible-mode/v1/rerank": {"model": "qwen3-rerank", "query": QUESTION, "documents": DOCUMENTS},
    "/compatible-mode/v1/embeddings": {"model": "text-embedding-v4", "input": QUESTION},
    "/compatible-mode/v1/realtime/client_secrets": {"session": {"type": "realtime", "model": "voice"}},
    "/compatible-mode/v1/audio/speech": {"model": "hibari", "input": "Good morning.", "voice": "woman"},
}
"""By path."""
FORMS: dict[str, dict[str, Any]] = {
    "/compatible-mode/v1/audio/transcriptions": {"file": "recording.wav", "model": "moonshine-tiny-en"},
    "/compatible-mode/v1/audio/translations": {"file": "recording.wav", "model": "moonshine-tiny-en"},
    "/api/v1/uploads": {"file": "recording.wav"},
    "/api/v1/uploads/direct": {
        "file": "recording.wav",
        "key": "uploads/5d41402abc4b2a76b9719d911017c592/recording.wav",
        "policy": "WzEsInVwbG9hZHMvLi4uIl0:1vMfZt",
        "Signature": "hD3vPp2Rk9S1x0",
    },
}
"""By path, for those that take files; of a file, its name."""

PARAMETERS = {"model": "assistant"}
"""By name, what stands in an address."""


def put_examples(document: dict[str, Any]) -> None:
    """Add them to the document, in place, where an operation brings no example of its own."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path" and parameter["name"] in PARAMETERS:
                    parameter.setdefault("example", PARAMETERS[parameter["name"]])
    for operation_name, example in json.loads(RESPONSES.read_text(encoding="utf-8")).items():
        method, _, path = operation_name.partition(" ")
        document["paths"][path][method.lower()]["responses"]["200"]["content"]["application/json"]["example"] = example
    for content_type, examples in (("application/json", BODIES), ("multipart/form-data", FORMS)):
        for path, example in examples.items():
            for operation in document["paths"][path].values():
                media = operation.get("requestBody", {}).get("content", {}).get(content_type)
                if media is not None and not {"example", "examples"} & media.keys():
                    media["example"] = example
