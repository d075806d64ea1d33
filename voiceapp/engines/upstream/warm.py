"""Lines to a service elsewhere that are dialled before anybody asks for one, so that a session begins without the dial.

Each holds an open session there that nobody uses yet. What such a session is for is said when it is dialled, so as many
lines as there may be are kept for sessions like the latest ones. A line is used once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from typing import NamedTuple

from voiceapp.drain import Drain, drain_event
from voiceapp.engines.interfaces import Call
from voiceapp.engines.upstream.line import ServiceLine
from voiceapp.errors import EngineError

logger = logging.getLogger(__name__)

MAX_AGE_S = 240.0
"""A line that nobody used for so long makes way for a new one."""
CHECK_S = 2.0
"""How long a line may take to show that the service is still there, and so the longest that a session waits for one."""
PAUSE_S = 2.0
LONGEST_PAUSE_S = 64.0
"""Between two attempts to dial, while these fail or the service drops lines at once; doubled each time."""
MOST_FAILURES = 6
"""That count: the pause is the longest then."""
LOOK_S = 10.0
"""Between two looks at whether the service is asked at present; less where a line comes of age before."""
SHORTEST_LOOK_S = 0.5
"""However soon lines come of age."""


class Kind(NamedTuple):
    """What a session is dialled for."""

    model: str
    time_zone: str
    listens_only: bool = False

    @property
    def call(self) -> Call:
        """One like it, of nobody yet."""
        return Call("", self.model, self.time_zone, listens_only=self.listens_only)


@dataclass(eq=False, slots=True)
class _Idle:
    line: ServiceLine
    wanted: Kind
    watch: asyncio.Task[None]
    """Ends when the line is lost."""


class WarmLines:
    """At most `size` of them. Belongs to the event loop that uses it first."""

    def __init__(
        self,
        name: str,
        size: int,
        dial: Callable[[Call], Awaitable[ServiceLine]],
        *,
        is_asked: Callable[[], bool],
        max_age_s: float = MAX_AGE_S,
        drain: Drain | None = None,
    ) -> None:
        """`name` is the service's, for logs; `is_asked` says whether it may be asked at present; `drain`
        is the stop at which the lines are closed, that of the process unless given."""
        self._name = name
        self._size = size
        self._dial = dial
        self._is_asked = is_asked
        self._max_age_s = max_age_s
        self._drain = drain or drain_event()
        self._wanted: deque[Kind] = deque(maxlen=size)
        """What the latest sessions were for, the newest last: as many lines of each kind are kept."""
        self._idle: list[_Idle] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._failures = 0
        """In a row: attempts to dial, and lines that were lost at once."""
        self._due = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._idle)

    def expect(self, wanted: Kind) -> None:
        """Keep lines for sessions like this one, until others come."""
        if self._size:
            self._wanted.extend([wanted] * self._size)
            self._keep()

    async def take(self, wanted: Kind) -> ServiceLine | None:
        """A line for such a session that was just shown to be alive, within CHECK_S; None: none is ready."""
        if not self._size:
            return None
        self._wanted.append(wanted)
        self._keep()
        try:
            fit = (each for each in self._idle if each.wanted == wanted and not self._is_old(each))
            if (idle := next(fit, None)) is not None and await self._is_ready(idle):
                return idle.line
        finally:
            self._due.set()
        return None

    async def close(self) -> None:
        """Close every line, and dial no more."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        for closing in self._closing:
            closing.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)

    # ── Keeping them ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _keep(self) -> None:
        if self._keeping is None:
            # In a context of its own: that of a request names a thread for rows which ends with the request.
            self._keeping = asyncio.create_task(self._run(), name=f"lines to {self._name}", context=Context())

    async def _run(self) -> None:
        stop = asyncio.create_task(self._drain.wait_begun(), name="drain")
        stop.add_done_callback(lambda _: self._due.set())
        try:
            while not stop.done():
                self._due.clear()
                await self._renew()
                if self._failures:  # whatever is wanted, the service is given its time
                    await asyncio.wait([stop], timeout=min(PAUSE_S * 2**self._failures / 2, LONGEST_PAUSE_S))
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._look_s):
                        await self._due.wait()
        finally:
            stop.cancel()
            self._drop(*self._idle)
            await self._wait_closed()

    @property
    def _look_s(self) -> float:
        left = [self._max_age_s - idle.line.age_s for idle in self._idle]
        return max(SHORTEST_LOOK_S, min([LOOK_S, *left]))

    async def _renew(self) -> None:
        """Close the lines that are not to be used any more, and dial those that are missing."""
        wanted = Counter(self._wanted if self._is_asked() else ())
        kept: Counter[Kind] = Counter()
        for idle in tuple(self._idle):
            if self._is_old(idle):
                self._failures = 0  # it has lasted
                self._drop(idle)
            elif kept[idle.wanted] == wanted[idle.wanted]:
                self._drop(idle)
            else:
                kept[idle.wanted] += 1
        await self._wait_closed()  # then their places at the service are free
        missing = [*(wanted - kept).elements()]
        found = await asyncio.gather(*map(self._add, missing))
        if not all(found):
            self._failures = min(self._failures + 1, MOST_FAILURES)
        elif not missing:  # those dialled before have lasted
            self._failures = 0

    async def _add(self, wanted: Kind) -> bool:
        try:
            line = await self._dial(wanted.call)
        except EngineError as error:
            logger.info("service %s: no line ahead of time: %s", self._name, error.for_operators)
            return False
        watch = asyncio.create_task(line.wait_lost(), name=f"line to {self._name}")
        idle = _Idle(line, wanted, watch)
        watch.add_done_callback(lambda _: self._lost(idle))
        self._idle.append(idle)
        return True

    def _lost(self, idle: _Idle) -> None:
        """The service has ended an idle line, or says something on it that a new session would miss."""
        if idle in self._idle:
            self._idle.remove(idle)
            if idle.line.age_s < min(PAUSE_S, self._max_age_s):
                self._failures = min(self._failures + 1, MOST_FAILURES)
            self._due.set()

    async def _is_ready(self, idle: _Idle) -> bool:
        """Whether an idle line can be used from now on. One that cannot is closed, and so are all that were dialled
        before this was asked: what has cut one off has most likely cut off the others."""
        self._idle.remove(idle)
        others = tuple(self._idle)
        is_ready = False
        try:
            if await idle.line.is_alive(CHECK_S):
                is_free = idle.watch.cancel()  # False: it is lost
                await asyncio.wait([idle.watch])
                is_ready = is_free
        finally:
            if not is_ready:
                self._drop(idle)
        if not is_ready:
            self._drop(*(each for each in others if each in self._idle))
        return is_ready

    def _is_old(self, idle: _Idle) -> bool:
        return idle.line.age_s >= self._max_age_s

    def _drop(self, *dropped: _Idle) -> None:
        """Close lines in the background: a service that does not answer takes its time."""
        self._idle = [idle for idle in self._idle if idle not in dropped]
        for idle in dropped:
            idle.watch.cancel()
            task = asyncio.create_task(idle.line.close(), name=f"line to {self._name}: closing", context=Context())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _wait_closed(self) -> None:
        if self._closing:
            await asyncio.wait(self._closing)
