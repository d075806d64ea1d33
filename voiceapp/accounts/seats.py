"""Seats: how many sessions may be open at once, and how often guests may begin one.

Counted in this process, and beside those of other processes where `share_seats` names what counts them. Not safe for
several threads: seats are taken and released on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from django.conf import settings

from voiceapp.accounts.addresses import neighbourhood
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.rates import Rate, Rates, rates
from voiceapp.errors import Throttled
from voiceapp.load import Load, load

T = TypeVar("T")

HOUR_S = 3600.0
CONCURRENCY = "Throttling.Concurrency"
LOOKS_AGAIN_S = (0.1, 0.3, 0.6)
"""Pauses before other processes are asked again."""
TOO_MANY_GUESTS = "Too many guests are talking just now. Try again shortly, or sign in."
TRY_AGAIN_S = 10
"""Retry-After when room comes only with the end of another session."""
PLACE_S = 10.0
"""Time for which a place in the queue is held; pages that wait ask every three seconds."""
MOST_PLACES = 200

Check = Callable[[Collection[str]], None]
"""Takes the client addresses of the open seats that count; raises Throttled if there may not be one more."""


class SharedSeats(Protocol):
    """The seats that all processes hold, this one included, of a caller's account."""

    async def open_seats(self, caller: Caller) -> Collection[str]:
        """Return the client addresses of those that are taken."""

    async def hold(self, caller: Caller, address: str, check: Check, agent: str = "") -> Callable[[], None]:
        """Take a seat if `check` allows one beside those that are taken; return what gives it back.

        With an `agent` it is one of those that the agent's callers share.
        """


class Alone:
    """This process is the only one."""

    async def open_seats(self, caller: Caller) -> Collection[str]:
        return ()

    async def hold(self, caller: Caller, address: str, check: Check, agent: str = "") -> Callable[[], None]:
        return lambda: None


_shared: Callable[[], SharedSeats] = Alone


def share_seats(shared: Callable[[], SharedSeats]) -> None:
    """Let the `seats` of this process count those of other processes as well."""
    global _shared
    _shared = shared


@dataclass(frozen=True, slots=True)
class AgentSeats:
    """Seats of an agent that may have so many callers at once."""

    name: str
    count: int

    def check(self, taken: Collection[str]) -> None:
        """Raise Throttled where none is free."""
        if len(taken) >= self.count:
            raise _full("This agent has as many callers as it may have at once. Try again shortly.")


@dataclass(eq=False, slots=True)
class Seat:
    """A caller's seat: theirs from `take` to `release`."""

    seats: Seats
    caller: Caller
    address: str
    """Internet address of the caller; empty: unknown, counted as one address."""
    agent: AgentSeats | None = None
    runs_here: bool = True
    """The load of this process counts for the session."""
    _give_back: Callable[[], None] | None = field(default=None, init=False)
    _leave_agent: Callable[[], None] | None = field(default=None, init=False)

    @property
    def lifetime_s(self) -> int:
        """Seconds after which the session must end."""
        return self.seats.lifetime_s(self.caller)

    async def take(self) -> None:
        """Take the seat; taking it twice takes one.

        Raises:
            Throttled: if a limit is reached; nothing has been counted then.
        """
        if self._give_back is None:
            self._give_back = await self.seats.take(self.caller, self.address, self.runs_here)
            try:
                await self.move(self.agent)
            except BaseException:
                self.release()
                raise

    async def move(self, agent: AgentSeats | None) -> None:
        """Have one of the agent's seats too, in the place of another agent's.

        Raises:
            Throttled: if none is free; nothing changes then.
        """
        leave = await self.seats.take_of(agent, self.caller, self.address) if agent else None
        if self._leave_agent:
            self._leave_agent()
        self._leave_agent = leave

    def release(self) -> None:
        """Give the seat back; harmless when it was not taken, or was given back before."""
        held, self._give_back, self._leave_agent = (self._give_back, self._leave_agent), None, None
        for give_back in held:
            if give_back is not None:
                give_back()


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in the queue."""

    of_guest: str
    """The address of a guest; empty for others."""
    until: float


class Seats:
    """Gives out seats while there are any."""

    def __init__(
        self,
        *,
        load: Load | None = None,
        shared: Callable[[], SharedSeats] = Alone,
        begun: Rates | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`begun` counts how often guests of an address begin."""
        self._clock = clock
        self._load = load or Load(0, 1)
        self._shared = shared
        self._begun = begun or Rates()
        self._open = 0
        self._here = 0
        """Open sessions whose models run on this server."""
        self._guests = 0
        self._held: Counter[str] = Counter()
        """Seats taken, by account, and those of guests by address too; holders of none are not kept."""
        self._places: dict[tuple[int, str], _Place] = {}
        """Places of the pages that wait for a seat, in their order."""

    @property
    def open_sessions(self) -> int:
        return self._open

    @property
    def room(self) -> int:
        """Sessions that may begin at once."""
        return max(0, self._free(runs_here=True))

    def lifetime_s(self, caller: Caller) -> int:
        """Return the longest duration of a session of this caller."""
        if caller.limits:
            return caller.limits.session_s
        return int(settings.GUEST_SESSION_S if caller.is_guest else settings.SESSION_LIFETIME_S)

    async def check(self, caller: Caller, address: str, *, runs_here: bool = True) -> None:
        """Check that a seat could be taken now, without taking it.

        Raises:
            Throttled: if a limit is reached.
        """
        self._check(caller, address, runs_here)
        await _patiently(lambda: self._look(caller, address))

    async def take(self, caller: Caller, address: str, runs_here: bool = True) -> Callable[[], None]:
        """Count a seat; returns what gives it back. Call that once.

        Raises:
            Throttled: if a limit is reached; nothing has been counted then.
        """
        self._check(caller, address, runs_here)  # a full process refuses without asking for the others
        with ExitStack() as taken:
            taken.callback(self._count(caller, address, runs_here))  # first: two callers never get the same seat
            check = partial(self._check_shared, caller, address)
            taken.callback(await _patiently(lambda: self._shared().hold(caller, address, check)))
            if caller.is_guest:
                rate = self._hourly(caller)
                _refuse_hourly(rate, await self._begun.count(_place(caller, address), rate))
            return taken.pop_all().close

    async def take_of(self, agent: AgentSeats, caller: Caller, address: str) -> Callable[[], None]:
        """Take one of an agent's seats; returns what gives it back.

        Raises:
            Throttled: if none is free.
        """
        return await _patiently(lambda: self._shared().hold(caller, address, agent.check, agent.name))

    def wait(self, caller: Caller, address: str) -> int:
        """Return the position at which a page waits for a seat, from 1, and hold its place for PLACE_S. 0: it need not
        wait, or too many do."""
        missing, who = max(self._missing(caller, runs_here=True)), _who(caller)
        if missing <= 0:
            return 0
        place = _Place(_place(caller, address) if caller.is_guest else "", self._clock() + PLACE_S)
        if who not in self._places:
            beside = sum(place.of_guest == other.of_guest for other in self._places.values()) if place.of_guest else 0
            if len(self._places) >= MOST_PLACES or beside >= settings.GUEST_SESSIONS_PER_ADDRESS:
                return 0
        self._places[who] = place
        return missing

    def _missing(self, caller: Caller, runs_here: bool) -> tuple[int, int]:
        """Return how many seats are missing for one more of this caller behind those who wait before them: of all, and
        of those for guests."""
        now = self._clock()
        self._places = {who: place for who, place in self._places.items() if place.until > now}
        before = list(self._places.values())
        if (who := _who(caller)) in self._places:
            before = before[: list(self._places).index(who)]
        guests = sum(bool(place.of_guest) for place in before)
        able = min(guests, max(0, settings.GUEST_SESSIONS_TOTAL - self._guests))  # the others keep no member out
        return (
            len(before) - guests + able + 1 - self._free(runs_here),
            self._guests + guests + 1 - settings.GUEST_SESSIONS_TOTAL if caller.is_guest else 0,
        )

    def _free(self, runs_here: bool) -> int:
        free: int = settings.MAX_SESSIONS - self._open
        return min(free, self._load.most_sessions(self._here) - self._here) if runs_here else free

    async def _look(self, caller: Caller, address: str) -> None:
        self._check_shared(caller, address, await self._shared().open_seats(caller))

    def _check_shared(self, caller: Caller, address: str, taken: Collection[str]) -> None:
        """Check the limits that count over all processes. Reads nothing of this one: any thread may call it."""
        place = neighbourhood(address)
        self._check_counts(caller, len(taken), sum(neighbourhood(other) == place for other in taken))

    def _check(self, caller: Caller, address: str, runs_here: bool) -> None:
        """Check the limits by what this process knows."""
        of_all, of_guests = self._missing(caller, runs_here)
        if of_all > 0:
            full = _full("This server is at capacity: too many conversations are open. Try again shortly.")
            full.http_status = 503  # for which proxies, and servers with several addresses, ask another process
            raise full
        if not caller.is_guest:
            self._check_counts(caller, self._held[_account(caller)], 0)
            return
        if of_guests > 0:
            raise _full(TOO_MANY_GUESTS)
        place = _place(caller, address)
        self._check_counts(caller, self._held[_account(caller)], self._held[place])
        rate = self._hourly(caller)
        _refuse_hourly(rate, self._begun.wait_s(place, rate) if rate.calls else HOUR_S)

    def _hourly(self, caller: Caller) -> Rate:
        return Rate(caller.limits.sessions_per_hour if caller.limits else settings.GUEST_SESSIONS_PER_HOUR, HOUR_S)

    def _check_counts(self, caller: Caller, count: int, from_here: int) -> None:
        if not caller.is_guest:
            if count >= settings.MAX_SESSIONS_PER_ACCOUNT and not caller.is_front:
                raise _full(f"Your account has {count} conversations open already. End one of them first.")
        elif count >= (caller.limits.sessions_at_once if caller.limits else settings.GUEST_SESSIONS_TOTAL):
            raise _full(TOO_MANY_GUESTS)
        elif from_here >= settings.GUEST_SESSIONS_PER_ADDRESS:
            raise _full(
                f"Guests may have {settings.GUEST_SESSIONS_PER_ADDRESS} conversations open at once from one address. "
                "End one of them first, or sign in."
            )

    def _count(self, caller: Caller, address: str, runs_here: bool) -> Callable[[], None]:
        guests = int(caller.is_guest)
        holders = [_account(caller), *([_place(caller, address)] if guests else [])]
        self._places.pop(_who(caller), None)
        self._open += 1
        self._here += runs_here
        self._guests += guests
        for holder in holders:
            self._held[holder] += 1

        def uncount() -> None:
            self._open -= 1
            self._here -= runs_here
            self._guests -= guests
            for holder in holders:
                self._held[holder] -= 1
                if not self._held[holder]:
                    del self._held[holder]

        return uncount


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again what was refused: the end of a session in another process may not be written yet."""
    for wait_s in LOOKS_AGAIN_S:
        try:
            return await ask()
        except Throttled:
            await asyncio.sleep(wait_s)
    return await ask()


def _who(caller: Caller) -> tuple[int, str]:
    return caller.account_id, caller.label


def _account(caller: Caller) -> str:
    return f"account {caller.account_id}"


def _place(caller: Caller, address: str) -> str:
    """The address of a guest, beside which those of other sites do not count."""
    return f"address {neighbourhood(address)} of {caller.account_id}"


def _refuse_hourly(rate: Rate, wait_s: float) -> None:
    if wait_s:
        raise Throttled(
            f"Guests may begin {rate.calls} conversations an hour from one address. Try again later, or sign in.",
            retry_after_s=max(1, math.ceil(wait_s)),
        )


def _full(message: str) -> Throttled:
    return Throttled(message, code=CONCURRENCY, retry_after_s=TRY_AGAIN_S)


@functools.cache
def seats() -> Seats:
    """The seats of this process, by the settings."""
    return Seats(load=load(), shared=_shared, begun=rates())
