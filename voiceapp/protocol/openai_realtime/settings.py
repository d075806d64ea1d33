"""The settings of a session and of one response: as OpenAI's clients write and read them, and as ours.

What the dialect has and this server does not (tracing, noise reduction, speed, log probabilities) is
ignored, so that programs that set it run.
"""

from __future__ import annotations

from typing import Any

from voiceapp.protocol import g711
from voiceapp.protocol.wire.reading import EventError, JsonObject

REALTIME = "realtime"
TRANSCRIPTION = "transcription"
PCM_RATE_HZ = 24_000
"""The one rate of `audio/pcm` there."""

_FORMATS = {
    "audio/pcm": "pcm16",
    "pcm16": "pcm16",
    "audio/pcmu": "g711_ulaw",
    "g711_ulaw": "g711_ulaw",
    "audio/pcma": "g711_alaw",
    "g711_alaw": "g711_alaw",
}
"""Names of audio formats, in that dialect and in the one before it, and ours."""
_OWN = ("echo_cancellation", "interruptions", "word_times")
"""Settings of a conversation that are not in that dialect. Its libraries send what they do not know as it is given."""
_KEPT = ("instructions", "tools", "max_output_tokens", "metadata", "prompt", *_OWN)
"""Fields that both dialects spell alike."""


def settings_from(given: JsonObject, at: str) -> JsonObject:
    """A client's `session` or `response` (`at`) as fields of our `session.update` or `response.create`.

    Raises:
        EventError: if a field is of the wrong type, or asks for what does not exist here.
    """
    patch: JsonObject = {name: given[name] for name in _KEPT if name in given}
    if "output_modalities" in given:
        patch["modalities"] = _modalities(given["output_modalities"], f"{at}.output_modalities")
    if "tool_choice" in given:
        patch["tool_choice"] = tool_choice_from(given["tool_choice"])
    audio = _object(given, "audio", at)
    source, sink = _object(audio, "input", f"{at}.audio"), _object(audio, "output", f"{at}.audio")
    sides: JsonObject = {}
    if source:
        sides["input"] = _input(source, f"{at}.audio.input")
    if sink:
        sides["output"] = _output(sink, f"{at}.audio.output")
    if sides:
        patch["audio"] = sides
    return patch


def _input(source: JsonObject, at: str) -> JsonObject:
    kept: JsonObject = {name: source[name] for name in ("transcription", "turn_detection") if name in source}
    if source.get("format") is not None:
        kept["format"] = _format_from(source["format"], f"{at}.format")
    return kept


def _output(sink: JsonObject, at: str) -> JsonObject:
    kept: JsonObject = {}
    if sink.get("format") is not None:
        kept["format"] = _format_from(sink["format"], f"{at}.format")
    if (voice := sink.get("voice")) is not None:
        kept["voice"] = voice.get("id") if isinstance(voice, dict) else voice
    return kept


def _format_from(value: object, at: str) -> JsonObject:
    """`{"type": "audio/pcm", "rate": 24000}`, or the name of the older dialect, as some clients still write it."""
    name, rate = (value.get("type"), value.get("rate")) if isinstance(value, dict) else (value, None)
    ours = _FORMATS.get(name) if isinstance(name, str) else None
    if ours is None:
        names = "audio/pcm, audio/pcmu or audio/pcma"
        raise EventError(f"{at}.type must be {names}.", code="invalid_value", param=f"{at}.type")
    usual_hz = PCM_RATE_HZ if ours == "pcm16" else g711.SAMPLE_RATE_HZ
    return {"type": ours, "sample_rate": usual_hz if rate is None else rate}


def _modalities(value: object, at: str) -> list[str]:
    if value == ["text"]:
        return ["text"]
    if isinstance(value, list) and "audio" in value and set(map(str, value)) <= {"text", "audio"}:
        return ["text", "audio"]
    raise EventError(f'{at} must be ["audio"] or ["text"].', code="invalid_value", param=at)


def tool_choice_from(value: Any) -> Any:
    """A choice of a function as ours, which nests it as it does its tools."""
    if isinstance(value, dict) and "name" in value:
        return {"type": "function", "function": {"name": value["name"]}}
    return value


def _object(of: JsonObject, name: str, at: str) -> JsonObject:
    value = of.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise EventError(f"{at}.{name} must be an object.", code="invalid_type", param=f"{at}.{name}")
    return value


# ── The other way ────────────────────────────────────────────────────────────────────────────────────────────────────


def session_to(ours: JsonObject, kind: str = REALTIME) -> JsonObject:
    source = ours["audio"]["input"]
    transcription = {name: value for name, value in ours["input_audio_transcription"].items() if value is not None}
    listens: JsonObject = {
        "format": format_to(source["format"]),
        "transcription": transcription or None,
        "noise_reduction": None,
        "turn_detection": _turn_detection_to(ours["turn_detection"], kind),
    }
    if kind == TRANSCRIPTION:
        about = {"type": kind, "object": "realtime.transcription_session", "id": ours["id"]}
        return {**about, "audio": {"input": listens}, "include": None}
    sink = ours["audio"]["output"]
    return {
        "type": kind,
        "object": "realtime.session",
        "id": ours["id"],
        "model": ours["model"],
        "output_modalities": modalities_to(ours["modalities"]),
        "instructions": ours["instructions"],
        "tools": [tool_to(tool) for tool in ours["tools"]],
        "tool_choice": tool_choice_to(ours["tool_choice"]),
        "max_output_tokens": ours.get("max_tokens") or "inf",
        "tracing": None,
        "truncation": "auto",
        "prompt": ours.get("prompt"),
        "include": None,
        "audio": {
            "input": listens,
            "output": {"format": format_to(sink["format"]), "voice": sink["voice"], "speed": 1.0},
        },
        **{name: ours[name] for name in (*_OWN, "recording", "operator_listening") if name in ours},
    }


def format_to(ours: JsonObject) -> JsonObject:
    """A format from its `type` and `sample_rate`; that of G.711 goes without saying."""
    if law := g711.LAWS.get(ours["type"]):
        return {"type": f"audio/pcm{law}"}
    return {"type": "audio/pcm", "rate": ours["sample_rate"]}


def modalities_to(ours: list[str]) -> list[str]:
    """`output_modalities`: audio comes with its words."""
    return ["audio"] if "audio" in ours else ["text"]


_OF_SEMANTIC_VAD = ("type", "create_response", "interrupt_response")


def _turn_detection_to(ours: JsonObject | None, kind: str) -> JsonObject | None:
    if ours is None:
        return None
    shown = ours
    if ours["type"] == "semantic_vad":
        shown = {**{name: ours[name] for name in _OF_SEMANTIC_VAD}, "eagerness": "auto"}
    if kind == TRANSCRIPTION:
        shown = {name: value for name, value in shown.items() if not name.endswith("_response")}
    return shown


def tool_to(tool: JsonObject) -> JsonObject:
    """A tool; functions are flat."""
    return {"type": "function", **tool["function"]} if tool["type"] == "function" else tool


def tool_choice_to(choice: Any) -> Any:
    """A choice of a tool, flat too."""
    if isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        return {"type": "function", **choice["function"]}
    return choice
