"""A transport that outlives its connections: when one is lost, the session waits until its caller has another.

Inside is the transport in use, if there is one. Each has a task that reads and a task that writes, so that a dead
connection, which takes nothing for seconds, holds up neither the session nor its successor.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from voiceapp.drain import drain_event
from voiceapp.errors import FloodError
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.close_codes import ABANDONED, GOES_ON_ELSEWHERE, NO_CODE
from voiceapp.realtime.lifetime.resumption import Resumption
from voiceapp.realtime.transports.interface import Disconnected, Transport
from voiceapp.realtime.transports.sent_events import SentEvents

logger = logging.getLogger(__name__)

LOST = frozenset({ABANDONED, NO_CODE, GOES_ON_ELSEWHERE})
"""Close codes of callers who may come back."""
MAX_AHEAD = 64
"""Events that may wait for a connection that takes them slowly."""
LAST_WORDS_S = 2.5
"""Time for events that wait at the end of the session."""
TAKEN_OVER = "The conversation goes on over another connection."
OVER = "The conversation does not wait any more; connect again."


class _Connection:
    """A transport in use."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.waiting: deque[ev.ServerEvent] = deque()
        self.news = asyncio.Event()
        """Something waits, or the connection is not in use any more."""
        self.moved = asyncio.Event()
        """Something was written, or the connection is not in use any more."""
        self.released = asyncio.Event()
        """The connection is not in use any more."""
        self.is_left_behind = False
        """The session goes on without this connection."""
        self.tasks: list[asyncio.Task[None]] = []

    def put(self, event: ev.ServerEvent) -> None:
        self.waiting.append(event)
        self.news.set()

    def cut_playout(self) -> None:
        self.waiting = deque(event for event in self.waiting if not isinstance(event, ev.AudioDelta))
        self.transport.cut_playout()

    def release(self) -> None:
        """Stop using it; its carrier then closes it."""
        for task in self.tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self.released.set()
        self.moved.set()


class ResumableTransport:
    """The connections of one session, one after the other, as a `Transport`. Belongs to one event loop."""

    def __init__(self, name: str, token: str, grace_s: float, end: Callable[[], Awaitable[None]]) -> None:
        """`name` is that of the session, for logs; its caller presents `token` to come back; `end` ends the session."""
        self._name = name
        self._token = token
        self._end = end
        self._grace_s = grace_s
        self._connection: _Connection | None = None
        self._sent = SentEvents()
        self._came: asyncio.Queue[ev.ClientEvent | Exception] = asyncio.Queue(1)
        self._received = 0
        self._grace: asyncio.Task[None] | None = None
        self._lost_after = 0
        """Number of the latest event when the connection was lost."""
        self._is_finishing = False
        self._is_over = False

    # ── Connections ──────────────────────────────────────────────────────────────────────────────────────────────────

    def can_resume(self, last: int) -> bool:
        """Return whether a caller who has received everything up to event number `last` can be told the rest."""
        return not self._is_over and not self._is_finishing and self._sent.forgotten <= last <= self._sent.last

    async def carry(self, transport: Transport, resumption: Resumption | None = None) -> None:
        """Talk over this connection; returns when it is lost, when another takes its place, or the session has ended.

        With a resumption the caller is told what they missed. Cancelling this while the connection is in use ends the
        session.
        """
        if self._is_over:  # it ended while the connection was being established
            await transport.close(GOES_ON_ELSEWHERE, OVER)
            return
        connection = _Connection(transport)
        self._replace(connection, resumption)
        connection.tasks = [
            asyncio.create_task(self._read(connection), name=f"session {self._name}: reading"),
            asyncio.create_task(self._write(connection), name=f"session {self._name}: writing"),
        ]
        try:
            await connection.released.wait()
        except asyncio.CancelledError:
            if self._connection is connection:
                await self._end()
            raise
        finally:
            if self._connection is connection:
                self._connection = None
            connection.release()
            await asyncio.gather(*connection.tasks, return_exceptions=True)
        if connection.is_left_behind:
            await transport.close(GOES_ON_ELSEWHERE, TAKEN_OVER)

    def _replace(self, connection: _Connection, resumption: Resumption | None) -> None:
        if self._connection is not None:
            self._connection.is_left_behind = True
            self._connection.release()
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self._connection = connection
        missed = resumption or Resumption()
        if resumption is not None:
            connection.put(ev.SessionResumed(event_id="event_0", received=self._received))
        for event in self._sent.missed(missed.last, missed.heard_ms):
            connection.put(event)
        if resumption is not None:
            logger.info("session %s: resumed, %d events said again", self._name, len(connection.waiting) - 1)

    def release(self) -> None:
        """The session is over, whether or not it could close its connection."""
        self._is_over = True
        if self._connection is not None:
            self._connection.release()

    async def _read(self, connection: _Connection) -> None:
        while True:
            arrival = await _arrival(connection.transport)
            if isinstance(arrival, Disconnected):
                await self._lost(connection, arrival)
                return
            self._is_finishing = self._is_finishing or isinstance(arrival, ev.SessionFinish)
            await self._came.put(arrival)
            if isinstance(arrival, FloodError):
                return
            self._received += not isinstance(arrival, ev.AudioAppend)

    async def _write(self, connection: _Connection) -> None:
        while True:
            while connection.waiting:
                try:
                    await connection.transport.send(connection.waiting.popleft())
                except FloodError as slow:
                    await self._came.put(slow)
                    return
                connection.moved.set()
            connection.news.clear()
            await connection.news.wait()

    async def _lost(self, connection: _Connection, gone: Disconnected) -> None:
        """The caller of a connection is gone, who comes back if they did not mean it."""
        is_waited_for = gone.code in LOST and not self._is_finishing and not drain_event().begun
        if is_waited_for and self._sent.last and not self._is_over:
            logger.info("session %s: connection lost, waiting %g s for another", self._name, self._grace_s)
            self._lost_after = self._sent.last
            connection.is_left_behind = True
            self._connection = None
            self._grace = asyncio.create_task(self._wait(), name=f"session {self._name}: waiting")
        else:
            await self._came.put(gone)
        connection.release()

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace_s):
                await drain_event().wait_begun()
        self._is_over = True
        await self._came.put(Disconnected(ABANDONED))

    # ── As a transport ───────────────────────────────────────────────────────────────────────────────────────────────

    async def receive(self) -> ev.ClientEvent:
        arrival = await self._came.get()
        if isinstance(arrival, Exception):
            raise arrival
        return arrival

    async def send(self, event: ev.ServerEvent) -> None:
        self._keep(event)
        if isinstance(event, ev.SessionCreated):
            self._keep(ev.SessionResumable(token=self._token, grace_s=self._grace_s))
        while (connection := self._connection) is not None and len(connection.waiting) > MAX_AHEAD:
            connection.moved.clear()
            await connection.moved.wait()

    def _keep(self, event: ev.ServerEvent) -> None:
        event = self._sent.add(event)
        if self._connection is not None:
            self._connection.put(event)
        elif self._sent.forgotten > self._lost_after:
            raise FloodError("More was said while the connection was lost than is kept.", code="too_much_missed")

    def cut_playout(self) -> None:
        self._sent.cut_audio()
        if self._connection is not None:
            self._connection.cut_playout()

    async def close(self, code: int, reason: str) -> None:
        self._is_over = True
        if self._grace is not None:
            self._grace.cancel()
        if (connection := self._connection) is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                while connection.waiting and not connection.released.is_set():
                    connection.moved.clear()
                    await connection.moved.wait()
        self._connection = None
        try:
            await connection.transport.close(code, reason)
        finally:
            connection.release()


async def _arrival(transport: Transport) -> ev.ClientEvent | Exception:
    """Return the transport's next event, or its exception."""
    try:
        return await transport.receive()
    except (ev.EventError, FloodError, Disconnected) as error:
        return error
