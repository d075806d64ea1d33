"""The bridge between a transport and a stream that do what no well-behaved pair would."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import closing
from typing import Any

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.accounts.auth import caller_from_bearer
from voiceapp.accounts.models import ApiKey, UsageRecord
from voiceapp.accounts.seats import Seat, Seats
from voiceapp.engines.interfaces import Call, NextResponse, Voice
from voiceapp.errors import (
    AccessDenied,
    ClientSilent,
    EngineUnavailable,
    FloodError,
    InvalidParameter,
    Throttled,
)
from voiceapp.formats import identifier
from voiceapp.protocol.speaking.stock_replies import StockReply
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import TurnEnded
from voiceapp.realtime import bridge
from voiceapp.realtime.lifetime.end_conditions import KEY_LOST, LOGIN_LOST, EndConditions
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.realtime.records.recorder import Beginning, Recorder
from voiceapp.realtime.records.turn_charges import LAST_WORDS
from voiceapp.realtime.transports.interface import Disconnected

pytestmark = pytest.mark.django_db(transaction=True)


def turn(ordinal: int = 1, **changes: Any) -> TurnEnded:
    fields: dict[str, Any] = {
        "ordinal": ordinal,
        "status": "completed",
        "user_text": "Hello?",
        "assistant_text": "Hello.",
        "heard_text": "Hello.",
        "is_interrupted": False,
        "input_audio_ms": 800,
        "output_audio_ms": 1200,
        "input_tokens": 3,
        "output_tokens": 4,
        "is_spoken": True,
        "end_of_turn_ms": 200,
        "recognition_ms": 250,
        "first_token_ms": 260,
        "first_audio_ms": 300,
    }
    return TurnEnded(**{**fields, **changes})


class Line:
    """A transport in memory."""

    def __init__(self, *, is_slow: bool = False) -> None:
        self.incoming: asyncio.Queue[ev.ClientEvent | Exception] = asyncio.Queue()
        self.sent: list[ev.ServerEvent] = []
        self.spoke = asyncio.Event()
        self.closed: list[tuple[int, str]] = []
        self.cuts = 0
        """How often playout was cut."""
        self._is_slow = is_slow

    async def receive(self) -> ev.ClientEvent:
        message = await self.incoming.get()
        if isinstance(message, Exception):
            raise message
        return message

    async def send(self, event: ev.ServerEvent) -> None:
        if self._is_slow:
            raise FloodError("The connection is too slow for this conversation.", code="too_slow")
        self.sent.append(event)
        self.spoke.set()

    def cut_playout(self) -> None:
        self.cuts += 1

    async def close(self, code: int, reason: str) -> None:
        self.closed.append((code, reason))


class Stream:
    def __init__(self, tasks: asyncio.TaskGroup, failure: Exception | None) -> None:
        self.outgoing: asyncio.Queue[ev.ServerEvent | TurnEnded | None] = asyncio.Queue()
        self.idle = asyncio.Event()
        self.is_closed = False
        self._failure = failure
        self.work = tasks.create_task(asyncio.Event().wait())
        if failure:
            tasks.create_task(self._fail(failure))

    async def _fail(self, failure: Exception) -> None:
        raise failure

    async def receive(self, event: ev.ClientEvent) -> None:
        self.outgoing.put_nowait(ev.AudioCleared(event_id="event_1") if isinstance(event, ev.AudioClear) else None)

    async def events(self) -> AsyncGenerator[ev.ServerEvent | TurnEnded, None]:
        while (event := await self.outgoing.get()) is not None:
            yield event

    def notify(self, words: str | StockReply) -> bool:
        return False

    async def wait_idle(self) -> None:
        await self.idle.wait()

    def close(self) -> Sequence[TurnEnded]:
        self.is_closed = True
        return (turn(7, status="cancelled"),)


class Model:
    voices: Sequence[Voice] = ()
    default_voice = ""

    def __init__(self, *, failure: Exception | None = None, opens: bool = True) -> None:
        self.streams: list[Stream] = []
        self.calls: list[Call] = []
        self._failure = failure
        self._opens = opens

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> Stream:
        if not self._opens:
            raise EngineUnavailable("Voice models are missing.")
        self.calls.append(call)
        self.streams.append(Stream(tasks, self._failure))
        return self.streams[-1]


class Conversation:
    def __init__(self, alice: Member, line: Line, model: Model, **limits: Any) -> None:
        self.alice = alice
        self.line = line
        self.model = model
        self.name = "voice"
        self.id = identifier("sess")
        self.stopping = asyncio.Event()
        self.revoked = asyncio.Event()
        self.seats = Seats()
        self._limits = {"lifetime_s": 60.0, "drain_s": 5.0, **limits}

    async def run(self) -> None:
        caller = await caller_from_bearer(self.alice.authorization)
        await bridge.run(
            self.line,
            self.model,
            Call(session_id=self.id, model=self.name),
            Recorder(Beginning(caller, self.name, "websocket", "127.0.0.1", "program", session_id=self.id)),
            EndConditions(stopping=_waiter(self.stopping), revoked=_waiter(self.revoked), **self._limits),
            Seat(self.seats, caller, "127.0.0.1"),
        )

    async def row(self) -> RealtimeSession:
        return await RealtimeSession.objects.aget(pk=self.id)

    @property
    def stream(self) -> Stream:
        return self.model.streams[0]

    def said(self) -> list[str]:
        return [event.type for event in self.line.sent]


def _waiter(event: asyncio.Event) -> Callable[[], Any]:
    async def wait() -> None:
        await event.wait()

    return wait


def assert_over(conversation: Conversation, code: int) -> None:
    """Closed once with this code, and nothing runs on."""
    assert [closed[0] for closed in conversation.line.closed] == [code]
    for stream in conversation.model.streams:
        assert stream.is_closed
        assert stream.work.cancelled()
    assert all(event.event_id for event in conversation.line.sent)


async def test_events_go_both_ways_until_the_stream_is_finished(alice: Member) -> None:
    conversation = Conversation(alice, Line(), Model())
    conversation.line.incoming.put_nowait(ev.AudioClear())
    conversation.line.incoming.put_nowait(ev.SessionFinish())

    await conversation.run()

    assert conversation.said() == ["input_audio_buffer.cleared"]
    assert_over(conversation, 1000)


async def test_a_caller_for_whom_no_seat_is_free_is_told_so(alice: Member, settings: Settings) -> None:
    settings.MAX_SESSIONS_PER_ACCOUNT = 0
    conversation = Conversation(alice, Line(), Model())

    await conversation.run()

    assert conversation.said() == ["error", "session.closing"]
    error = conversation.line.sent[0].to_wire()["error"]
    assert error["code"] == "Throttling.Concurrency"
    assert "conversations open already" in error["message"]
    assert conversation.model.streams == []
    assert_over(conversation, 4429)
    assert (await conversation.row()).close_code == 4429


async def test_the_only_seat_is_free_while_the_ends_of_others_are_still_being_written(
    alice: Member, settings: Settings
) -> None:
    settings.MAX_SESSIONS = 1
    seats = Seats()
    conversations = [Conversation(alice, Line(), Model()) for _ in range(3)]
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as lock:
        lock.execute("begin immediate")
        running = []
        for conversation in conversations:
            conversation.seats = seats
            running.append(asyncio.create_task(conversation.run()))
            conversation.line.incoming.put_nowait(ev.AudioClear())
            async with asyncio.timeout(30):
                await conversation.line.spoke.wait()
                assert seats.open_sessions == 1
                conversation.line.incoming.put_nowait(Disconnected(1001))
                while seats.open_sessions:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert not running[-1].done(), "the seat was free only when the end was written, or given up"
    await asyncio.gather(*running)
    async with asyncio.timeout(30):
        while await RealtimeSession.objects.filter(close_code=1001).acount() < len(conversations):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_what_cannot_be_read_is_answered_and_survived(alice: Member) -> None:
    conversation = Conversation(alice, Line(), Model())
    conversation.line.incoming.put_nowait(ev.EventError("No.", code="invalid_json", event_id="mine"))
    conversation.line.incoming.put_nowait(ev.AudioClear())
    conversation.line.incoming.put_nowait(ev.SessionFinish())

    await conversation.run()

    assert conversation.said() == ["error", "input_audio_buffer.cleared"]
    assert conversation.line.sent[0].to_wire()["error"]["event_id"] == "mine"


async def test_a_caller_who_leaves_is_not_talked_to(alice: Member) -> None:
    conversation = Conversation(alice, Line(), Model())
    conversation.line.incoming.put_nowait(Disconnected(1001))

    await conversation.run()

    assert conversation.said() == []
    assert (await conversation.row()).close_code == 1001
    (cut,) = [row async for row in Turn.objects.filter(session_id=conversation.id)]
    assert (cut.ordinal, cut.status) == (7, "cancelled")


ENGINE_GONE = EngineUnavailable("The engine is gone.")
UNREADABLE, USED_UP, DENIED = InvalidParameter("No audio."), Throttled("Used up."), AccessDenied("Used up.")
LASTED = "The session has reached its longest duration of {}."


@pytest.mark.parametrize(
    ("model", "limits", "code", "error", "reason"),
    [
        ({"failure": ENGINE_GONE}, {}, 4503, ENGINE_GONE.code, ENGINE_GONE.message),
        ({"opens": False}, {}, 4503, ENGINE_GONE.code, "Voice models are missing."),
        ({"failure": ClientSilent(23)}, {}, 1000, ClientSilent(23).code, ClientSilent(23).message),
        ({"failure": UNREADABLE}, {}, 1000, UNREADABLE.code, UNREADABLE.message),
        ({"failure": USED_UP}, {}, 4402, USED_UP.code, USED_UP.message),
        ({"failure": DENIED}, {}, 4402, DENIED.code, DENIED.message),
        ({}, {"revocation": KEY_LOST}, 4401, "invalid_api_key", KEY_LOST.reason),
        ({}, {"revocation": LOGIN_LOST}, 4401, "signed_out", LOGIN_LOST.reason),
        ({}, {"lifetime_s": 0.05}, 4000, None, LASTED.format("less than a second")),
        ({}, {"lifetime_s": 1}, 4000, None, LASTED.format("1 second")),
    ],
)
async def test_an_end_is_named_and_written_down(
    alice: Member, model: dict[str, Any], limits: dict[str, Any], code: int, error: str | None, reason: str
) -> None:
    conversation = Conversation(alice, Line(), Model(**model), **limits)
    if "revocation" in limits:
        conversation.revoked.set()

    await conversation.run()

    told = [event.to_wire()["error"] for event in conversation.line.sent if isinstance(event, ev.ErrorEvent)]
    assert [(one["code"], one["message"]) for one in told] == ([(error, reason)] if error else [])
    assert all((one["type"] == "server_error") is (code == 4503) for one in told)
    assert conversation.said() == ["error"] * bool(error) + ["session.closing"] * (code != 1000)
    assert_over(conversation, code)
    assert (await conversation.row()).close_reason == reason


async def test_a_flood_is_named_and_ends_it(alice: Member) -> None:
    conversation = Conversation(alice, Line(), Model())
    conversation.line.incoming.put_nowait(FloodError("Too fast.", code="audio_too_fast"))

    await conversation.run()

    assert conversation.said() == ["error", "session.closing"]
    assert_over(conversation, 4408)


async def test_a_caller_who_does_not_read_is_closed_and_written_down(alice: Member) -> None:
    conversation = Conversation(alice, Line(is_slow=True), Model())
    conversation.line.incoming.put_nowait(ev.AudioClear())

    await conversation.run()

    assert_over(conversation, 4408)
    row = await conversation.row()
    assert (row.close_code, row.ended_at is not None) == (4408, True)


async def test_a_fault_of_ours_is_logged_and_told_as_one_sentence(
    alice: Member, caplog: pytest.LogCaptureFixture
) -> None:
    conversation = Conversation(alice, Line(), Model(failure=ZeroDivisionError("secret detail")))

    await conversation.run()

    assert conversation.said() == ["session.closing"]
    assert "secret" not in str(conversation.line.sent[0].to_wire())
    assert "secret detail" in caplog.text
    assert_over(conversation, 4011)


async def test_a_fault_while_the_caller_leaves_is_still_a_caller_who_left(alice: Member) -> None:
    conversation = Conversation(alice, Line(), Model(failure=EngineUnavailable("Too late.")))
    conversation.line.incoming.put_nowait(Disconnected(1006))

    await conversation.run()

    row = await conversation.row()
    assert (row.close_code, row.close_reason) == (1006, "The connection was lost.")


async def test_a_caller_who_finishes_and_does_not_wait_has_finished(alice: Member) -> None:
    conversation = Conversation(alice, Line(), Model())
    conversation.line.incoming.put_nowait(ev.SessionFinish())
    conversation.line.incoming.put_nowait(Disconnected(1001))

    await conversation.run()

    row = await conversation.row()
    assert (row.close_code, row.close_reason) == (1000, "The session is finished.")


async def test_a_budget_that_is_used_up_ends_it_once_that_was_said(
    alice: Member, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "LEAD_MS", 0)
    settings.LEDGER_PRICES = {"realtime": {"audio_seconds": 1}}
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(monthly_budget_nano=0)
    conversation = Conversation(alice, Line(), Model())
    conversation.line.incoming.put_nowait(ev.AudioClear())
    running = asyncio.create_task(conversation.run())
    await asyncio.wait_for(conversation.line.spoke.wait(), 5)
    before_response = conversation.model.calls[0].before_response
    assert before_response is not None

    assert await before_response(NextResponse(1, 0, 0, None, True)) == LAST_WORDS

    for _ in range(100):
        await asyncio.sleep(0)
    conversation.line.spoke.clear()
    conversation.stream.outgoing.put_nowait(ev.AudioCleared(event_id="event_2"))  # what is said in place of a reply
    await asyncio.wait_for(conversation.line.spoke.wait(), 5)
    conversation.stream.idle.set()
    await running
    assert conversation.said() == [*["input_audio_buffer.cleared"] * 2, "error", "session.closing"]
    assert conversation.line.sent[2].to_wire()["error"]["code"] == "budget_used_up"
    assert_over(conversation, 4402)
    assert not await UsageRecord.objects.filter(request_id=f"{conversation.id}:1").aexists()


async def test_a_stop_is_announced_and_waits_for_the_answer(alice: Member) -> None:
    conversation = Conversation(alice, Line(), Model())
    conversation.stopping.set()
    running = asyncio.create_task(conversation.run())
    await asyncio.wait_for(conversation.line.spoke.wait(), 5)
    assert not conversation.line.closed

    conversation.stream.idle.set()
    await running

    assert conversation.said() == ["session.closing"]
    assert_over(conversation, 4012)


async def test_a_stop_does_not_wait_for_ever(alice: Member) -> None:
    conversation = Conversation(alice, Line(), Model(), drain_s=0.05)
    conversation.stopping.set()

    await conversation.run()

    assert_over(conversation, 4012)


async def test_being_cancelled_closes_line_and_books(alice: Member) -> None:
    conversation = Conversation(alice, Line(), Model())
    conversation.line.incoming.put_nowait(ev.AudioClear())
    running = asyncio.create_task(conversation.run())
    await asyncio.wait_for(conversation.line.spoke.wait(), 5)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert_over(conversation, 4012)
    assert (await conversation.row()).ended_at is not None
