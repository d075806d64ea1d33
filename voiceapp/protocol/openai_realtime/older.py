"""One session in OpenAI's older dialect (beta), which ours is like but for settings and the words of callers."""

from __future__ import annotations

from voiceapp.protocol.openai_realtime.dialect import OpenAIRealtimeDialect
from voiceapp.protocol.openai_realtime.settings import tool_choice_from, tool_choice_to, tool_to
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import JsonObject

FORMATS = ("input_audio_format", "output_audio_format")
_TRANSLATED = (
    ev.SessionCreated,
    ev.SessionUpdated,
    ev.TranscriptionDelta,
    ev.TranscriptionCompleted,
    ev.TranscriptionFailed,
)


class OlderDialect(OpenAIRealtimeDialect):
    def read(self, text: str) -> ev.ClientEvent | None:
        event = self._lengths.appended(ev.parse_client_event(text))
        if isinstance(event, ev.ItemCreate):
            self._lengths.sent(event.item)
        elif isinstance(event, ev.SessionUpdate):
            return ev.SessionUpdate(session=_chosen(event.session), event_id=event.event_id)
        elif isinstance(event, ev.ResponseCreate):
            return ev.ResponseCreate(response=_chosen(event.response), event_id=event.event_id)
        return event

    def write(self, event: ev.ServerEvent) -> list[JsonObject]:
        if isinstance(event, _TRANSLATED):
            return super().write(event)
        self._lengths.see(event)
        if isinstance(event, ev.ResponseCreated | ev.ResponseDone):
            return [{**event.to_wire(), "response": _with_formats(event.response)}]
        return [] if self._has_track and isinstance(event, ev.AudioDelta) else [event.to_wire()]

    def _shown(self, ours: JsonObject) -> JsonObject:
        return {
            **_with_formats(ours),
            "tools": [tool_to(tool) for tool in ours["tools"]],
            "tool_choice": tool_choice_to(ours["tool_choice"]),
            "max_response_output_tokens": ours.get("max_tokens") or "inf",
        }


def _with_formats(ours: JsonObject) -> JsonObject:
    """PCM has one name there."""
    given = {name: ours[name] for name in FORMATS if name in ours}
    return {**ours, **{name: "pcm16" if str(each).startswith("pcm") else each for name, each in given.items()}}


def _chosen(patch: JsonObject) -> JsonObject:
    return {**patch, "tool_choice": tool_choice_from(patch["tool_choice"])} if "tool_choice" in patch else patch
