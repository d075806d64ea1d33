"""One conversation with a realtime model that a service elsewhere serves: their events pass as ours.

Nothing is buffered here. An event of the service is read when the one before it was taken, and an event of the caller
is sent before the next one is read, so that whoever reads slowly holds up the other side and costs no memory.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from voiceapp.engines.interfaces import Call, NextResponse
from voiceapp.engines.upstream.realtime.connection import REFUSED_FOR_GOOD, EventLine, LineLost, wire_of
from voiceapp.engines.upstream.realtime.sessions import ServiceLines
from voiceapp.errors import FloodError, InvalidParameter
from voiceapp.protocol import events as ev
from voiceapp.protocol.audio import AudioFormat, Meter, read_format
from voiceapp.protocol.client_side import client_event_wire, server_event_of
from voiceapp.protocol.forwarded import lost_session as losses
from voiceapp.protocol.forwarded.event_ids import Names
from voiceapp.protocol.forwarded.fields import response_id_of
from voiceapp.protocol.forwarded.playout_clock import Playing
from voiceapp.protocol.forwarded.replay import ANSWERS, KeptConversation
from voiceapp.protocol.forwarded.turns import ForwardedTurns
from voiceapp.protocol.forwarding import ForwardedEvent, ForwardedMessage, for_service, spoken_bytes
from voiceapp.protocol.work import PlayoutCut, TurnEnded

logger = logging.getLogger(__name__)

Out = ev.ServerEvent | PlayoutCut | TurnEnded

TRACK_FORMATS = {"input_audio_format": "pcm16", "sample_rate": 16_000, "output_audio_format": "pcm24"}
"""Of a session whose media end here."""
TIMES = ("audio_start_ms", "audio_end_ms")
"""Where something is in the audio that a session there was sent."""


class UpstreamStream:
    """A `RealtimeStream`. All methods belong to the event loop's thread."""

    def __init__(
        self,
        call: Call,
        dial: Callable[[], Awaitable[EventLine]],
        *,
        session_limit_s: float = 0.0,
        knows_heard: bool = True,
    ) -> None:
        """`dial` gives a line to the service; `session_limit_s` is how long a session there may last, 0: any time;
        `knows_heard`: a caller over a WebSocket is sent a reply no faster than it is heard."""
        self._call = call
        self._now = asyncio.get_running_loop().time
        self._idle = asyncio.Event()
        self._idle.set()
        self._losses = 0
        self._is_finishing = False
        self._is_finished = False
        self._is_speaking = False
        self._awaits_response = False
        self._creates_responses = True
        self._is_manual = False
        self._interrupts = True
        self._refused: set[str] = set()
        """Responses that may not be given: nothing of them is handed on."""
        self._input = AudioFormat("pcm16", call.input_rate_hz)
        self._meter = Meter(rate_per_s=2 * 1000)
        self._turns = ForwardedTurns(listens_only=call.listens_only)
        self._kept = KeptConversation({**call.opening, **TRACK_FORMATS} if call.has_track else call.opening)
        self._lines = ServiceLines(call.session_id, dial, self._kept, limit_s=session_limit_s)
        self._names = Names()
        self._playing = Playing(self._now) if call.has_track or not knows_heard else None

    # ── From the caller ──────────────────────────────────────────────────────────────────────────────────────────────

    async def receive(self, event: ev.ClientEvent) -> None:
        """See `RealtimeStream`."""
        if isinstance(event, ForwardedMessage) and event.wire is None:
            await self._append(event.text, event.audio_bytes)
            return
        if isinstance(event, ev.AudioAppend):
            await self._append(_text(client_event_wire(event)), len(event.audio))
            return
        wire = event.wire if isinstance(event, ForwardedMessage) else client_event_wire(event)
        assert wire is not None
        wire = for_service(wire)
        kind = wire["type"]
        if kind == ev.ResponseCreate.type:
            self._awaits_response = True
            self._idle.clear()
        elif kind == ev.SessionFinish.type:
            self._is_finishing = True
        elif kind == ev.ItemTruncate.type and self._playing is not None:
            self._playing.is_callers = not self._call.has_track
            wire = self._playing.with_known(wire)
        if kind in ANSWERS.values():
            await self._lines.ask(self._names.name(wire))
        else:
            await self._lines.send(_text(wire))

    async def _append(self, text: str, n_bytes: int) -> None:
        """Send audio of the caller's.

        Raises:
            FloodError: if it comes too fast.
        """
        length_ms = self._input.wire_ms(n_bytes)
        self._turns.appended(length_ms)
        if not self._meter.accept(length_ms, self._now()):
            raise FloodError("Audio arrives faster than twice real time.", code="audio_too_fast", param="audio")
        await self._lines.send(text)
        self._lines.audio.push(text, length_ms)

    # ── To the caller ────────────────────────────────────────────────────────────────────────────────────────────────

    async def events(self) -> AsyncGenerator[Out, None]:
        """See `RealtimeStream`."""
        try:
            for event in self._opened(await self._lines.open()):
                yield event
            while not self._is_finished:
                try:
                    text = await self._lines.receive()
                except LineLost as lost:
                    for event in self._after(lost):
                        yield event
                    if self._is_finishing:
                        return
                    await self._lines.renew(lost.failure)
                    continue
                if self._call.is_forwarded and not self._refused and (size := spoken_bytes(text)) is not None:
                    self._turns.sounded(size)
                    yield ForwardedEvent(kind=ev.AudioDelta.type, text=text)
                    continue
                if text and (wire_or_none := wire_of(text)) is not None:
                    for event in await self._follow(wire_or_none, text):
                        yield event
                    if self._playing is not None and self._call.has_track:  # others are sent it at once
                        await self._playing.wait_for_room()
                if self._lines.is_due and self._is_quiet and not self._is_finishing:
                    await self._replace()
                if self._is_quiet:
                    self._idle.set()
        finally:
            await self._lines.close()

    async def _replace(self) -> None:
        """Go on in another session, unless something is still heard that a caller may interrupt."""
        if self._playing is not None and self._playing.left_s:
            self._lines.put_off(self._playing.left_s)
        else:
            await self._lines.replace()

    def _opened(self, created: dict[str, Any]) -> list[Out]:
        self._look_at(created)
        return self._handed_on({**created, "session": self._shown(created["session"])}, "")

    async def _follow(self, wire: dict[str, Any], text: str) -> list[Out]:
        """What becomes of an event of the service's."""
        kind = wire["type"]
        if kind == ev.SessionClosing.type:  # of the session there; the one here goes on
            self._lines.is_due = True
            return []
        self._kept.follow(wire)
        if kind == ev.ResponseCreated.type and not await self._may_begin(wire):
            return []
        if self._refused and (of := response_id_of(wire)) in self._refused:
            if kind == ev.ResponseDone.type:
                self._refused.discard(of)
            return []
        found: list[Out] = []
        if kind in (ev.SessionCreated.type, ev.SessionUpdated.type) and isinstance(wire.get("session"), dict):
            self._look_at(wire)
            wire, text = {**wire, "session": self._shown(wire["session"])}, ""
        elif self._names.is_refused(wire):
            wire, text = self._names.without_name(wire), ""
        elif self._lines.began_ms and kind in (ev.SpeechStarted.type, ev.SpeechStopped.type):
            wire, text = self._in_all_audio(wire), ""
        found += self._handed_on(wire, text)
        found += self._turns.follow(wire)
        found += await self._silence(kind, wire)
        self._note(kind, wire)
        return found

    def _handed_on(self, wire: dict[str, Any], text: str) -> list[Out]:
        if self._call.is_forwarded:
            if wire["type"] == ev.AudioDelta.type and isinstance(wire.get("delta"), str):
                self._turns.sounded(len(wire["delta"]) * 3 // 4)
            return [ForwardedEvent(kind=wire["type"], text=text or _text(wire))]
        event = server_event_of(wire)
        if isinstance(event, ev.AudioDelta):
            self._turns.sounded(len(event.audio))
            if self._playing is not None:
                self._playing.push(event, self._turns.output_format.wire_ms(len(event.audio)) / 1000)
        return [] if event is None else [event]

    def _note(self, kind: str, wire: dict[str, Any]) -> None:
        """Whether the caller speaks, or waits for a response."""
        if kind == ev.SpeechStarted.type:
            self._is_speaking = self._lines.audio.is_open = True
        elif kind in (ev.AudioCommitted.type, ev.AudioCleared.type):
            self._lines.audio.forget()
            self._lines.audio.is_open = self._is_manual
        elif kind == ev.SpeechStopped.type:
            self._is_speaking = False
            self._awaits_response = self._creates_responses and not self._call.listens_only and not wire.get("reason")
            if wire.get("reason"):  # nothing of it is committed
                self._lines.audio.forget()
        elif kind == ev.ResponseDone.type:
            self._losses = 0
        elif kind == ev.TranscriptionCompleted.type:
            self._losses = 0
            self._awaits_response = self._awaits_response and bool(wire.get("transcript"))
        elif kind in (ev.TranscriptionFailed.type, ev.ErrorEvent.type):
            self._awaits_response = False
        elif kind == ev.SessionFinished.type:
            self._is_finished = True
        if not self._is_quiet:
            self._idle.clear()

    async def _silence(self, kind: str, wire: dict[str, Any]) -> list[Out]:
        """Where what is played here against the clock has to fall silent."""
        if self._playing is None:
            return []
        response = wire.get("response")
        is_cut = kind == ev.ResponseDone.type and isinstance(response, dict) and response.get("status") == "cancelled"
        if not is_cut and not (kind == ev.SpeechStarted.type and self._interrupts):
            return []
        if (truncation := self._playing.cut()) is not None:
            await self._lines.tell(truncation)
        return [PlayoutCut()]

    async def _may_begin(self, wire: dict[str, Any]) -> bool:
        """Whether a response may be given; if not, the service is told to stop it."""
        response_id = response_id_of(wire)
        ordinal, input_audio_ms = self._turns.begin(response_id)
        self._awaits_response = False
        self._idle.clear()
        ask = self._call.before_response
        if ask is None:
            return True
        response = wire.get("response")
        modalities = response.get("modalities") if isinstance(response, dict) else None
        speaks = modalities != ["text"]
        refused = await ask(NextResponse(ordinal, input_audio_ms, 0, None, speaks))
        if refused:
            self._turns.drop(response_id)
            self._refused.add(response_id)
            await self._lines.tell({"type": ev.ResponseCancel.type, "response_id": response_id})
        return not refused

    def _after(self, lost: LineLost) -> list[Out]:
        """What the caller is told of a loss.

        Raises:
            EngineUnavailable: if another session there could not go on with the conversation.
        """
        found: list[Out] = []
        self._losses += 1
        if self._is_finishing:
            return found
        if lost.code in REFUSED_FOR_GOOD or self._losses > losses.MOST_LOSSES:
            raise lost.failure
        found += self._told_of(lost, is_noticed=self._turns.is_responding)
        found += map(losses.failed, self._turns.live_ids)
        found += self._turns.cut_off("failed")
        return found

    def _told_of(self, lost: LineLost, *, is_noticed: bool) -> list[Out]:
        """A loss, for the log and, where they notice it, for the caller; the next session knows nothing of this one."""
        logger.warning("session %s: the service ended its session (%d)", self._call.session_id, lost.code)
        is_noticed = is_noticed or self._is_speaking or self._awaits_response
        self._refused.clear()
        self._is_speaking = self._awaits_response = False
        return [losses.lost()] if is_noticed else []

    # ── State ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def wait_idle(self) -> None:
        """See `RealtimeStream`."""
        await self._idle.wait()
        while self._playing is not None and self._playing.left_s:
            await self._playing.wait_end()
            await self._idle.wait()

    def close(self) -> Sequence[TurnEnded]:
        """See `RealtimeStream`; the line is closed where `events` ends."""
        return self._turns.cut_off("cancelled")

    @property
    def _is_quiet(self) -> bool:
        """Nobody speaks, and no response is under way or expected."""
        is_busy = (
            self._kept.unanswered
            or self._turns.is_responding
            or self._refused
            or self._is_speaking
            or self._awaits_response
        )
        return not is_busy and not (self._is_manual and self._turns.has_uncommitted)

    def _look_at(self, wire: dict[str, Any]) -> None:
        """Remember what matters here of the settings that the service has taken."""
        session = wire["session"]
        turns = session.get("turn_detection")
        self._is_manual = "turn_detection" in session and turns is None
        self._lines.audio.is_open = self._is_manual or self._is_speaking
        self._creates_responses = not isinstance(turns, dict) or turns.get("create_response") is not False
        self._interrupts = not isinstance(turns, dict) or turns.get("interrupt_response") is not False
        self._input = _format(session, "input", self._input)
        self._turns.output_format = _format(session, "output", self._turns.output_format)

    def _in_all_audio(self, wire: dict[str, Any]) -> dict[str, Any]:
        """An event with its times counted from the beginning of the session here."""
        since = {name: wire[name] for name in TIMES if isinstance(wire.get(name), int)}
        return {**wire, **{name: ms + round(self._lines.began_ms) for name, ms in since.items()}}

    def _shown(self, session: dict[str, Any]) -> dict[str, Any]:
        """The session under the names that it has here."""
        return {**session, "id": self._call.session_id, "model": self._call.model}


def _format(session: dict[str, Any], side: str, usual: AudioFormat) -> AudioFormat:
    audio = session.get("audio")
    of_side = audio.get(side) if isinstance(audio, dict) else None
    nested = of_side.get("format") if isinstance(of_side, dict) else None
    try:
        given = nested or session.get(f"{side}_audio_format") or usual.name
        return read_format(given, param=side, default_rate_hz=usual.sample_rate_hz)
    except InvalidParameter:
        return usual


def _text(wire: dict[str, Any]) -> str:
    return json.dumps(wire, separators=(",", ":"))
