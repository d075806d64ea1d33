"""One conversation with a realtime model that another service serves: one receive loop, over one session at the service
after the other. What passes is decided in `protocol.forwarded`.

Nothing is buffered here. An event of the service is read when the one before it was taken, and an event of the caller
is sent before the next one is read, so that a slow reader holds up the other side and costs no memory.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from voiceapp.engines.interfaces import Call, NextResponse
from voiceapp.engines.upstream.realtime.connection import (
    REFUSED_FOR_GOOD,
    ServiceConnection,
    ServiceLost,
    ServiceSilent,
)
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout
from voiceapp.protocol.client_side import client_event_wire
from voiceapp.protocol.forwarded.reading import object_of, wire_of
from voiceapp.protocol.forwarded.session import ForwardedSession, Out
from voiceapp.protocol.forwarded.states import Phase
from voiceapp.protocol.forwarded.texts import ForwardedEvent, ForwardedMessage, for_service, spoken_bytes
from voiceapp.protocol.speaking.stock_replies import StockReply
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import JsonObject
from voiceapp.protocol.work import PlayoutCut, TurnEnded

logger = logging.getLogger(__name__)

BEGIN_S = 15.0
"""Timeout of the first exchange of a session at the service."""
ITEMS_AT_ONCE = 20
"""Items that are created before their answers are waited for: the service may be far away."""
RENEW_S = 10.0
"""Longest time in which a lost session is begun again."""
PAUSE_S = 0.5
"""Pause between two attempts."""


class UpstreamSession:
    """A `RealtimeStream`. All methods belong to the event loop's thread."""

    def __init__(
        self,
        call: Call,
        dial: Callable[[], Awaitable[ServiceConnection]],
        *,
        session_limit_s: float = 0.0,
        knows_heard: bool = True,
    ) -> None:
        """`dial` connects to the service; for the rest see `ForwardedSession`."""
        self._call = call
        self._dial = dial
        self._now = asyncio.get_running_loop().time
        self._core = ForwardedSession(
            call.session_id,
            call.model,
            call.opening,
            input_rate_hz=call.input_rate_hz,
            listens_only=call.listens_only,
            has_track=call.has_track,
            is_forwarded=call.is_forwarded,
            knows_heard=knows_heard,
            limit_s=session_limit_s,
        )
        self._connection: ServiceConnection | None = None
        self._ready = asyncio.Event()
        """The connection can be written to."""
        self._attempts = 0
        self._replayed_in = 0
        """The attempt whose session is in use: it was asked all that had no answer when the attempt began."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._was_cut = asyncio.Event()

    # ── From the caller ──────────────────────────────────────────────────────────────────────────────────────────────

    async def receive(self, event: ev.ClientEvent) -> None:
        if isinstance(event, ForwardedMessage):
            if event.wire is None:
                await self._append(event.text, event.audio_bytes)
                return
            wire, text = event.wire, event.text
        else:
            wire, text = client_event_wire(event), ""
            if isinstance(event, ev.AudioAppend):
                await self._append(wire, len(event.audio))
                return
        self._core.heard_at = self._now()
        taken = self._core.take(for_service(wire))
        self._heed_quiet()
        if self._core.is_asked(taken):
            await self._ask(taken)
        else:
            await self._send(text if text and taken is wire else taken)

    async def _append(self, message: str | JsonObject, n_bytes: int) -> None:
        """Send audio of the caller.

        Raises:
            FloodError: if it comes too fast.
        """
        length_ms = self._core.append(n_bytes, self._now())
        await self._send(message)
        self._core.audio.push(message, length_ms)

    async def _send(self, event: str | JsonObject) -> None:
        """Send an event of the caller; one over which a connection is lost is sent over the next one."""
        while True:
            await self._ready.wait()
            connection = self._connection
            assert connection is not None
            try:
                await connection.send(event)
            except ServiceLost:
                if connection is self._connection:
                    self._ready.clear()  # `events` notices the loss too, and begins another session or gives up
            else:
                return

    async def _ask(self, wire: JsonObject) -> None:
        """Send an event that the service answers, unless a session was begun meanwhile, which was asked then."""
        attempts = self._attempts
        await self._ready.wait()
        if self._replayed_in <= attempts:
            await self._tell(wire)

    async def _tell(self, wire: JsonObject) -> None:
        """Send an event that another session does not need."""
        assert self._connection is not None
        with suppress(ServiceLost):
            await self._connection.send(wire)

    # ── To the caller ────────────────────────────────────────────────────────────────────────────────────────────────

    async def events(self) -> AsyncGenerator[Out, None]:
        core = self._core
        try:
            for event in await self._open():
                yield event
            while core.phase is not Phase.FINISHED:
                assert self._connection is not None
                try:
                    now = self._now()
                    due_at = core.next_timer(now)
                    until = min(core.silent_at(now), math.inf if due_at is None else due_at)
                    message = await self._connection.receive(until)
                except (TimeoutError, ServiceLost) as error:
                    lost = error if isinstance(error, ServiceLost) else ServiceSilent()
                    if lost is error or core.is_stalled(self._now()):
                        for event in self._after(lost):
                            yield event
                        if core.phase is Phase.RENEWING:
                            await self._renew(lost.failure)
                        continue
                else:
                    if isinstance(message, str):
                        is_passed = self._call.is_forwarded and not core.refused
                        if is_passed and (size := spoken_bytes(message)) is not None:
                            core.turns.sounded(size)
                            core.heard_at = self._now()
                            yield ForwardedEvent(kind=ev.AudioDelta.type, text=message)
                            continue
                        wire, text = wire_of(message), message
                    else:
                        wire, text = message, ""
                    if wire is not None:
                        for event in await self._follow(wire, text):
                            yield event
                        if overfull_s := core.overfull_s(self._now()):
                            await asyncio.sleep(overfull_s)
                if core.is_due(self._now()):
                    await self._replace()
                self._heed_quiet()
        finally:
            self._ready.clear()
            if self._connection is not None:
                await self._connection.close()

    async def _follow(self, wire: JsonObject, text: str) -> list[Out]:
        """Take an event of the service; returns what is handed on."""
        if wire["type"] == ev.ResponseCreated.type and not await self._may_begin(wire):
            found: list[Out] = []
        else:
            found = self._core.hear(wire, text, self._now())
        for told in self._core.to_service:
            await self._tell(told)
        self._core.to_service.clear()
        if any(isinstance(event, PlayoutCut) for event in found):
            self._was_cut.set()
        return found

    async def _may_begin(self, wire: JsonObject) -> bool:
        """Ask whether a response may be given; one that may not is refused."""
        ordinal, input_audio_ms = self._core.begin(wire)
        self._idle.clear()
        if self._call.before_response is None:
            return True
        speaks = object_of(wire.get("response")).get("modalities") != ["text"]
        is_refused = bool(await self._call.before_response(NextResponse(ordinal, input_audio_ms, 0, None, speaks)))
        if is_refused:
            self._core.refuse(wire)
        return not is_refused

    def _after(self, lost: ServiceLost) -> list[Out]:
        """Take the loss of the service's session; returns what the caller is told.

        Raises:
            EngineUnavailable: if another session there could not go on with the conversation.
        """
        self._ready.clear()
        is_over = self._core.phase is Phase.FINISHING
        if not is_over and (lost.code in REFUSED_FOR_GOOD or not self._core.may_renew):
            raise lost.failure
        if not is_over:
            logger.warning("session %s: the service's session is lost: %s", self._call.session_id, lost)
        return self._core.lost(lost.told)

    # ── Sessions at the service ──────────────────────────────────────────────────────────────────────────────────────

    async def _open(self) -> list[Out]:
        """Begin the first session at the service; returns what is handed on.

        Raises:
            EngineError: if the service cannot be reached, or refuses it.
        """
        try:
            connection, created = await _begin(await self._dial(), self._core.replay.settings, ())
        except ServiceLost as lost:
            raise lost.failure from None
        found = self._core.opened(created, self._now())
        self._connection = connection
        self._ready.set()
        return found

    async def _renew(self, failure: EngineError) -> None:
        """Begin a session in the place of a lost one; `failure` says what became of that.

        Raises:
            EngineError: if that does not succeed in time, or the service refuses it.
        """
        until = self._now() + RENEW_S
        while True:
            try:
                await self._begin_again()
            except ServiceLost:
                error = failure
            except EngineError as refused:
                error = refused
            else:
                return
            if not error.retryable or self._now() > until:
                raise error
            await asyncio.sleep(PAUSE_S)

    async def _replace(self) -> None:
        """Begin a session in the place of one that is still open; if that fails, go on with it for a while."""
        self._core.renew()
        self._ready.clear()
        try:
            await self._begin_again()
        except (EngineError, ServiceLost) as error:
            logger.warning("session %s: no new session at the service: %s", self._call.session_id, error)
            self._core.kept(self._now())
            self._ready.set()

    async def _begin_again(self) -> None:
        """Begin the next session, with what was said, what is not answered and what the caller is saying."""
        core = self._core
        connection, _ = await _begin(await self._dial(), core.replay.settings, core.replay.items())
        self._attempts += 1
        attempt = self._attempts
        try:
            for message in (*core.replay.unanswered, *core.audio.messages()):
                await connection.send(message)
        except BaseException:
            await connection.close()
            raise
        logger.info("session %s: goes on in a new session at the service", self._call.session_id)
        core.begun(self._now())
        self._replayed_in = attempt
        before, self._connection = self._connection, connection
        self._ready.set()
        if before is not None:
            await before.close()

    # ── State ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def notify(self, words: str | StockReply) -> bool:
        return False

    async def wait_idle(self) -> None:
        await self._idle.wait()
        while (left_s := self._core.left_s(self._now())) > 0:
            self._was_cut.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._was_cut.wait()
            await self._idle.wait()

    def close(self) -> Sequence[TurnEnded]:
        """See `RealtimeStream`; the connection is closed where `events` ends."""
        return self._core.close()

    def _heed_quiet(self) -> None:
        if self._core.is_quiet:
            self._idle.set()
        else:
            self._idle.clear()


async def _begin(
    connection: ServiceConnection, settings: Mapping[str, Any], items: Sequence[JsonObject]
) -> tuple[ServiceConnection, JsonObject]:
    """Settle a session at the service: its settings, and the items that it goes on from. Returns the connection, and
    `session.created` with the settings that the service has taken. The connection is closed when this raises.

    Raises:
        EngineRefused: the service says an error before the session begins.
        EngineTimeout: it takes too long.
        ServiceLost: it ends the session.
    """
    try:
        async with asyncio.timeout(BEGIN_S):
            return connection, await _settled(connection, settings, items)
    except TimeoutError:
        await connection.close()
        raise EngineTimeout("The service that runs this model did not begin the session in time.") from None
    except (EngineRefused, ServiceLost, asyncio.CancelledError):
        await connection.close()
        raise


async def _settled(
    connection: ServiceConnection, settings: Mapping[str, Any], items: Sequence[JsonObject]
) -> JsonObject:
    created = await _next(connection, ev.SessionCreated.type)
    if not isinstance(created.get("session"), dict):
        raise EngineRefused("The service that runs this model did not begin the session.")
    if settings:
        await connection.send({"type": ev.SessionUpdate.type, "session": dict(settings)})
        updated = await _next(connection, ev.SessionUpdated.type)
        if isinstance(updated.get("session"), dict):
            created = {**created, "session": updated["session"]}
    for start in range(0, len(items), ITEMS_AT_ONCE):
        some = items[start : start + ITEMS_AT_ONCE]
        for item in some:
            await connection.send({"type": ev.ItemCreate.type, "item": item})
        for _ in some:
            await _next(connection, ev.ItemCreated.type)
    return created


async def _next(connection: ServiceConnection, kind: str) -> JsonObject:
    """The next event of this kind, or the next error, which refuses what it would answer."""
    while True:
        message = await connection.receive()
        wire = wire_of(message) if isinstance(message, str) else message
        if wire is not None and wire["type"] in (kind, ev.ErrorEvent.type):
            return wire
