"""A line to a service elsewhere that writes its replies, which are spoken here.

Whoever uses the line finds a service that speaks: it sends a reply no faster than it is heard, falls silent when it is
interrupted, and keeps in its conversation only what was heard.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

from voiceapp.engines.interfaces import Call, Synthesizer
from voiceapp.engines.upstream.line import LOST, EventLine, LineLost, wire_of
from voiceapp.engines.upstream.spoken import SpokenResponses
from voiceapp.errors import FloodError, InvalidParameter, RemoteProtocolError
from voiceapp.formats import identifier
from voiceapp.protocol import events as ev
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import SessionConfig, merge, merge_response
from voiceapp.protocol.forwarding import appended_bytes
from voiceapp.protocol.reading import JsonObject

OF_VOICE = ("voice", "output_audio_format")
"""Settings that are ours."""
WRITES = {"modalities": ["text"]}
MOST_SAID = 100
"""Events that may wait to be received when the response to another one is added."""
HELD = (ev.ResponseCreated.type, ev.SessionFinished.type)
"""Events that wait until a reply has been spoken, and what follows them."""
MOST_HELD = 4_000
MOST_HELD_CHARACTERS = 2_000_000
"""What may wait so; another reply's words come in small pieces."""


class _Asked(NamedTuple):
    """A response that the caller asked for."""

    by: object
    """Id of the event that asked."""
    config: SessionConfig
    is_apart: bool
    """Out of band."""


class VoicedLine:
    """One session with the service."""

    def __init__(self, line: EventLine, call: Call, synthesizer: Synthesizer, tasks: asyncio.TaskGroup) -> None:
        """Replies are spoken in `tasks`."""
        self._line = line
        self._now = asyncio.get_running_loop().time
        self._config = SessionConfig(
            model=call.model,
            voice=synthesizer.default_voice,
            input_format=AudioFormat("pcm16", call.input_rate_hz),
            output_format=AudioFormat("pcm16", 24_000),
        )
        self._of_next: _Asked | None = None
        self.cut: LineLost | None = None
        """See `EventLine`: what the service wrote is complete, and spoken to its end."""
        self._came: deque[str] = deque()
        """What is to be received: of one event of the service's, or what became due."""
        self._to_tell: deque[JsonObject] = deque()
        self._held: deque[tuple[JsonObject, str]] = deque()
        """What of the service's waits until a reply has been spoken, each as object and as text."""
        self._held_characters = 0
        self._receiving: asyncio.Task[str] | None = None
        """The next message of the service's, waited for by whoever receives next."""
        self._news: asyncio.Future[None] | None = None
        """Done when there is something to look at while somebody waits."""
        self._name = call.session_id
        self._is_finishing = False
        self._responses = SpokenResponses(
            call, synthesizer, tasks, say=self._say, tell=self._to_tell.append, changed=self._look_again
        )

    @property
    def age_s(self) -> float:
        """How long its session is open."""
        return self._line.age_s

    async def close(self) -> None:
        """Stop speaking, and close the connection."""
        self._responses.stop()
        await self._line.close()
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.gather(self._receiving, return_exceptions=True)

    @property
    def is_speaking(self) -> bool:
        """See `EventLine`."""
        return self._responses.is_live

    def go_on_from(self, before: EventLine) -> None:
        """See `EventLine`."""
        if not isinstance(before, VoicedLine):
            return
        if before.cut is None:
            self._responses.go_on_from(before._responses)
            return
        self._responses, before._responses = before._responses, self._responses
        self._responses.move(say=self._say, tell=self._to_tell.append, changed=self._look_again)
        self._came.extendleft(reversed(before._came))

    # ── To the service ───────────────────────────────────────────────────────────────────────────────────────────────

    async def send(self, text: str) -> None:
        """See `EventLine`.

        Raises:
            FloodError: too many refusals wait to be read.
        """
        if appended_bytes(text) is not None:
            await self._line.send(text)
            return
        try:
            wire = self._asked(json.loads(text))
        except (InvalidParameter, RemoteProtocolError) as refused:
            self._require_room()
            self._say(_error_about(text, refused))
            return
        await self._tell()
        if wire is not None:
            await self._line.send(json.dumps(wire, separators=(",", ":")))

    def _asked(self, wire: JsonObject) -> JsonObject | None:
        """What of an event of the caller's goes to the service.

        Raises:
            InvalidParameter: if a setting of it cannot be read.
            RemoteProtocolError: if it cannot be done now.
        """
        kind = wire["type"]
        if kind == ev.SessionUpdate.type:
            self._config = merge(self._config, wire["session"])
            return {**wire, "session": {**_without_voice(wire["session"]), **WRITES}}
        if kind == ev.ResponseCreate.type:
            return self._response_asked(wire)
        if kind == ev.ResponseCancel.type and self._responses.is_live:
            self._responses.cancel_on_request(wire.get("response_id"), self._now())
            return None
        if kind == ev.ItemTruncate.type:
            self._require_room()
            if self._responses.truncate(wire, self._now()):
                return None
        if kind == ev.SessionFinish.type:
            self._is_finishing = True
            self._look_again()
        return wire

    def _require_room(self) -> None:
        """Check that a response to the caller can be kept until it is received.

        Raises:
            FloodError: if too many are.
        """
        if len(self._came) >= MOST_SAID:
            raise FloodError(
                "Too many events were responded to before the responses were read.", code="too_many_refused"
            )

    def _response_asked(self, wire: JsonObject) -> JsonObject:
        self._responses.require_free()
        patch = wire.get("response")
        if not isinstance(patch, dict):
            return wire
        config, is_apart = merge_response(self._config, patch), patch.get("conversation") == "none"
        self._of_next = _Asked(wire.get("event_id"), config, is_apart)
        return {**wire, "response": {**_without_voice(patch), **WRITES}}

    async def _tell(self) -> None:
        with suppress(LineLost):  # another session has no use for it, and whoever receives notices
            while self._to_tell:
                await self._line.send(json.dumps(self._to_tell.popleft()))

    # ── From the service ─────────────────────────────────────────────────────────────────────────────────────────────

    async def receive(self) -> str:
        """See `EventLine`."""
        try:
            while True:
                await self._tell()
                self._responses.advance(self._now(), is_hurried=self._is_finishing)
                if self._came:
                    return self._came.popleft()
                if self.cut is not None and not self._responses.is_live:
                    raise self.cut
                if self._held and not self._has_to_wait(self._held[0][0]["type"]):
                    wire, text = self._held.popleft()
                    self._held_characters -= len(text)
                    self._follow(wire, text)
                elif (text := await self._next()) and (received := wire_of(text)) is not None:
                    self._take(received, text)
        except LineLost:
            self._responses.stop()
            raise

    async def _next(self) -> str:
        """The next event of the service's; empty when something is due here."""
        waited: list[asyncio.Future[Any]] = []
        if self._reads:
            if self._receiving is None:
                self._receiving = asyncio.create_task(self._line.receive(), name=f"session {self._name}: next message")
            waited.append(self._receiving)
        self._news = asyncio.get_running_loop().create_future()
        due_at = self._responses.due_at
        timeout_s = None if due_at is None else max(0.0, due_at - self._now())
        await asyncio.wait((*waited, self._news), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if self._receiving is None or not self._receiving.done():
            return ""
        received, self._receiving = self._receiving, None
        if received.cancelled():  # closed meanwhile
            raise LineLost(LOST)
        try:
            return received.result()
        except LineLost as lost:
            if self._held or self._responses.is_writing or not self._responses.is_live:
                raise
            self.cut = lost
            return ""

    @property
    def _reads(self) -> bool:
        """Events of the service's are read: not after its last one, which the end of the connection follows, and not
        while too many are held, unless the reply that they wait for is among those to come."""
        if self.cut is not None:
            return False
        if self._held and self._held[-1][0]["type"] == ev.SessionFinished.type:
            return False
        return not self._is_full or self._responses.is_writing

    @property
    def _is_full(self) -> bool:
        return len(self._held) >= MOST_HELD or self._held_characters >= MOST_HELD_CHARACTERS

    def _take(self, wire: JsonObject, text: str) -> None:
        """Follow an event that was received, or hold it.

        Raises:
            LineLost: if too many are held.
        """
        kind = wire["type"]
        if self._held and self._responses.owns(wire):
            self._follow(wire, text)
        elif self._held or self._has_to_wait(kind):
            if self._is_full:
                raise LineLost(LOST)
            self._held.append((wire, text))
            self._held_characters += len(text)
            if kind == ev.SpeechStarted.type:
                self._interrupt()
            elif kind == ev.SessionFinished.type:
                self._responses.end_writing()
        else:
            self._follow(wire, text)

    def _has_to_wait(self, kind: str) -> bool:
        """A reply has to be spoken before an event of this kind, unless the caller has begun to speak since."""
        if kind not in HELD or not self._responses.is_live:
            return False
        if any(held["type"] == ev.SpeechStarted.type for held, _ in self._held):
            self._interrupt()
        return self._responses.is_live

    def _follow(self, wire: JsonObject, text: str) -> None:
        kind = wire["type"]
        if kind == ev.ResponseCreated.type:
            asked, self._of_next = self._of_next, None
            config = self._config if asked is None else asked.config
            self._responses.begin(wire, config, self._now(), is_apart=asked is not None and asked.is_apart)
        elif kind in (ev.SessionCreated.type, ev.SessionUpdated.type) and isinstance(wire.get("session"), dict):
            self._say({**wire, "session": self._shown(wire["session"])})
        elif not self._responses.takes(wire, self._now()):
            self._came.append(text)
            if kind == ev.SpeechStarted.type:
                self._interrupt()
            elif kind == ev.ErrorEvent.type and self._of_next is not None:
                error = wire.get("error")
                if isinstance(error, dict) and error.get("event_id") == self._of_next.by:
                    self._of_next = None  # the response that was asked for will not come

    def _interrupt(self) -> None:
        """The caller has begun to speak."""
        turns = self._config.turn_detection
        if turns is not None and turns.interrupt_response:
            self._responses.interrupt(self._now())

    def _shown(self, session: JsonObject) -> JsonObject:
        """The service's settings, with what is ours."""
        ours = self._config.to_wire()
        audio = session.get("audio")
        of_sides = audio if isinstance(audio, dict) else {}
        flat = {name: ours[name] for name in ("modalities", *OF_VOICE)}
        return {**session, **flat, "audio": {**of_sides, "output": ours["audio"]["output"]}}

    def _say(self, wire: JsonObject) -> None:
        """Have `receive` return this."""
        self._came.append(json.dumps(wire, separators=(",", ":")))
        self._look_again()

    def _look_again(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


def _without_voice(settings: JsonObject) -> JsonObject:
    found = {name: value for name, value in settings.items() if name not in OF_VOICE}
    if isinstance(found.get("audio"), dict):
        found["audio"] = {side: value for side, value in found["audio"].items() if side != "output"}
    return found


def _error_about(text: str, refused: InvalidParameter | RemoteProtocolError) -> JsonObject:
    wire = json.loads(text)
    return ev.ErrorEvent(
        event_id=identifier("event"),
        code=refused.code if isinstance(refused, RemoteProtocolError) else "invalid_value",
        message=refused.message,
        param=refused.param,
        about=wire.get("event_id"),
    ).to_wire()
