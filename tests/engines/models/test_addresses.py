"""Several addresses of one service: the less busy of two is asked, and another where one is away."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from voiceapp.engines.models.addresses import FIRST_PAUSE_S, LONGEST_PAUSE_S, Addresses

KEY = ConnectionKey("127.0.0.1", 9, False, True, None, None, None)
REFUSED = aiohttp.ClientConnectorError(KEY, OSError(111, "refused"))
STALE = aiohttp.ServerDisconnectedError()


@dataclass(eq=False)
class Response:
    status: int = 200
    closed: bool = False

    def close(self) -> None:
        self.closed = True


class Service:
    """Servers at addresses, and what those say that are not well."""

    def __init__(self, given: str = "http://one/v1/, http://two/v1") -> None:
        self.now = 0.0
        self.faults: dict[str, Exception | int] = {}
        self.asked: list[str] = []
        self.open: list[Response] = []
        self._addresses = Addresses(given, now=lambda: self.now)

    async def ask(self) -> int:
        found = await self._addresses.ask(self._send, status=lambda response: response.status)
        self.open.append(found)
        return found.status

    async def _send(self, url: str) -> Response:
        self.asked.append(url)
        fault = self.faults.get(url, 200)
        if isinstance(fault, Exception):
            raise fault
        return Response(fault)


async def test_requests_go_where_fewer_are_in_use() -> None:
    service = Service()
    for _ in range(20):
        await service.ask()
    assert Counter(service.asked) == {"http://one/v1": 10, "http://two/v1": 10}
    for response, url in zip(service.open, service.asked, strict=True):
        response.closed = url == "http://one/v1"
    service.asked.clear()
    for _ in range(10):
        await service.ask()
    assert set(service.asked) == {"http://one/v1"}


@pytest.mark.parametrize("fault", [REFUSED, STALE, aiohttp.ConnectionTimeoutError(), 502, 503, 504])
async def test_another_is_asked_and_the_one_that_is_away_left_out_for_longer_each_time(fault: Exception | int) -> None:
    service = Service()
    service.faults["http://one/v1"] = fault
    while "http://one/v1" not in service.asked:
        assert await service.ask() == 200
    pause_s = FIRST_PAUSE_S
    for _ in range(6):
        service.asked.clear()
        service.now += pause_s - 0.1
        for _ in range(20):
            assert await service.ask() == 200
        assert set(service.asked) == {"http://two/v1"}
        service.now += 0.2
        while "http://one/v1" not in service.asked:
            service.open.clear()
            assert await service.ask() == 200
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def test_one_that_is_busy_is_asked_again_next_time() -> None:
    service = Service()
    service.faults["http://one/v1"] = 429
    assert {await service.ask() for _ in range(20)} == {200}
    assert service.asked.count("http://one/v1") > 5


async def test_where_all_are_away_their_fault_is_told_and_the_next_request_tries_again() -> None:
    service = Service()
    service.faults = {"http://one/v1": REFUSED, "http://two/v1": REFUSED}
    for _ in range(3):
        with pytest.raises(aiohttp.ClientConnectorError):
            await service.ask()
    assert len(service.asked) == 6
    service.faults = {"http://one/v1": 503, "http://two/v1": 503}
    assert await service.ask() == 503


@pytest.mark.parametrize(
    ("given", "fault", "times"),
    [
        ("http://one/v1", STALE, 2),
        ("http://one/v1", REFUSED, 1),
        ("http://one/v1,http://one/v1", TimeoutError(), 1),  # the server may be working on it
    ],
)
async def test_a_request_is_sent_again_only_where_that_may_help(given: str, fault: Exception, times: int) -> None:
    service = Service(given)
    service.faults["http://one/v1"] = fault
    with pytest.raises(type(fault)):
        await service.ask()
    assert len(service.asked) == times


async def test_a_single_address_says_itself_that_it_is_busy() -> None:
    service = Service("http://one/v1")
    service.faults["http://one/v1"] = 503
    assert await service.ask() == 503
    assert len(service.asked) == 1
