"""A bad network between a caller and a server on one machine: UDP through a proxy that delays and loses."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import cast

CANDIDATE = re.compile(r"^a=candidate:(\S+) 1 udp (\d+) (\S+) (\d+) typ host.*\r\n", re.MULTILINE | re.IGNORECASE)


@dataclass
class Faults:
    """What happens to datagrams, in both directions."""

    loss: float = 0.0
    """Share that never arrives."""
    delay_s: float = 0.0
    """Each is on its way for so long."""
    jitter_s: float = 0.0
    """Each is held up for a random time up to this, besides."""
    seed: int = 7
    """Of what is lost: of media, always the same packets; of the rest, the same places in its order."""
    is_cut: bool = False
    passed: int = 0
    lost: int = 0


class _Side(asyncio.DatagramProtocol):
    def __init__(self, proxy: Proxy, *, is_front: bool) -> None:
        self._proxy = proxy
        self._is_front = is_front
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        self._proxy.forward(data, address, from_front=self._is_front)


class Proxy:
    """Stands before one UDP address; `address` is where callers send to."""

    def __init__(self, behind: tuple[str, int], faults: Faults) -> None:
        self._behind = behind
        self._faults = faults
        self._chance = random.Random(faults.seed)
        self._first: dict[tuple[bool, int], int] = {}
        """Sequence number with which each media stream began, by direction and source."""
        self._times: Counter[tuple[bool, str, int]] = Counter()
        self._caller: tuple[str, int] | None = None
        self.front = _Side(self, is_front=True)
        self.back = _Side(self, is_front=False)

    def forward(self, data: bytes, address: tuple[str, int], *, from_front: bool) -> None:
        if from_front:
            self._caller = address
        if self._faults.is_cut or self._is_lost(data, from_front):
            self._faults.lost += 1
            return
        self._faults.passed += 1
        delay = self._faults.delay_s + self._chance.random() * self._faults.jitter_s
        asyncio.get_running_loop().call_later(delay, self._send, data, from_front)

    def _is_lost(self, data: bytes, from_front: bool) -> bool:
        if len(data) > 12 and 127 < data[0] < 192 and not 192 <= data[1] <= 223:
            sequence, source = int.from_bytes(data[2:4]), int.from_bytes(data[8:12])
            number = (sequence - self._first.setdefault((from_front, source), sequence)) % (1 << 16)
            place = (from_front, "media", number)
        else:
            place = (from_front, "other", 0)
        self._times[place] += 1  # what is sent again has a chance of its own
        chance = random.Random(f"{self._faults.seed} {place} {self._times[place]}")
        return chance.random() < self._faults.loss

    def _send(self, data: bytes, from_front: bool) -> None:
        side, target = (self.back, self._behind) if from_front else (self.front, self._caller)
        if side.transport is not None and target is not None and not side.transport.is_closing():
            side.transport.sendto(data, target)


@contextlib.asynccontextmanager
async def in_front(behind: tuple[str, int], faults: Faults, proxy: Proxy | None = None) -> AsyncIterator[int]:
    """The port of a proxy before an address, on the same host."""
    proxy = proxy or Proxy(behind, faults)
    loop = asyncio.get_running_loop()
    front, _ = await loop.create_datagram_endpoint(lambda: proxy.front, local_addr=(behind[0], 0))
    back, _ = await loop.create_datagram_endpoint(lambda: proxy.back, local_addr=(behind[0], 0))
    try:
        yield int(front.get_extra_info("sockname")[1])
    finally:
        front.close()
        back.close()


@contextlib.asynccontextmanager
async def in_between(answer: str, faults: Faults) -> AsyncIterator[str]:
    """The answer with the proxy's address in the place of the server's first IPv4 candidate, and no other."""
    found = next(match for match in CANDIDATE.finditer(answer) if ":" not in match[3])
    async with in_front((found[3], int(found[4])), faults) as port:
        only = f"a=candidate:{found[1]} 1 udp {found[2]} {found[3]} {port} typ host\r\n"
        yield CANDIDATE.sub(lambda match: only if match[0] == found[0] else "", answer)
