"""Addresses of servers that can stand in for one another: each request goes to the less busy of two of them."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from typing import Protocol, TypeVar
from weakref import WeakSet

import aiohttp

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 30.0
"""An address that failed is left out for a while; the pause doubles, from the first to the longest."""
CONNECT_S = 10.0
CONNECT_BESIDE_OTHERS_S = 2.0
BUSY = frozenset({429})
AWAY = frozenset({502, 503, 504})
"""Statuses for which another address is asked; the latter also leave the address out for a while."""


class Use(Protocol):
    """A response or connection."""

    @property
    def closed(self) -> bool: ...

    def close(self) -> object: ...


Used = TypeVar("Used", bound=Use)


@dataclass(eq=False)
class _Address:
    url: str
    begun: int = 0
    """Requests whose response has not begun."""
    uses: WeakSet[Use] = field(default_factory=WeakSet)
    failures: int = 0
    out_until: float = -math.inf

    @property
    def load(self) -> int:
        return self.begun + sum(not use.closed for use in self.uses)


class Addresses:
    """The addresses of one service. Any thread may ask."""

    def __init__(self, given: str, *, now: Callable[[], float] = time.monotonic) -> None:
        """`given` holds addresses with commas between."""
        self._all = [_Address(url.strip().rstrip("/")) for url in given.split(",")]
        self._now = now
        self._random = Random()  # noqa: S311 - spreads requests, guards nothing
        self._guard = Lock()
        self.connect_s = CONNECT_BESIDE_OTHERS_S if len(self._all) > 1 else CONNECT_S
        """Longest wait for a connection."""

    async def ask(self, send: Callable[[str], Awaitable[Used]], *, status: Callable[[Used], int] = lambda _: 0) -> Used:
        """Return what `send` gives of one address, or of another where that is away or busy; `status` is the HTTP
        status of what was given. A single address is asked again over a new connection where a kept one was closed.

        Raises what `send` raises.
        """
        first = self._choose()
        try:
            found = await self._ask(first, send, status)
        except (aiohttp.ClientError, OSError) as error:
            if not self._may_repeat(error):
                raise
        else:
            if len(self._all) == 1 or status(found) not in BUSY | AWAY:
                return found
            found.close()
        return await self._ask(self._choose(first), send, status)

    async def _ask(
        self, address: _Address, send: Callable[[str], Awaitable[Used]], status: Callable[[Used], int]
    ) -> Used:
        with self._guard:
            address.begun += 1
        try:
            found = await send(address.url)
        except (aiohttp.ClientError, OSError) as error:
            self._note(address, not isinstance(error, aiohttp.WSServerHandshakeError) or error.status in AWAY)
            raise
        else:
            self._note(address, status(found) in AWAY)
            with self._guard:
                address.uses.add(found)
            return found
        finally:
            with self._guard:
                address.begun -= 1

    def _note(self, address: _Address, is_away: bool) -> None:
        """Leave an address out that did not serve, for longer each time."""
        address.failures = min(address.failures + 1, 10) if is_away else 0
        pause_s = min(FIRST_PAUSE_S * 2 ** (address.failures - 1), LONGEST_PAUSE_S)
        address.out_until = self._now() + pause_s if is_away else -math.inf

    def _choose(self, but: _Address | None = None) -> _Address:
        """The less busy of two at random."""
        others = [address for address in self._all if address is not but] or self._all
        able = [address for address in others if address.out_until <= self._now()] or others
        with self._guard:
            return min(self._random.sample(able, min(2, len(able))), key=lambda address: address.load)

    def _may_repeat(self, error: aiohttp.ClientError | OSError) -> bool:
        """Return whether a request may be sent again. One that a server may be working on is not."""
        has_others = len(self._all) > 1
        if isinstance(error, aiohttp.WSServerHandshakeError):
            return has_others and error.status in BUSY | AWAY
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError):
            return False
        is_stale = isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
        return has_others or (is_stale and not isinstance(error, aiohttp.ClientConnectorError))
