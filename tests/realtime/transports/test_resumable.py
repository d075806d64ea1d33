"""A session's connections, one after the other: what is kept, what is said again, and what ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from voiceapp.errors import FloodError, InvalidParameter
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.close_codes import GOES_ON_ELSEWHERE
from voiceapp.realtime.lifetime.resumption import Resumption, read_resumption
from voiceapp.realtime.transports import sent_events
from voiceapp.realtime.transports.interface import Disconnected
from voiceapp.realtime.transports.resumable import ResumableTransport
from voiceapp.realtime.transports.sent_events import BYTES_PER_MS, SentEvents

LONG_S = 60.0
CREATED = ev.SessionCreated(session={"id": "sess_1"})


class Line:
    """A connection in memory."""

    def __init__(self, *, is_stuck: bool = False) -> None:
        self.incoming: asyncio.Queue[ev.ClientEvent | Exception] = asyncio.Queue()
        self.sent: list[ev.ServerEvent] = []
        self.closed: list[int] = []
        self.cuts = 0
        self._is_stuck = is_stuck
        self._news = asyncio.Condition()

    async def receive(self) -> ev.ClientEvent:
        message = await self.incoming.get()
        if isinstance(message, Exception):
            raise message
        return message

    async def send(self, event: ev.ServerEvent) -> None:
        if self._is_stuck:
            await asyncio.Event().wait()
        async with self._news:
            self.sent.append(event)
            self._news.notify_all()

    def cut_playout(self) -> None:
        self.cuts += 1

    async def close(self, code: int, reason: str) -> None:
        self.closed.append(code)

    async def told(self, count: int) -> list[str]:
        """Types and numbers of what was said, when so much was."""
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(lambda: len(self.sent) >= count)
        return [f"{event.type} {event.event_id.removeprefix('event_')}" for event in self.sent]


class Session:
    def __init__(self, grace_s: float = LONG_S) -> None:
        self.ended = asyncio.Event()
        self.transport = ResumableTransport("sess_1", "secret", grace_s, self.end)
        self.carried: list[asyncio.Task[None]] = []

    async def end(self) -> None:
        self.ended.set()

    def carry(self, line: Line, resumption: Resumption | None = None) -> asyncio.Task[None]:
        task = asyncio.create_task(self.transport.carry(line, resumption))
        self.carried.append(task)
        return task


@asynccontextmanager
async def session(grace_s: float = LONG_S) -> AsyncIterator[Session]:
    made = Session(grace_s)
    try:
        yield made
    finally:
        await made.transport.close(1000, "over")
        async with asyncio.timeout(10):
            await asyncio.gather(*made.carried, return_exceptions=True)


def delta(milliseconds: int, item_id: str = "item_1", fill: bytes = b"\1\0") -> ev.AudioDelta:
    audio = fill * (milliseconds * BYTES_PER_MS // 2)
    return ev.AudioDelta(response_id="resp_1", item_id=item_id, output_index=0, audio=audio)


async def test_whoever_comes_back_is_told_what_they_missed_and_nothing_twice() -> None:
    first, second = Line(), Line()
    async with session() as one:
        over = one.carry(first)
        await one.transport.send(CREATED)
        assert await first.told(2) == ["session.created 1", "session.resumable 2"]
        first.incoming.put_nowait(ev.AudioClear())
        first.incoming.put_nowait(ev.AudioAppend(audio=b"\0\0"))
        assert [type(await one.transport.receive()) for _ in range(2)] == [ev.AudioClear, ev.AudioAppend]
        first.incoming.put_nowait(Disconnected(1006))
        await over
        await one.transport.send(ev.AudioCleared())
        one.carry(second, Resumption("secret", last=1))
        await second.told(3)
        await one.transport.send(ev.AudioCleared())
        assert await second.told(4) == [
            "session.resumed 0",
            "session.resumable 2",
            "input_audio_buffer.cleared 3",
            "input_audio_buffer.cleared 4",
        ]
    assert isinstance(second.sent[0], ev.SessionResumed)
    assert second.sent[0].received == 1
    assert (first.closed, second.closed) == ([GOES_ON_ELSEWHERE], [1000])


async def test_the_newest_connection_takes_over_from_one_that_takes_nothing() -> None:
    stuck, second = Line(is_stuck=True), Line()
    async with session() as one:
        over = one.carry(stuck)
        await one.transport.send(CREATED)
        one.carry(second, Resumption("secret"))
        await over
        assert await second.told(3) == ["session.resumed 0", "session.created 1", "session.resumable 2"]
        second.incoming.put_nowait(ev.AudioClear())
        assert isinstance(await one.transport.receive(), ev.AudioClear)
    assert stuck.closed == [GOES_ON_ELSEWHERE]


@pytest.mark.parametrize("code", [1000, 1001, 4000])
async def test_who_leaves_is_not_waited_for(code: int) -> None:
    line = Line()
    async with session() as one:
        one.carry(line)
        await one.transport.send(CREATED)
        line.incoming.put_nowait(Disconnected(code))
        with pytest.raises(Disconnected) as gone:
            await one.transport.receive()
        assert gone.value.code == code


async def test_who_has_finished_is_not_waited_for() -> None:
    line = Line()
    async with session() as one:
        one.carry(line)
        await one.transport.send(CREATED)
        line.incoming.put_nowait(ev.SessionFinish())
        line.incoming.put_nowait(Disconnected(1006))
        assert isinstance(await one.transport.receive(), ev.SessionFinish)
        assert not one.transport.can_resume(2)
        with pytest.raises(Disconnected):
            await one.transport.receive()


async def test_nobody_is_waited_for_longer_than_the_grace() -> None:
    line = Line()
    async with session(grace_s=0.05) as one:
        one.carry(line)
        await one.transport.send(CREATED)
        line.incoming.put_nowait(Disconnected(1006))
        async with asyncio.timeout(10):
            with pytest.raises(Disconnected) as gone:
                await one.transport.receive()
        assert gone.value.code == 1006
        assert not one.transport.can_resume(2)


async def test_who_comes_back_to_a_session_that_has_ended_meanwhile_is_sent_away() -> None:
    late = Line()
    async with session() as one:
        await one.transport.send(CREATED)
        await one.transport.close(1000, "over")
        async with asyncio.timeout(10):
            await one.carry(late, Resumption("secret"))
    assert (late.sent, late.closed) == ([], [GOES_ON_ELSEWHERE])


async def test_more_than_is_kept_ends_a_session_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_events, "MAX_EVENTS", 10)
    line = Line()
    async with session() as one:
        over = one.carry(line)
        await one.transport.send(ev.AudioCleared())
        await line.told(1)
        for _ in range(29):
            await one.transport.send(ev.AudioCleared())
        await line.told(30)
        assert one.transport.can_resume(20)
        assert not one.transport.can_resume(19)
        assert not one.transport.can_resume(31)
        line.incoming.put_nowait(Disconnected(1006))
        await over
        for _ in range(10):
            await one.transport.send(ev.AudioCleared())
        with pytest.raises(FloodError):
            await one.transport.send(ev.AudioCleared())


async def test_whoever_takes_things_slowly_holds_the_session_up() -> None:
    stuck, second = Line(is_stuck=True), Line()
    async with session() as one:
        one.carry(stuck)

        async def talk() -> None:
            for _ in range(200):
                await one.transport.send(ev.AudioCleared())

        talking = asyncio.create_task(talk())
        done, _ = await asyncio.wait((talking,), timeout=0.2)
        assert not done
        one.carry(second, Resumption("secret"))
        await talking
        assert len(await second.told(201)) == 201


async def test_a_carrier_that_is_cancelled_ends_the_session_it_carries() -> None:
    first, second = Line(), Line()
    async with session() as one:
        replaced = one.carry(first)
        using = one.carry(second, Resumption("secret"))
        await replaced
        using.cancel()
        await asyncio.gather(using, return_exceptions=True)
        assert one.ended.is_set()


# ── What is said again ───────────────────────────────────────────────────────────────────────────────────────────────


def kept(*events: ev.ServerEvent) -> SentEvents:
    sent = SentEvents()
    for event in events:
        sent.add(event)
    return sent


def done(item_id: str = "item_1") -> ev.AudioDone:
    return ev.AudioDone(response_id="resp_1", item_id=item_id, output_index=0)


def test_a_voice_goes_on_where_it_was_heard() -> None:
    sent = kept(delta(100), ev.AudioCleared(), delta(100, fill=b"\2\0"), done(), delta(40, "item_2"))
    first, last, ended, next_item = sent.missed(4, {"item_1": 70})
    assert isinstance(first, ev.AudioDelta)
    assert isinstance(last, ev.AudioDelta)
    assert first.audio == b"\1\0" * (30 * BYTES_PER_MS // 2)
    assert last.audio == b"\2\0" * (100 * BYTES_PER_MS // 2)
    assert ended.event_id == "event_4"
    assert next_item.event_id == "event_5"
    assert [event.event_id for event in sent.missed(5, {})] == []
    assert [event.event_id for event in sent.missed(5, {"item_1": 500})] == ["event_4"]


def test_a_voice_that_was_cut_is_not_heard_again() -> None:
    sent = kept(delta(100), ev.AudioCleared())
    sent.cut_audio()
    sent.add(delta(20, "item_2"))
    assert [event.event_id for event in sent.missed(0, {"item_1": 0})] == ["event_2", "event_3"]


def test_so_much_is_kept_and_no_more() -> None:
    sent = kept(*(delta(1000) for _ in range(100)))
    assert sent.forgotten == 100 - sent_events.MAX_BYTES // (1000 * BYTES_PER_MS)
    assert len(sent.missed(0, {})) == 100 - sent.forgotten


# ── What a connection says of it ─────────────────────────────────────────────────────────────────────────────────────


def test_it_reads_what_a_connection_says() -> None:
    assert read_resumption({}) is None
    assert read_resumption({"resume": "on"}) == Resumption()
    query = {"resume": "secret", "last": "17", "heard": "item_1:1200,item_2:0"}
    assert read_resumption(query) == Resumption("secret", 17, {"item_1": 1200, "item_2": 0})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("last", "-1"), ("last", "1e9"), ("last", "٣"), ("last", "9" * 5000), ("heard", "item_1"), ("heard", "a:1:2"),
        ("heard", "item_1:-5"), ("heard", ",".join(f"item_{number}:0" for number in range(17))), ("heard", "é:5"),
    ],
)  # fmt: skip
def test_it_refuses_what_it_cannot_read(name: str, value: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_resumption({"resume": "secret", name: value})
    assert refused.value.param == name
