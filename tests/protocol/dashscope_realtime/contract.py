"""The contract of the vendor's realtime dialects as tables, drawn from what the methods of its own library send.

`make contracts` shows what a new release of the library changed, `python -m tests.contracts --write` writes it anew.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dashscope.audio.qwen_omni import MultiModality, OmniRealtimeCallback, OmniRealtimeConversation
from dashscope.audio.qwen_omni.omni_realtime import TranscriptionParams, TranslationParams
from dashscope.audio.qwen_tts_realtime import QwenTtsRealtime, QwenTtsRealtimeCallback

Json = dict[str, Any]

TABLE = Path(__file__).resolve().parents[3] / "docs" / "contracts" / "dashscope-realtime.md"
HEAD = """# The vendor's realtime dialects

What the methods of the `dashscope` library for Python send on the realtime address: their parameters, and the fields
of the events that they send with the sample values of a test. This server reads every one of them.

"""
SAMPLES: Json = {
    "output_modalities": [MultiModality.TEXT, MultiModality.AUDIO],
    "turn_detection_param": {},
    "translation_params": TranslationParams(language="en"),
    "transcription_params": TranscriptionParams(language="en"),
    "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]},
    "audio_b64": "AAAA",
    "video_b64": "AAAA",
    "text": "Hello.",
    "voice": "Cherry",
    "instructions": "Be brief.",
}
"""Values of parameters; others are left out."""
SILENT = {"connect", "close", "send_raw", "end_session", "on_message", "on_close", "on_error"}
"""Methods that send no event of their own; `end_session` sends that of `end_session_async`, and waits."""


class Recorder:
    """What the library takes for its connection."""

    def __init__(self) -> None:
        self.sock = SimpleNamespace(connected=True)
        self.sent: list[Json] = []

    def send(self, text: str) -> None:
        self.sent.append(json.loads(text))


def sent_by(client: Any) -> Iterator[tuple[str, inspect.Signature, Json]]:
    for name, method in inspect.getmembers(client, inspect.ismethod):
        if name.startswith(("_", "get_")) or name in SILENT:
            continue
        client.ws = Recorder()
        signature = inspect.signature(method)
        method(**{given: value for given, value in SAMPLES.items() if given in signature.parameters})
        (event,) = client.ws.sent
        yield name, signature, event


def conversation() -> OmniRealtimeConversation:
    return OmniRealtimeConversation(model="qwen3-omni-flash-realtime", callback=OmniRealtimeCallback(), api_key="sk-1")


def reader() -> QwenTtsRealtime:
    return QwenTtsRealtime(model="qwen3-tts-flash-realtime", callback=QwenTtsRealtimeCallback())


def table() -> str:
    """The whole file."""
    parts = [HEAD]
    for client in (conversation(), reader()):
        parts.append(f"## {type(client).__name__}\n\n| Method | Parameters | Event | Fields |\n|---|---|---|---|\n")
        for name, signature, event in sent_by(client):
            parameters = ", ".join(f"`{each}`" for each in signature.parameters) or "none"
            fields = ", ".join(f"`{path}`" for path in sorted(paths(event)) if path not in ("type", "event_id"))
            parts.append(f"| `{name}` | {parameters} | `{event['type']}` | {fields or 'none'} |\n")
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


def paths(value: Json, prefix: str = "") -> Iterator[str]:
    """The fields of an event, inner ones behind the names of outer ones."""
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from paths(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"
