"""The parts of what a service of OpenAI's family says as ours: items, content parts, responses, settings."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import AudioFormat, read_format
from voiceapp.protocol.configuration import SessionConfig, merge
from voiceapp.protocol.openai_realtime.dialect import PARTS, RENAMED
from voiceapp.protocol.openai_realtime.settings import PCM_RATE_HZ, settings_from
from voiceapp.protocol.wire.reading import EventError, JsonObject

NAMES = {
    **{theirs: ours for ours, theirs in RENAMED.items()},
    "conversation.item.added": "conversation.item.created",
}
"""Our names of events, by theirs."""
_PARTS = {theirs: ours for ours, theirs in PARTS.items()}
_NOT_OURS = ("type", "object", "id", "model", "input_audio_format", "output_audio_format")
_PLACES = ("session.audio.input.", "session.audio.output.")
_OF_A_MESSAGE = ("role", "content")
_SHOWN_WHOLE = ("audio", "modalities", "input_audio_transcription", "turn_detection", "tools", "tool_choice")
_COUNTS = ("total_tokens", "input_tokens", "output_tokens")
_DETAILS = {"input_token_details": "input_tokens_details", "output_token_details": "output_tokens_details"}
"""Fields of usage, and their names at other services."""


def part_of(part: JsonObject) -> JsonObject:
    kind = str(part.get("type"))
    return {**part, "type": _PARTS.get(kind, kind)}


def item_of(item: object) -> JsonObject | None:
    """An item; None where it is none."""
    if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not isinstance(item.get("type"), str):
        return None
    found = {"object": "realtime.item", "status": "completed", **item}
    if item["type"] != "message":
        return {name: value for name, value in found.items() if name not in _OF_A_MESSAGE}
    parts = item.get("content")
    known = [part_of(part) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return {**found, "role": str(item.get("role")), "content": known}


def session_of(session: JsonObject) -> JsonObject:
    """The settings that a service shows in our own dialect, with every field that this server shows."""
    config = SessionConfig(model="", voice="")
    for name, value in session.items():
        with suppress(InvalidParameter):
            config = merge(config, {name: value})
    known = config.to_wire()
    return {**known, **session, **{name: known[name] for name in _SHOWN_WHOLE}}


def response_of(response: object) -> JsonObject | None:
    """The response in `response.created` and `response.done`, with every field that ours has; None where it is none."""
    if not isinstance(response, dict) or not isinstance(response.get("id"), str):
        return None
    output = response.get("output")
    items = [item_of(item) for item in output] if isinstance(output, list) else []
    details, status = response.get("status_details"), response.get("status")
    modalities = response.get("output_modalities") or response.get("modalities")
    speaks = not isinstance(modalities, list) or "audio" in modalities
    voice = response.get("voice") or _at(response, "audio", "output", "voice")
    return {
        "object": "realtime.response",
        "id": response["id"],
        "status": status if isinstance(status, str) else "completed",
        "status_details": details if isinstance(details, dict) and isinstance(details.get("type"), str) else None,
        "output": [item for item in items if item is not None],
        "conversation_id": response.get("conversation_id"),
        "modalities": ["text", "audio"] if speaks else ["text"],
        "voice": voice if isinstance(voice, str) else "",
        "usage": _usage(response.get("usage")),
        "metadata": response.get("metadata"),
    }


def settings_after(config: SessionConfig, session: JsonObject) -> SessionConfig:
    """Our settings after what the service shows of its own. Formats are between us and the caller; what has no like
    here is left out."""
    try:
        is_flat = "modalities" in session or "input_audio_format" in session
        shown = dict(session) if is_flat else settings_from(session, "session")
    except EventError:
        return config
    audio = shown.pop("audio", None)
    if isinstance(audio, dict):
        sides = {side: of_side for side, of_side in audio.items() if isinstance(of_side, dict)}
        shown["audio"] = {side: {**of_side, "format": None} for side, of_side in sides.items()}
    for name, value in shown.items():
        if name not in _NOT_OURS:
            with suppress(InvalidParameter):
                config = merge(config, {name: value})
    return config


def format_of(session: JsonObject, side: str, usual: AudioFormat) -> AudioFormat:
    """The format of a side of the service's audio; `usual` where it does not say."""
    given = _at(session, "audio", side, "format") or session.get(f"{side}_audio_format")
    try:
        return read_format(given, param=side, default_rate_hz=PCM_RATE_HZ) if given else usual
    except InvalidParameter:
        return usual


def error_of(wire: JsonObject) -> JsonObject:
    """An error event; what it names is called as here."""
    error = wire.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("param"), str):
        return wire
    param: str = error["param"]
    for place in _PLACES:
        if param.startswith(place):
            param = f"session.{param.removeprefix(place)}"
    return {**wire, "error": {**error, "param": param}}


def is_about_settings(error: JsonObject) -> bool:
    """True for an error that names no event and refuses a change of settings."""
    code, param = str(error.get("code")), str(error.get("param"))
    return code.startswith("cannot_update") or param.partition(".")[0] == "session"


def _usage(usage: object) -> JsonObject | None:
    if not isinstance(usage, dict):
        return None
    counts = {name: usage[name] if isinstance(usage.get(name), int) else 0 for name in _COUNTS}
    details = {name: usage.get(name) or usage.get(other) for name, other in _DETAILS.items()}
    return {**usage, **counts, **{name: each if isinstance(each, dict) else {} for name, each in details.items()}}


def _at(wire: JsonObject, *names: str) -> Any:
    found: Any = wire
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found
