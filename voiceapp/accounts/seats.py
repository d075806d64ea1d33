"""Seats: how many sessions may be open at once, and how often guests may begin one.

Counted in this process; `count_other_processes` names a function that tells what other processes hold. Not safe for
several threads: seats are taken and released on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType

from django.conf import settings

from voiceapp.accounts.addresses import neighbourhood
from voiceapp.accounts.auth import Caller
from voiceapp.errors import Throttled

HOUR_S = 3600.0
REMEMBERED_ADDRESSES = 10_000
CONCURRENCY = "Throttling.Concurrency"
LOOKS_AGAIN_S = (0.1, 0.3, 0.6)
"""Pauses before each further look at other processes."""
TRY_AGAIN_S = 10
"""Retry-After when room comes only with the end of another session."""

OpenInOthers = Callable[[Caller], Awaitable[Collection[str]]]
"""Client addresses of the sessions that other processes hold: of the caller's account, or of all guests for a guest."""


async def _no_other_processes(caller: Caller) -> Collection[str]:
    return ()


_open_in_others: OpenInOthers = _no_other_processes


def count_other_processes(open_sessions: OpenInOthers) -> None:
    """Count what other processes hold as well, in the `seats` of this process."""
    global _open_in_others
    _open_in_others = open_sessions


@dataclass(frozen=True, slots=True)
class SeatRules:
    """The limits; every number counts sessions unless its name says otherwise."""

    total: int
    """Seats taken in this process."""
    per_account: int
    guests_total: int
    guests_per_address: int
    guests_per_hour: int
    """Begun in this process from one address within any 60 minutes."""
    lifetime_s: int
    guest_lifetime_s: int

    @classmethod
    def from_settings(cls) -> SeatRules:
        return cls(
            total=settings.MAX_SESSIONS,
            per_account=settings.MAX_SESSIONS_PER_ACCOUNT,
            guests_total=settings.GUEST_SESSIONS_TOTAL,
            guests_per_address=settings.GUEST_SESSIONS_PER_ADDRESS,
            guests_per_hour=settings.GUEST_SESSIONS_PER_HOUR,
            lifetime_s=settings.SESSION_LIFETIME_S,
            guest_lifetime_s=settings.GUEST_SESSION_S,
        )


class Seat:
    """A caller's seat: theirs from `take` to `release`. As a context manager it releases itself."""

    def __init__(self, seats: Seats, caller: Caller, address: str) -> None:
        self.lifetime_s = seats.lifetime_s(caller)
        """After how many seconds the session must end."""
        self._seats = seats
        self._caller = caller
        self._address = address
        self._give_back: Callable[[], None] | None = None

    async def take(self) -> None:
        """Take the seat; taking it twice takes one.

        Raises:
            Throttled: if a limit is reached; nothing has been counted then.
        """
        if self._give_back is None:
            self._give_back = await self._seats.take(self._caller, self._address)

    def release(self) -> None:
        """Give the seat back; harmless when it was not taken, or was given back before."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """The session has ended; what the block does is written of it.

        The seat is free at once, so that a slow database keeps no new session out. If as many ended sessions as may be
        open are still being written, it becomes free at the end of the block instead.
        """
        with self._seats.leaving(self):
            yield

    def __enter__(self) -> Seat:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Seats:
    """Gives out seats while there are any."""

    def __init__(
        self,
        rules: SeatRules,
        *,
        open_in_others: OpenInOthers = _no_other_processes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._open_in_others = open_in_others
        self._clock = clock
        self._open = 0
        self._leaving = 0
        """Sessions that have ended, and are being written down."""
        self._guests = 0
        self._held: Counter[str] = Counter()
        """Seats taken, by account, and those of guests by neighbourhood; holders of none are not kept."""
        self._begun: OrderedDict[str, deque[float]] = OrderedDict()
        """Times at which guests of an address began, within the last hour; the latest address stands last."""

    @property
    def open_sessions(self) -> int:
        return self._open

    @property
    def remembered_addresses(self) -> int:
        return len(self._begun)

    def lifetime_s(self, caller: Caller) -> int:
        """Return the longest duration of a session of this caller."""
        return self._rules.guest_lifetime_s if caller.is_guest else self._rules.lifetime_s

    def seat(self, caller: Caller, address: str) -> Seat:
        """A seat to be taken by `caller` from an Internet `address` (empty: unknown, counted as one address)."""
        return Seat(self, caller, address)

    async def check(self, caller: Caller, address: str) -> None:
        """Check that a seat could be taken now, without taking it.

        Raises:
            Throttled: if a limit is reached.
        """
        await self._require_room(caller, address)

    async def take(self, caller: Caller, address: str) -> Callable[[], None]:
        """Count a seat; returns what gives it back. Call that once.

        Raises:
            Throttled: if a limit is reached; nothing has been counted then.
        """
        await self._require_room(caller, address)  # and no await from here on: two callers never get the same seat
        if not caller.is_guest:
            return self._count(_account(caller))
        place = neighbourhood(address)
        begun = self._begun_within_the_hour(place)
        begun.append(self._clock())
        self._begun[place] = begun
        self._begun.move_to_end(place)
        while len(self._begun) > REMEMBERED_ADDRESSES:
            self._begun.popitem(last=False)
        return self._count(_place(place), guests=1)

    @contextmanager
    def leaving(self, seat: Seat) -> Iterator[None]:
        """See `Seat.leaving`."""
        if self._leaving < self._rules.total:
            seat.release()
        self._leaving += 1
        try:
            yield
        finally:
            self._leaving -= 1
            seat.release()

    async def _require_room(self, caller: Caller, address: str) -> None:
        self._check(caller, address, ())  # a full process refuses without asking for the others
        try:
            self._check(caller, address, await self._open_in_others(caller))
        except Throttled:
            await self._look_again(caller, address)

    async def _look_again(self, caller: Caller, address: str) -> None:
        """Other processes count in the way of this caller: of a session that has just ended there, the row may not say
        so yet."""
        for wait_s in LOOKS_AGAIN_S:
            await asyncio.sleep(wait_s)
            in_others = await self._open_in_others(caller)
            with suppress(Throttled):
                return self._check(caller, address, in_others)
        self._check(caller, address, in_others)

    def _check(self, caller: Caller, address: str, in_others: Collection[str]) -> None:
        if self._open >= self._rules.total:
            raise _full("This server is at capacity: too many conversations are open. Try again shortly.")
        if caller.is_guest:
            self._check_guest(neighbourhood(address), in_others)
        elif self._held[_account(caller)] + len(in_others) >= self._rules.per_account:
            raise _full(
                f"Your account has {self._rules.per_account} conversations open already. End one of them first."
            )

    def _check_guest(self, place: str, in_others: Collection[str]) -> None:
        rules = self._rules
        if self._guests + len(in_others) >= rules.guests_total:
            raise _full("Too many guests are talking just now. Try again shortly, or sign in.")
        from_here = sum(neighbourhood(address) == place for address in in_others)
        if self._held[_place(place)] + from_here >= rules.guests_per_address:
            raise _full(
                f"Guests may have {rules.guests_per_address} conversations open at once from one address. "
                "End one of them first, or sign in."
            )
        begun = self._begun_within_the_hour(place)
        if len(begun) >= rules.guests_per_hour:
            raise Throttled(
                f"Guests may begin {rules.guests_per_hour} conversations an hour from one address. "
                "Try again later, or sign in.",
                retry_after_s=max(1, math.ceil(begun[0] + HOUR_S - self._clock())) if begun else int(HOUR_S),
            )

    def _begun_within_the_hour(self, address: str) -> deque[float]:
        """Also forgets the addresses from which nobody began for an hour; they stand first."""
        now = self._clock()
        while self._begun and next(iter(self._begun.values()))[-1] <= now - HOUR_S:
            self._begun.popitem(last=False)
        begun = self._begun.get(address) or deque[float]()
        while begun and begun[0] <= now - HOUR_S:
            begun.popleft()
        return begun

    def _count(self, holder: str, *, guests: int = 0) -> Callable[[], None]:
        self._open += 1
        self._guests += guests
        self._held[holder] += 1

        def give_back() -> None:
            self._open -= 1
            self._guests -= guests
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]

        return give_back


def _account(caller: Caller) -> str:
    return f"account {caller.account_id}"


def _place(neighbourhood_: str) -> str:
    return f"address {neighbourhood_}"


def _full(message: str) -> Throttled:
    return Throttled(message, code=CONCURRENCY, retry_after_s=TRY_AGAIN_S)


@functools.cache
def seats() -> Seats:
    """The seats of this process, by the settings."""
    return Seats(SeatRules.from_settings(), open_in_others=_open_in_others)
