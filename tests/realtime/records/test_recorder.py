"""The books of a conversation, also with a database that is slow, locked or gone."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.log import logged
from tests.realtime.test_bridge import turn
from voiceapp.accounts.auth import caller_from_bearer
from voiceapp.accounts.models import Account, UsageRecord
from voiceapp.database.patience import waits_at_most
from voiceapp.database.thread import close_db_thread, run_in_db_thread
from voiceapp.formats import identifier
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.lifetime.processes import own_name
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.realtime.records import recorder as records
from voiceapp.realtime.records.queue import QUEUE
from voiceapp.realtime.records.recorder import Beginning, Recorder, record_relayed, together

pytestmark = pytest.mark.django_db(transaction=True)


async def recorder_of(alice: Member) -> tuple[str, Recorder]:
    session_id = identifier("sess")
    caller = await caller_from_bearer(alice.authorization)
    return session_id, Recorder(Beginning(caller, "voice", "websocket", "127.0.0.1", "program", session_id=session_id))


@contextmanager
def locked_database() -> Iterator[None]:
    """Somebody else writes and does not finish."""
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def written(rows: QuerySet[Any]) -> None:
    """Until there are such rows: they are written beside the conversation."""
    async with asyncio.timeout(10):
        while True:
            if await rows.aexists():
                return
            await asyncio.sleep(0.01)


async def turns_of(session_id: str) -> list[Turn]:
    return [row async for row in Turn.objects.filter(session_id=session_id)]


async def test_a_row_when_it_begins_a_row_per_turn_and_sums_at_the_end(alice: Member) -> None:
    session_id, recorder = await recorder_of(alice)
    writing = asyncio.create_task(recorder.run())
    recorder.add(turn(1))
    recorder.add(turn(2, output_audio_ms=300))
    await written(Turn.objects.filter(session_id=session_id, ordinal=2))
    begun = await RealtimeSession.objects.aget(pk=session_id)
    assert (begun.account_id, begun.api_key_id, begun.ended_at) == (alice.account.pk, alice.row.pk, None)
    assert begun.served_by == own_name()

    writing.cancel()
    await recorder.finish(1000, "The session is finished.")

    ended = await RealtimeSession.objects.aget(pk=session_id)
    assert (ended.close_code, ended.turn_count, ended.output_audio_ms, ended.input_audio_ms) == (1000, 2, 1500, 1600)
    assert (ended.input_tokens, ended.output_tokens) == (6, 8)


async def test_a_turn_that_is_told_again_counts_once(alice: Member) -> None:
    session_id, recorder = await recorder_of(alice)
    recorder.add(turn(1, status="cancelled", input_audio_ms=1400, output_audio_ms=700))
    told_again = turn(1, status="cancelled", is_interrupted=True, heard_text="Hel", input_audio_ms=1400)
    recorder.add(replace(told_again, output_audio_ms=100))

    await recorder.finish(1000, "")

    (row,) = await turns_of(session_id)
    assert (row.heard_text, row.interrupted, row.output_audio_ms) == ("Hel", True, 100)
    assert (await RealtimeSession.objects.aget(pk=session_id)).output_audio_ms == 100
    lines = {row.unit: row async for row in UsageRecord.objects.filter(request_id=f"{session_id}:1")}
    used = {"input_tokens": 3, "output_tokens": 4, "audio_seconds": 3}
    assert {unit: row.quantity for unit, row in lines.items()} == used
    assert {row.key_id for row in lines.values()} == {alice.row.pk}


async def test_a_row_has_what_is_known_of_its_turn(alice: Member) -> None:
    session_id, recorder = await recorder_of(alice)
    recorder.add(turn(1, served_by="acme/large"))
    recorder.add(turn(2, is_spoken=False, input_audio_ms=0, end_of_turn_ms=None, recognition_ms=None))
    # A model may split a character over two pieces of its text, and may end between them.
    recorder.add(turn(3, assistant_text="\ud83d" + "\ude00 yes\x00 \ud83d"))

    await recorder.finish(1000, "")

    spoken, written, halved = await turns_of(session_id)
    assert (spoken.user_text, spoken.assistant_text) == ("Hello?", "Hello.")
    assert spoken.heard_text == "", "it is kept where something was not heard"
    assert (spoken.is_spoken, spoken.first_audio_ms, spoken.served_by) == (True, 300, "acme/large")
    assert (written.is_spoken, written.first_audio_ms, written.served_by) == (False, 300, "")
    assert halved.assistant_text == "😀 yes \ufffd"


async def test_words_are_not_kept_when_they_are_switched_off(alice: Member, settings: Settings) -> None:
    settings.TRANSCRIPT_DAYS = 0
    session_id, recorder = await recorder_of(alice)
    recorder.add(turn(1, is_interrupted=True, status="cancelled"))

    await recorder.finish(1000, "")

    (row,) = await turns_of(session_id)
    assert (row.user_text, row.assistant_text, row.heard_text) == ("", "", "")
    assert (row.output_audio_ms, row.first_audio_ms) == (1200, 300)


async def test_a_conversation_cut_off_before_its_first_row_has_its_rows_all_the_same(alice: Member) -> None:
    session_id, recorder = await recorder_of(alice)
    writing = asyncio.create_task(recorder.run())
    recorder.add(turn(1))
    await asyncio.sleep(0)
    writing.cancel()

    await recorder.finish(1006, "The caller left.")

    assert (await RealtimeSession.objects.aget(pk=session_id)).close_code == 1006
    assert len(await turns_of(session_id)) == 1


async def test_a_turn_whose_writing_is_cut_off_is_written_at_the_end(alice: Member) -> None:
    session_id, recorder = await recorder_of(alice)
    writing = asyncio.create_task(recorder.run())
    await written(RealtimeSession.objects.filter(pk=session_id))
    recorder.add(turn(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    writing.cancel()

    await recorder.finish(1000, "")

    assert [row.ordinal for row in await turns_of(session_id)] == [1]


async def test_waiting_turns_are_bounded_and_the_sums_stay_right(alice: Member) -> None:
    session_id, recorder = await recorder_of(alice)
    for ordinal in range(1, QUEUE + 11):
        recorder.add(turn(ordinal))

    await recorder.finish(1000, "")

    kept = [row.ordinal for row in await turns_of(session_id)]
    assert kept == list(range(11, QUEUE + 11))
    assert (await RealtimeSession.objects.aget(pk=session_id)).turn_count == QUEUE + 10


@pytest.mark.parametrize(
    "told",
    [
        [ev.SessionUpdated(session={})] * (QUEUE + 10),
        [ev.SessionUpdated(session={}), ev.ResponseCreated(response={})] * QUEUE,
    ],
    ids=["settings", "settings and answers"],
)
async def test_what_is_told_takes_no_turn_its_place(alice: Member, told: list[ev.ServerEvent]) -> None:
    session_id, recorder = await recorder_of(alice)
    for ordinal in range(1, QUEUE + 1):
        recorder.add(turn(ordinal))
    for event in told:
        recorder.note(event)

    await recorder.finish(1000, "")

    assert len(await turns_of(session_id)) == QUEUE
    billed = UsageRecord.objects.filter(request_id__startswith=session_id).values("request_id").distinct()
    assert await billed.acount() == QUEUE


async def test_a_long_reason_is_cut_to_fit(alice: Member) -> None:
    session_id, recorder = await recorder_of(alice)

    await recorder.finish(4503, "x" * 1000)

    assert len((await RealtimeSession.objects.aget(pk=session_id)).close_reason) == records.REASON_LENGTH


async def test_a_locked_database_does_not_hold_the_end_up(
    alice: Member, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(records, "FINISH_S", 0.3)
    session_id, recorder = await recorder_of(alice)
    recorder.add(turn(1))
    with locked_database():
        started = time.monotonic()

        await recorder.finish(1000, "")

        assert time.monotonic() - started < 10, "it would wait for 20 s"
    assert "was not recorded within" in caplog.text
    await written(RealtimeSession.objects.filter(pk=session_id, close_code=1000))
    assert [row.ordinal for row in await turns_of(session_id)] == [1]


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads that write rows wait a moment for a lock, as for a database that refuses at once."""
    close_db_thread()
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.1)
    yield
    close_db_thread()


@pytest.mark.usefixtures("_impatient")
async def test_rows_are_tried_again_while_the_database_is_away_and_keep_their_times(
    alice: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "FINISH_S", 0.0)
    monkeypatch.setattr(records, "RETRY_S", 0.05)
    session_id, recorder = await recorder_of(alice)
    recorder.add(turn(1))
    with locked_database():
        async with logged(records.__name__, "rows wait for the database"):
            writing = asyncio.create_task(recorder.run())
        recorder.add(turn(2))
        writing.cancel()
        await recorder.finish(1000, "")
        over_at = timezone.now()
        await asyncio.sleep(0.3)
    await written(RealtimeSession.objects.filter(pk=session_id, close_code=1000))
    row = await RealtimeSession.objects.aget(pk=session_id)
    first, second = await turns_of(session_id)
    assert row.started_at < first.started_at < second.started_at < row.ended_at < over_at
    assert await UsageRecord.objects.filter(request_id__startswith=session_id).acount() == 6


async def test_a_database_that_stays_away_is_bounded_in_what_waits_for_it(
    alice: Member, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(records, "FINISH_S", 0.0)
    monkeypatch.setattr(records, "RETRY_S", 0.05)
    monkeypatch.setattr(records, "MOST_UNFINISHED", 2)
    begun = [await recorder_of(alice) for _ in range(4)]
    with locked_database(), waits_at_most(0.1):
        for _, recorder in begun:
            await recorder.finish(1000, "")
        await asyncio.sleep(0)
    for session_id, _ in begun[2:]:
        await written(RealtimeSession.objects.filter(pk=session_id, close_code=1000))
    given_up = [session_id for session_id, _ in begun[:2]]
    assert not await RealtimeSession.objects.filter(pk__in=given_up, ended_at__isnull=False).aexists()
    assert caplog.text.count("its end was never recorded") == 2


async def test_a_row_that_the_database_refuses_costs_only_itself(
    alice: Member, caplog: pytest.LogCaptureFixture
) -> None:
    session_id, recorder = await recorder_of(alice)
    recorder.add(turn(1, status="nonsense"))
    recorder.add(turn(2))

    await recorder.finish(1000, "")

    assert [row.ordinal for row in await turns_of(session_id)] == [2]
    assert "a row could not be written" in caplog.text


async def test_a_relayed_conversation_has_a_row_that_no_process_holds(alice: Member) -> None:
    caller = await caller_from_bearer(alice.authorization)

    await record_relayed(Beginning(caller, "upstream", "relayed", "127.0.0.1", "program", session_id="sess_relayed"))

    row = await RealtimeSession.objects.aget(pk="sess_relayed")
    assert (row.model, row.transport, row.api_key_id, row.ended_at) == ("upstream", "relayed", alice.row.pk, None)
    assert row.served_by == ""


async def test_beginnings_and_ends_are_written_together_and_hold_up_no_request(alice: Member) -> None:
    written: list[str] = []
    counts: list[int] = []
    may_end = threading.Event()

    def rows_and_rows_committed() -> tuple[int, int]:
        with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
            (committed,) = other.execute("select count(*) from realtime_realtimesession").fetchone()
        return RealtimeSession.objects.count(), committed

    def end(name: str) -> None:
        transaction.on_commit(lambda: written.append("commit"))
        written.append(name)
        assert may_end.wait(60)

    first = asyncio.ensure_future(together().write(partial(end, "a")))
    async with asyncio.timeout(60):
        while not written:  # noqa: ASYNC110 - by a thread
            await asyncio.sleep(0.01)
        begun = asyncio.create_task((await recorder_of(alice))[1].run())
        *others, given_up = [asyncio.ensure_future(together().write(partial(end, name))) for name in "bcd"]
        others.append(asyncio.ensure_future(together().write(lambda: counts.extend(rows_and_rows_committed()))))
        await asyncio.sleep(0)
        given_up.cancel()
        assert await run_in_db_thread(Account.objects.count)
    may_end.set()
    await asyncio.gather(first, *others)
    begun.cancel()
    assert written == ["a", "commit", "b", "c", "commit", "commit"]
    assert counts == [1, 0], "the beginning was not written with the ends"


async def test_an_end_that_is_refused_costs_no_other(alice: Member) -> None:
    def refused() -> None:
        raise IntegrityError("no such row")

    async def written() -> None:
        await together().write(lambda: None)

    results = await asyncio.gather(together().write(refused), written(), return_exceptions=True)
    assert [type(result) for result in results] == [IntegrityError, type(None)]


async def test_an_end_that_fails_unexpectedly_is_told_and_the_next_is_written(alice: Member) -> None:
    def fail() -> None:
        raise ValueError("not expected")

    async with asyncio.timeout(10):
        results = await asyncio.gather(together().write(fail), together().write(fail), return_exceptions=True)
        await together().write(lambda: None)
    assert [type(result) for result in results] == [ValueError, ValueError]
