"""How many conversations may be open at once, and how often guests may begin one.

Counted in this process; the doors tell what other processes hold. Not safe for several threads; every door admits from
the event loop's.
"""

from __future__ import annotations

import functools
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType

from django.conf import settings

from voiceapp.accounts.addresses import neighbourhood
from voiceapp.accounts.auth import Caller
from voiceapp.errors import Throttled

HOUR_S = 3600.0
REMEMBERED_ADDRESSES = 10_000
CONCURRENCY = "Throttling.Concurrency"
TRY_AGAIN_S = 10
"""What Retry-After says when only the end of somebody's conversation makes room."""


@dataclass(frozen=True, slots=True)
class SessionRules:
    """The limits; every number counts conversations unless its name says otherwise."""

    total: int
    """Of this process."""
    per_account: int
    guests_total: int
    guests_per_address: int
    guests_per_hour: int
    """Begun in this process from one address within any 60 minutes."""
    lifetime_s: int
    guest_lifetime_s: int

    @classmethod
    def from_settings(cls) -> SessionRules:
        return cls(
            total=settings.MAX_SESSIONS,
            per_account=settings.MAX_SESSIONS_PER_ACCOUNT,
            guests_total=settings.GUEST_SESSIONS_TOTAL,
            guests_per_address=settings.GUEST_SESSIONS_PER_ADDRESS,
            guests_per_hour=settings.GUEST_SESSIONS_PER_HOUR,
            lifetime_s=settings.SESSION_LIFETIME_S,
            guest_lifetime_s=settings.GUEST_SESSION_S,
        )


class Admission:
    """One conversation's seat. Release it, or use it as a context manager; releasing twice is harmless."""

    def __init__(self, lifetime_s: int, give_back: Callable[[], None]) -> None:
        self.lifetime_s = lifetime_s
        """After how many seconds the conversation must end."""
        self._give_back: Callable[[], None] | None = give_back

    def release(self) -> None:
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()

    def __enter__(self) -> Admission:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class SessionLimits:
    """Admits conversations while there is room."""

    def __init__(self, rules: SessionRules, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._clock = clock
        self._open = 0
        self._guests = 0
        self._held: Counter[str] = Counter()
        """Open conversations by account, and those of guests by neighbourhood; nobody with none is kept."""
        self._begun: OrderedDict[str, deque[float]] = OrderedDict()
        """When guests of an address began, within the last hour; the address that began last stands last."""

    @property
    def open_sessions(self) -> int:
        return self._open

    @property
    def remembered_addresses(self) -> int:
        return len(self._begun)

    def admit(self, caller: Caller, address: str, elsewhere: Collection[str] = ()) -> Admission:
        """A seat for a conversation of `caller` from an Internet `address` (empty: unknown, counted as one address).

        `elsewhere` has the addresses of the conversations that other processes hold: of the caller's account, or of all
        guests for a guest.

        Raises:
            Throttled: if a limit is reached; nothing has been counted then.
        """
        self.check(caller, address, elsewhere)
        if not caller.is_guest:
            return self._seat(self._rules.lifetime_s, _account(caller))
        place = neighbourhood(address)
        begun = self._begun_within_the_hour(place)
        begun.append(self._clock())
        self._begun[place] = begun
        self._begun.move_to_end(place)
        while len(self._begun) > REMEMBERED_ADDRESSES:
            self._begun.popitem(last=False)
        return self._seat(self._rules.guest_lifetime_s, _place(place), guests=1)

    def check(self, caller: Caller, address: str, elsewhere: Collection[str] = ()) -> None:
        """Whether `admit` would give a seat now; counts nothing.

        Raises:
            Throttled: if a limit is reached.
        """
        if self._open >= self._rules.total:
            raise _full("This server is at capacity: too many conversations are open. Try again shortly.")
        if caller.is_guest:
            self._check_guest(neighbourhood(address), elsewhere)
        elif self._held[_account(caller)] + len(elsewhere) >= self._rules.per_account:
            raise _full(
                f"Your account has {self._rules.per_account} conversations open already. End one of them first."
            )

    def _check_guest(self, place: str, elsewhere: Collection[str]) -> None:
        rules = self._rules
        if self._guests + len(elsewhere) >= rules.guests_total:
            raise _full("Too many guests are talking just now. Try again shortly, or sign in.")
        from_here = sum(neighbourhood(address) == place for address in elsewhere)
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

    def _seat(self, lifetime_s: int, holder: str, *, guests: int = 0) -> Admission:
        self._open += 1
        self._guests += guests
        self._held[holder] += 1

        def give_back() -> None:
            self._open -= 1
            self._guests -= guests
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]

        return Admission(lifetime_s, give_back)


def _account(caller: Caller) -> str:
    return f"account {caller.account_id}"


def _place(neighbourhood_: str) -> str:
    return f"address {neighbourhood_}"


def _full(message: str) -> Throttled:
    return Throttled(message, code=CONCURRENCY, retry_after_s=TRY_AGAIN_S)


@functools.cache
def session_limits() -> SessionLimits:
    """The limits of this process, by the settings."""
    return SessionLimits(SessionRules.from_settings())
