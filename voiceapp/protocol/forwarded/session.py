"""A session that another service serves: what the caller is told, what the service is told, and when the next session
at the service takes over. Sans-I/O; times are arguments.

Audio that passes untouched takes no other step here than `append` and `sounded`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from voiceapp.errors import FloodError, InvalidParameter
from voiceapp.formats import identifier
from voiceapp.protocol.audio import AudioFormat, Meter, read_format
from voiceapp.protocol.client_side import server_event_of
from voiceapp.protocol.forwarded.event_ids import EventIds
from voiceapp.protocol.forwarded.playout_clock import MOST_AHEAD_S, PlayoutClock
from voiceapp.protocol.forwarded.reading import object_of, response_id_of, written
from voiceapp.protocol.forwarded.replay import ANSWERS, AudioReplay, ConversationReplay
from voiceapp.protocol.forwarded.states import FLOOR_STEPS, PHASE_STEPS, Floor, Phase
from voiceapp.protocol.forwarded.texts import ForwardedEvent
from voiceapp.protocol.forwarded.turns import ForwardedTurns
from voiceapp.protocol.states import step
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import JsonObject
from voiceapp.protocol.work import PlayoutCut, TurnEnded

Out = ev.ServerEvent | PlayoutCut | TurnEnded

TRACK_FORMATS = {"input_audio_format": "pcm16", "sample_rate": 16_000, "output_audio_format": "pcm24"}
"""Settings of a session whose media end here."""
TIMES = ("audio_start_ms", "audio_end_ms")
"""Positions in the audio that the service's session was sent."""
MOST_LOSSES = 3
"""Sessions lost in a row without a response or a transcript between them."""
LOST = "upstream_connection_lost"
SILENT_S = 10.0
"""Longest silence of a service that owes an event."""
AGAIN_S = 30.0
"""Pause after a session that should end soon could not be replaced."""
_NOTHING_SAID = {"output": [], "usage": None, "conversation_id": None, "modalities": ["text", "audio"], "voice": ""}
"""Fields of a response whose end the service did not tell."""
_ASKED = frozenset(ANSWERS.values())


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """Settings that decide what follows speech, as the service has taken them."""

    is_manual: bool = False
    creates_responses: bool = True
    interrupts: bool = True

    @classmethod
    def of(cls, session: JsonObject) -> TurnSettings:
        turns = session.get("turn_detection")
        return cls(
            is_manual="turn_detection" in session and turns is None,
            creates_responses=object_of(turns).get("create_response") is not False,
            interrupts=object_of(turns).get("interrupt_response") is not False,
        )


class ForwardedSession:
    def __init__(
        self,
        session_id: str,
        model: str,
        opening: Mapping[str, object],
        *,
        input_rate_hz: int = 16_000,
        listens_only: bool = False,
        has_track: bool = False,
        is_forwarded: bool = False,
        knows_heard: bool = True,
        limit_s: float = 0.0,
    ) -> None:
        """`is_forwarded`: events are handed on as texts; `knows_heard`: the service sends a reply no faster than a
        caller over a WebSocket hears it; `limit_s` is the longest session at the service, 0 without a limit."""
        self._shown_as = {"id": session_id, "model": model}
        self._listens_only = listens_only
        self._has_track = has_track
        self._is_forwarded = is_forwarded
        self._limit_s = limit_s
        self.phase = Phase.OPENING
        self._floor = Floor.QUIET
        self._turn_settings = TurnSettings()
        self._input = AudioFormat("pcm16", input_rate_hz)
        self._meter = Meter(rate_per_s=2 * 1000)
        self.turns = ForwardedTurns(listens_only=listens_only)
        self.replay = ConversationReplay({**opening, **TRACK_FORMATS} if has_track else opening)
        self.audio = AudioReplay()
        self.clock = PlayoutClock() if has_track or not knows_heard else None
        self._event_ids = EventIds()
        self.refused: set[str] = set()
        """Responses that may not be given: nothing of them is handed on."""
        self._losses = 0
        self._began_ms = 0.0
        """Beginning of the service's session in all audio of the caller."""
        self._due_at: float | None = None
        """When the service's session has to be replaced, at the next silence."""
        self.heard_at = 0.0
        """When the service was last heard, or something was asked of it."""
        self.to_service: list[JsonObject] = []
        """Events of our own, to be taken and sent by the owner."""

    # ── From the caller ──────────────────────────────────────────────────────────────────────────────────────────────

    def append(self, n_bytes: int, now: float) -> float:
        """Count audio of the caller; returns its length in ms.

        Raises:
            FloodError: if it comes too fast.
        """
        length_ms = self._input.wire_ms(n_bytes)
        self.turns.appended(length_ms)
        if not self._meter.accept(length_ms, now):
            raise FloodError("Audio arrives faster than twice real time.", code="audio_too_fast", param="audio")
        return length_ms

    def take(self, wire: JsonObject) -> JsonObject:
        """Take an event of the caller; returns it as the service is to read it."""
        kind = wire["type"]
        if kind == ev.ResponseCreate.type:
            self._floor = step(FLOOR_STEPS, self._floor, "ask")
        elif kind == ev.SessionFinish.type:
            self.phase = step(PHASE_STEPS, self.phase, "finish")
        elif kind == ev.ItemTruncate.type and self.clock is not None:
            self.clock.is_callers = not self._has_track
            return self.clock.within_told(wire)
        if kind in _ASKED:
            wire = self._event_ids.name(wire)
            self.replay.sent(wire)
        return wire

    @staticmethod
    def is_asked(wire: JsonObject) -> bool:
        """True for events that the service answers: the next session is asked for what has no answer yet."""
        return wire["type"] in _ASKED

    # ── From one session at the service to the next ──────────────────────────────────────────────────────────────────

    def opened(self, created: JsonObject, now: float) -> list[Out]:
        """The first session at the service has begun with this `session.created`."""
        self._look_at(created["session"])
        self.begun(now)
        return self._handed_on(self._shown(created), "", now)

    def begun(self, now: float) -> None:
        self.phase = step(PHASE_STEPS, self.phase, "open")
        self._began_ms = self.audio.begins_ms
        self._due_at = now + self._limit_s if self._limit_s else None

    def renew(self) -> None:
        """Enter the renewal: the next session at the service is being begun."""
        self.phase = step(PHASE_STEPS, self.phase, "renew")

    def kept(self, now: float) -> None:
        """Go on with the session, for no other could be begun."""
        self.phase = step(PHASE_STEPS, self.phase, "open")
        self._due_at = now + AGAIN_S

    @property
    def may_renew(self) -> bool:
        """Sessions were not lost too often in a row."""
        return self._losses < MOST_LOSSES

    def lost(self, why: str = "The connection to the service that runs this model was lost") -> list[Out]:
        """The service's session was lost or given up; returns what the caller is told. The next knows nothing of it."""
        is_noticed = self._floor is not Floor.QUIET or self.turns.is_responding
        self._losses += 1
        self.refused.clear()
        self._floor = step(FLOOR_STEPS, self._floor, "stop")
        self.renew()
        if self.phase is Phase.FINISHED:
            return []
        told: list[Out] = [_lost(why)] if is_noticed else []
        return [*told, *map(_failed, self.turns.live_ids), *self.turns.cut_off("failed")]

    def next_timer(self, now: float) -> float | None:
        """When the service's session becomes too old; None when it is, or has no limit."""
        return self._due_at if self._due_at is not None and now < self._due_at else None

    def silent_at(self, now: float) -> float:
        """When the service will have been silent for too long."""
        return (self.heard_at if self._is_awaited else now) + SILENT_S

    def is_stalled(self, now: float) -> bool:
        """True when the service owes an event for too long."""
        return self._is_awaited and now >= self.silent_at(now)

    @property
    def _is_awaited(self) -> bool:
        is_expected = self._floor is Floor.AWAITING or self.turns.is_responding
        return is_expected and self.phase is Phase.LIVE

    def is_due(self, now: float) -> bool:
        """True when the service's session is too old, and nothing is said or played that a caller may interrupt."""
        if self._due_at is None or now < self._due_at or self.phase is not Phase.LIVE or not self.is_quiet:
            return False
        if left_s := self.left_s(now):
            self._due_at = now + left_s
        return not left_s

    # ── To the caller ────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, wire: JsonObject) -> tuple[int, int]:
        """Note a response that has begun; returns its ordinal, and the length of the speech that it follows, in ms."""
        self._floor = step(FLOOR_STEPS, self._floor, "settle")
        return self.turns.begin(response_id_of(wire))

    def refuse(self, wire: JsonObject) -> None:
        """A response that has begun may not be given: the service is told to stop it."""
        self.replay.follow(wire)
        response_id = response_id_of(wire)
        self.turns.drop(response_id)
        self.refused.add(response_id)
        self.to_service.append({"type": ev.ResponseCancel.type, "response_id": response_id})

    def hear(self, wire: JsonObject, text: str, now: float) -> list[Out]:
        """Take an event of the service, `text` as it came, empty when it was translated; returns what is handed on."""
        kind, self.heard_at = wire["type"], now
        if kind == ev.SessionClosing.type:  # of the service's session; this one goes on
            self._due_at = now
            return []
        self.replay.follow(wire)
        if self.refused and (of := response_id_of(wire)) in self.refused:
            if kind == ev.ResponseDone.type:
                self.refused.discard(of)
            return []
        if kind in (ev.SessionCreated.type, ev.SessionUpdated.type) and isinstance(wire.get("session"), dict):
            self._look_at(wire["session"])
            wire, text = self._shown(wire), ""
        elif self._event_ids.is_refused(wire):
            wire, text = self._event_ids.without_id(wire), ""
        elif self._began_ms and kind in (ev.SpeechStarted.type, ev.SpeechStopped.type):
            wire, text = self._in_all_audio(wire), ""
        found = [*self._handed_on(wire, text, now), *self.turns.follow(wire)]
        if self.clock is not None and self._silences(wire):
            if (truncation := self.clock.cut(now)) is not None:
                self.to_service.append(truncation)
            found.append(PlayoutCut())
        self._note(kind, wire)
        return found

    def _handed_on(self, wire: JsonObject, text: str, now: float) -> list[Out]:
        if self._is_forwarded:
            if wire["type"] == ev.AudioDelta.type and isinstance(wire.get("delta"), str):
                self.turns.sounded(len(wire["delta"]) * 3 // 4)
            return [ForwardedEvent(kind=wire["type"], text=text or written(wire))]
        event = server_event_of(wire)
        if isinstance(event, ev.AudioDelta):
            self.turns.sounded(len(event.audio))
            if self.clock is not None:
                self.clock.push(event, self.turns.output_format.wire_ms(len(event.audio)) / 1000, now)
        return [] if event is None else [event]

    def _silences(self, wire: JsonObject) -> bool:
        """True for an event at which what is played falls silent."""
        if wire["type"] == ev.SpeechStarted.type:
            return self._turn_settings.interrupts
        return wire["type"] == ev.ResponseDone.type and object_of(wire.get("response")).get("status") == "cancelled"

    def _note(self, kind: str, wire: JsonObject) -> None:
        """Follow the turn of the conversation."""
        if kind == ev.SpeechStarted.type:
            self._floor = step(FLOOR_STEPS, self._floor, "speech")
            self.audio.is_open = True
        elif kind in (ev.AudioCommitted.type, ev.AudioCleared.type):
            self.audio.forget()
            self.audio.is_open = self._turn_settings.is_manual
        elif kind == ev.SpeechStopped.type:
            is_void = bool(wire.get("reason"))
            is_answered = self._turn_settings.creates_responses and not self._listens_only and not is_void
            self._floor = step(FLOOR_STEPS, self._floor, "expect" if is_answered else "stop")
            if is_void:  # nothing of it is committed
                self.audio.forget()
        elif kind == ev.ResponseDone.type:
            self._losses = 0
        elif kind == ev.TranscriptionCompleted.type:
            self._losses = 0
            if not wire.get("transcript"):
                self._floor = step(FLOOR_STEPS, self._floor, "settle")
        elif kind in (ev.TranscriptionFailed.type, ev.ErrorEvent.type):
            self._floor = step(FLOOR_STEPS, self._floor, "settle")
        elif kind == ev.SessionFinished.type:
            self.phase = step(PHASE_STEPS, self.phase, "end")

    def _look_at(self, session: JsonObject) -> None:
        """Remember what matters here of the settings that the service has taken."""
        self._turn_settings = TurnSettings.of(session)
        self.audio.is_open = self._turn_settings.is_manual or self._floor is Floor.SPEAKING
        self._input = _format(session, "input", self._input)
        self.turns.output_format = _format(session, "output", self.turns.output_format)

    def _in_all_audio(self, wire: JsonObject) -> JsonObject:
        """An event with its times counted from the beginning of the session here."""
        since = {name: wire[name] for name in TIMES if isinstance(wire.get(name), int)}
        return {**wire, **{name: ms + round(self._began_ms) for name, ms in since.items()}}

    def _shown(self, wire: JsonObject) -> JsonObject:
        """An event with a session under the names that it has here."""
        return {**wire, "session": {**wire["session"], **self._shown_as}}

    # ── State ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_quiet(self) -> bool:
        """The caller does not speak, and no response is under way or expected."""
        if self.replay.unanswered or self.turns.is_responding or self.refused or self._floor is not Floor.QUIET:
            return False
        return not (self._turn_settings.is_manual and self.turns.has_uncommitted)

    def left_s(self, now: float) -> float:
        """Seconds until all that was handed on has been played; 0 when the caller paces."""
        return self.clock.left_s(now) if self.clock is not None else 0.0

    def overfull_s(self, now: float) -> float:
        """Seconds until speech for a media track has room; callers without one are sent it at once."""
        return max(0.0, self.left_s(now) - MOST_AHEAD_S) if self._has_track else 0.0

    def close(self) -> Sequence[TurnEnded]:
        """End; returns the records of exchanges that this cut off."""
        return self.turns.cut_off("cancelled")


def _format(session: JsonObject, side: str, usual: AudioFormat) -> AudioFormat:
    nested = object_of(object_of(session.get("audio")).get(side)).get("format")
    try:
        given = nested or session.get(f"{side}_audio_format") or usual.name
        return read_format(given, param=side, default_rate_hz=usual.sample_rate_hz)
    except InvalidParameter:
        return usual


def _lost(why: str) -> ev.ErrorEvent:
    """The session was lost while the caller waited for something, or spoke."""
    message = f"{why}; the conversation goes on."
    return ev.ErrorEvent(event_id=identifier("event"), code=LOST, message=message, error_type="server_error")


def _failed(response_id: str) -> ev.ResponseDone:
    about = {"type": "failed", "reason": LOST, "error": {"type": "server_error", "code": LOST}}
    ended = {"id": response_id, "object": "realtime.response", "status": "failed", "status_details": about}
    return ev.ResponseDone(event_id=identifier("event"), response={**_NOTHING_SAID, **ended})
