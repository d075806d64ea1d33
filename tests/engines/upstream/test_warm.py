"""Lines that are dialled before they are needed, to a service that counts them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.engines.upstream.test_realtime import KEY, PATIENCE_S, Service, Session
from tests.outages.faults import FaultProxy
from voiceapp.drain import Drain
from voiceapp.engines.interfaces import Call
from voiceapp.engines.upstream import warm
from voiceapp.engines.upstream.line import Dialler, ServiceLine
from voiceapp.engines.upstream.media import RelayedRealtime
from voiceapp.engines.upstream.warm import Kind, WarmLines
from voiceapp.errors import EngineUnavailable

VIENNA = Kind("their-model", "Europe/Vienna")
LIMA = Kind("their-model", "America/Lima")


class Watched(Service):
    """A service that knows which of its sessions are open."""

    @property
    def open(self) -> list[Session]:
        return [session for session in self.sessions if not session.socket.closed]

    @property
    def zones(self) -> list[str]:
        return [handshake.query["time_zone"] for handshake in self.handshakes]


class Lines:
    """Lines to a service, `size` of them ahead of time."""

    def __init__(self, port: int, size: int = 2, **more: Any) -> None:
        self.is_asked = True
        self.drain = Drain()
        self.refusals = 0
        self.is_refusing = False
        url = f"http://127.0.0.1:{port}"
        self._dialler = Dialler(ws_url=url, api_key=KEY, model="", settings="UPSTREAM", headers={})
        self.warm = WarmLines("theirs", size, self._dial, is_asked=lambda: self.is_asked, drain=self.drain, **more)

    async def _dial(self, call: Call) -> ServiceLine:
        if self.is_refusing:
            self.refusals += 1
            raise EngineUnavailable("Nobody is there.")
        return await self._dialler.dial(call)

    async def close(self) -> None:
        await self.warm.close()
        await self._dialler.close()


@pytest.fixture
async def service() -> AsyncIterator[Watched]:
    service = Watched()
    await service.server.start_server()
    yield service
    await service.server.close()


@contextlib.asynccontextmanager
async def lines_to(service: Watched, **options: Any) -> AsyncIterator[Lines]:
    assert service.server.port is not None
    lines = Lines(service.server.port, **options)
    try:
        yield lines
    finally:
        await lines.close()


async def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def closing() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "line to theirs: closing"]


async def test_a_line_that_waits_is_used_once_and_another_takes_its_place(service: Watched) -> None:
    async with lines_to(service) as lines:
        lines.warm.expect(VIENNA)
        await until(lambda: len(lines.warm) == 2)
        taken = await lines.warm.take(VIENNA)
        assert taken is not None
        assert "session.created" in await taken.receive()
        await taken.send('{"type": "session.update", "session": {}}')
        assert "session.updated" in await taken.receive()
        await until(lambda: len(lines.warm) == 2)
        assert len(service.open) == 3
        await taken.close()
    await until(lambda: not service.open)


async def test_no_more_lines_wait_than_may(service: Watched) -> None:
    async with lines_to(service, size=3) as lines:
        lines.warm.expect(VIENNA)
        taken = await asyncio.gather(*(lines.warm.take(kind) for kind in [VIENNA, LIMA] * 10))
        await until(lambda: len(lines.warm) == 3)
        used = [one for one in taken if one is not None]
        assert len(service.open) <= 3 + len(used)
        for one in used:
            await one.close()


async def test_lines_are_kept_for_sessions_like_the_latest_ones(service: Watched) -> None:
    async with lines_to(service) as lines:
        lines.warm.expect(VIENNA)
        await until(lambda: len(lines.warm) == 2)
        assert await lines.warm.take(LIMA) is None
        await until(lambda: service.zones.count(LIMA.time_zone) == 1 and len(lines.warm) == 2)
        found = await lines.warm.take(LIMA)
        assert found is not None
        await found.close()
        await until(lambda: service.zones.count(LIMA.time_zone) >= 3)


async def test_a_line_that_the_service_has_closed_is_not_used(service: Watched) -> None:
    async with lines_to(service) as lines:
        lines.warm.expect(VIENNA)
        await until(lambda: len(lines.warm) == 2)
        first, second = service.open
        lines.is_refusing = True
        await first.socket.close()
        await second.say("session.closing", reason="The server stops.", code=4012)
        await until(lambda: first.socket.closed and second.socket.closed)
        assert await lines.warm.take(VIENNA) is None


async def test_a_line_that_leads_nowhere_is_not_used(service: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "CHECK_S", 0.2)
    assert service.server.port is not None
    proxy = FaultProxy(service.server.port)
    lines = Lines(proxy.port, size=1)
    try:
        lines.warm.expect(VIENNA)
        await until(lambda: len(lines.warm) == 1)
        lines.is_refusing = True
        proxy.faults.is_half_open = True
        assert await lines.warm.take(VIENNA) is None
    finally:
        proxy.faults.is_half_open = False
        await lines.close()
        proxy.close()


async def test_what_cut_one_line_off_has_cut_off_the_others(service: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """No session waits for one after the other, nor until they are closed."""
    monkeypatch.setattr(warm, "CHECK_S", 0.2)
    assert service.server.port is not None
    proxy = FaultProxy(service.server.port)
    lines = Lines(proxy.port, size=2)
    try:
        lines.warm.expect(VIENNA)
        assert await lines.warm.take(LIMA) is None
        await until(lambda: sorted(service.zones) == [LIMA.time_zone, VIENNA.time_zone] and len(lines.warm) == 2)
        lines.is_refusing = True
        proxy.faults.is_half_open = True
        assert await lines.warm.take(VIENNA) is None
        assert len(lines.warm) == 0
        assert len(closing()) == 2
        await lines.warm.close()
        assert not closing()
    finally:
        proxy.faults.is_half_open = False
        await lines.close()
        proxy.close()


async def test_an_old_line_is_not_used(service: Watched) -> None:
    async with lines_to(service, size=1, max_age_s=0.0) as lines:
        lines.warm.expect(VIENNA)
        await until(lambda: len(lines.warm) == 1)
        (old,) = service.open
        assert await lines.warm.take(VIENNA) is None
        await until(lambda: old.socket.closed)


async def test_a_line_that_comes_of_age_makes_way_for_a_new_one(
    service: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "LOOK_S", 3600.0)
    async with lines_to(service, size=1, max_age_s=0.2) as lines:
        lines.warm.expect(VIENNA)
        await until(lambda: len(service.sessions) >= 2 and service.sessions[0].socket.closed)
        await until(lambda: len(lines.warm) == 1)


async def test_none_wait_while_the_service_is_not_asked(service: Watched) -> None:
    async with lines_to(service) as lines:
        lines.warm.expect(VIENNA)
        await until(lambda: len(lines.warm) == 2)
        lines.is_asked = False
        assert await lines.warm.take(LIMA) is None
        await until(lambda: not service.open)
        assert len(lines.warm) == 0


async def test_a_stopping_server_closes_them(service: Watched) -> None:
    async with lines_to(service) as lines:
        lines.warm.expect(VIENNA)
        await until(lambda: len(lines.warm) == 2)
        lines.drain.begin()
        await until(lambda: not service.open)
        assert await lines.warm.take(VIENNA) is None
        assert len(service.handshakes) == 2


async def test_a_service_that_refuses_is_given_time(service: Watched) -> None:
    async with lines_to(service) as lines:
        lines.is_refusing = True
        lines.warm.expect(VIENNA)
        for _ in range(20):
            assert await lines.warm.take(VIENNA) is None
            await asyncio.sleep(0)
        await until(lambda: lines.refusals)
        assert lines.refusals == 2  # one attempt for each line, and a pause


async def test_a_conversation_begins_on_a_line_that_waits(service: Watched) -> None:
    model = RelayedRealtime(base_url=str(service.server.make_url("/")), api_key=KEY, model="their-model", warm=1)
    call = Call("sess_ours", "upstream", "Europe/Vienna")
    try:
        await model.prepare(call)  # the first is waited for, and shows what to dial for
        model.abandon(call)
        await until(lambda: len(service.open) == 1 and len(service.handshakes) == 2)
        (waiting,) = service.open
        await model.prepare(call)
        async with asyncio.TaskGroup() as tasks:
            events = model.open(call, tasks).events()
            assert (await anext(events)).to_wire()["session"]["id"] == "sess_ours"  # type: ignore[union-attr]
            await waiting.say("session.finished")
            await events.aclose()
    finally:
        await model.close()


async def test_a_service_whose_sessions_are_short_is_not_given_time(service: Watched) -> None:
    """It ends them when they are older than they may be here."""

    async def end(session: Session) -> None:
        await asyncio.sleep(0.1)
        await session.socket.close()

    service.follow(*[end] * 20)
    async with lines_to(service, size=1, max_age_s=0.05) as lines:
        lines.warm.expect(VIENNA)
        await until(lambda: len(service.sessions) >= 8)


async def test_a_line_that_came_of_age_ends_a_row_of_failures(
    service: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PAUSE_S", 0.02), ("LONGEST_PAUSE_S", 3600), ("MOST_FAILURES", 20), ("SHORTEST_LOOK_S", 0.01)):
        monkeypatch.setattr(warm, name, value)
    async with lines_to(service, size=1, max_age_s=0.01) as lines:
        lines.warm.expect(VIENNA)
        for _ in range(12):
            lines.is_refusing, refusals = True, lines.refusals
            await until(lambda: lines.refusals > refusals)  # noqa: B023
            lines.is_refusing, sessions = False, len(service.sessions)
            await until(lambda: len(service.sessions) >= sessions + 2)  # noqa: B023
