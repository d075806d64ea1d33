"""Our client events as a service of OpenAI's family reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import SessionConfig, merge
from voiceapp.protocol.openai_realtime.dialect import item_to
from voiceapp.protocol.openai_realtime.settings import PCM_RATE_HZ, REALTIME, TRANSCRIPTION, session_to
from voiceapp.protocol.wire.reading import JsonObject

_NAMES = {
    "modalities": "modalities",
    "instructions": "instructions",
    "voice": "voice",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "max_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_response_output_tokens": "max_tokens",
    "temperature": "temperature",
    "turn_detection": "turn_detection",
    "input_audio_transcription": "transcription",
}
"""Settings by the names of the fields that change them."""
_NESTED = {
    ("input", "transcription"): "transcription",
    ("input", "turn_detection"): "turn_detection",
    ("output", "voice"): "voice",
}
_PLACES = {
    "modalities": ("output_modalities",),
    "instructions": ("instructions",),
    "voice": ("audio", "output", "voice"),
    "tools": ("tools",),
    "tool_choice": ("tool_choice",),
    "max_tokens": ("max_output_tokens",),
    "turn_detection": ("audio", "input", "turn_detection"),
    "transcription": ("audio", "input", "transcription"),
}
"""Path of each setting there."""
_OF_A_RESPONSE = ("modalities", "instructions", "voice", "tools", "tool_choice", "max_tokens", "temperature")
_OF_A_TOOL = ("type", "name", "description", "parameters")
_AS_IT_IS = ("conversation", "input", "metadata")
_LISTENS = ("turn_detection", "transcription")
"""Settings of a session that only transcribes."""
_SHOWN_AS = {"transcription": "input_audio_transcription"}
"""Names in our `session`, where they differ."""
_ALWAYS_SHOWN = ("model", "audio", "input_audio_format", "output_audio_format")


def format_there(ours: AudioFormat) -> AudioFormat:
    """The format in which audio is exchanged with the service: telephone audio as it is, PCM at its one rate."""
    return ours if ours.is_telephone else AudioFormat("pcm16", PCM_RATE_HZ)


def asked_for(patch: JsonObject) -> list[str]:
    """Names of the settings that a patch changes. A voice that is null does not change."""
    found = [_NAMES[name] for name, value in patch.items() if name in _NAMES and (name != "voice" or value is not None)]
    audio = patch.get("audio")
    for (side, name), what in _NESTED.items():
        of_side = audio.get(side) if isinstance(audio, dict) else None
        if isinstance(of_side, dict) and name in of_side and (name != "voice" or of_side[name] is not None):
            found.append(what)
    return list(dict.fromkeys(found))


def held_there(ours: JsonObject, *, kind: str) -> JsonObject:
    """Our `session` without the settings that such a service is never sent, which are not in force."""
    told = _LISTENS if kind == TRANSCRIPTION else _PLACES
    names = {*_ALWAYS_SHOWN, *(_SHOWN_AS.get(what, what) for what in told)}
    return {name: value for name, value in ours.items() if name in names}


def session_there(
    config: SessionConfig, about: list[str], source: AudioFormat, sink: AudioFormat, *, kind: str
) -> JsonObject:
    """`session` of `session.update`: the settings named in `about`, and the audio formats of the service."""
    wire = _wire(config, source, sink)
    shown = session_to({"id": "", **wire}, kind)
    session: JsonObject = {"type": kind}
    formats = [("input", "format")] if kind == TRANSCRIPTION else [("input", "format"), ("output", "format")]
    for side, name in formats:
        _put(session, ("audio", side, name), shown["audio"][side][name])
    for what in about:
        if what in _PLACES and (kind != TRANSCRIPTION or what in _LISTENS):
            _put(session, _PLACES[what], _tidied(what, _at(shown, _PLACES[what])))
    return session


def call_there(opening: Mapping[str, Any], transcription_model: str) -> JsonObject:
    """`session` of a call over WebRTC that begins with these settings of ours. Its tracks say how audio is coded."""
    config = merge(SessionConfig(model="", voice=""), dict(opening))
    if transcription_model:
        config = replace(config, transcription_model=transcription_model)
    formats = format_there(config.input_format), format_there(config.output_format)
    session = session_there(config, asked_for(dict(opening)), *formats, kind=REALTIME)
    sides = {side: {**of_side} for side, of_side in session.pop("audio").items()}
    for of_side in sides.values():
        del of_side["format"]
    audio = {side: of_side for side, of_side in sides.items() if of_side}
    return {**session, "audio": audio} if audio else session


def response_there(config: SessionConfig, patch: JsonObject) -> JsonObject:
    """`response` of `response.create`."""
    given = {name: value for name, value in patch.items() if value is not None}
    about = [what for what in asked_for(given) if what in _OF_A_RESPONSE]
    found: JsonObject = {name: patch[name] for name in _AS_IT_IS if name in patch}
    if isinstance(found.get("input"), list):
        found["input"] = [item_there(item) for item in found["input"]]
    source, sink = format_there(config.input_format), format_there(config.output_format)
    shown = session_to({"id": "", **_wire(config, source, sink)})
    for what in about:
        if what in _PLACES:
            _put(found, _PLACES[what], _tidied(what, _at(shown, _PLACES[what])))
    return found


def item_there(item: Any) -> Any:
    is_readable = isinstance(item, dict) and isinstance(item.get("content", []), list)
    parts = item.get("content", []) if is_readable else []
    if not parts or not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
        return item
    return item_to(item)


def _wire(config: SessionConfig, source: AudioFormat, sink: AudioFormat) -> JsonObject:
    wire = config.to_wire()
    for side, of_side in (("input", source), ("output", sink)):
        wire["audio"][side]["format"] = {"type": of_side.name, "sample_rate": of_side.sample_rate_hz}
    return wire


def _tidied(what: str, value: Any) -> Any:
    """Without what is not known there, and within its bounds."""
    if what == "tools":
        return [{name: tool[name] for name in _OF_A_TOOL if name in tool} for tool in value]
    if what != "turn_detection" or value is None:
        return value
    found = {name: each for name, each in value.items() if each is not None}
    if "threshold" in found:
        found["threshold"] = min(1.0, max(0.0, found["threshold"]))
    return found


def _at(shown: JsonObject, place: tuple[str, ...]) -> Any:
    for name in place:
        shown = shown[name]
    return shown


def _put(found: JsonObject, place: tuple[str, ...], value: Any) -> None:
    for name in place[:-1]:
        found = found.setdefault(name, {})
    found[place[-1]] = value
