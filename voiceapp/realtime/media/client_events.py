"""Client events of a session whose audio comes as media packets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from voiceapp.protocol.wire import events as ev

FORMATS = ("input_audio_format", "output_audio_format")


def without_audio(event: ev.ClientEvent) -> ev.ClientEvent:
    """The event as it counts where audio has a track: the formats that a client asks for are those of WebSockets.

    Raises:
        EventError: for an event that carries audio.
    """
    if isinstance(event, ev.AudioAppend):
        raise ev.EventError(
            "On this transport, audio comes on the track.", code="invalid_event", param="audio", event_id=event.event_id
        )
    if isinstance(event, ev.SessionUpdate):
        return replace(event, session=without_formats(event.session))
    if isinstance(event, ev.ResponseCreate):
        return replace(event, response=without_formats(event.response))
    return event


def without_formats(patch: dict[str, Any]) -> dict[str, Any]:
    """A session's settings without those that a media track makes void."""
    kept = {name: value for name, value in patch.items() if name not in FORMATS}
    if isinstance(audio := kept.get("audio"), dict):
        kept["audio"] = {
            side: {name: value for name, value in of.items() if name != "format"} if isinstance(of, dict) else of
            for side, of in audio.items()
        }
    return kept
