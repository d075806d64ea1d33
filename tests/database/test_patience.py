"""How long a request waits for the database, wherever it waits."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from django.db import OperationalError, connection, transaction

from tests.clock import Clock
from tests.conftest import Member
from voiceapp.accounts.models import Account
from voiceapp.database.patience import Patience, current, waiting, waits_at_most
from voiceapp.database.thread import DatabaseUnavailable, run_in_db_thread


@pytest.fixture
def clock() -> Clock[float]:
    return Clock(100.0)


def test_only_what_is_waited_is_taken_from_it(clock: Clock[float]) -> None:
    patience = Patience(4.0, clock=clock)
    clock.now += 60  # a model is asked
    assert patience.left_s == 4.0
    with patience.waiting():
        clock.now += 1.5
        assert patience.left_s == 2.5
    clock.now += 60
    assert patience.left_s == 2.5
    with patience.waiting():
        clock.now += 9
        assert patience.left_s == 0.0
    assert patience.left_s == 0.0


def test_waits_at_the_same_time_count_once(clock: Clock[float]) -> None:
    patience = Patience(4.0, clock=clock)
    with patience.waiting():
        clock.now += 1
        with patience.waiting():  # the thread, for its caller
            clock.now += 1
        clock.now += 1
    assert patience.left_s == 1.0


def test_a_shorter_patience_takes_from_the_longer_one_around_it(clock: Clock[float]) -> None:
    outer = Patience(4.0, clock=clock)
    inner = Patience(0.5, outer=outer, clock=clock)
    assert inner.left_s == 0.5
    with inner.waiting():
        clock.now += 0.5
    assert (inner.left_s, outer.left_s) == (0.0, 3.5)
    longer = Patience(60.0, outer=outer, clock=clock)
    assert longer.left_s == 3.5
    inner.end()
    assert inner.left_s == 3.5


def test_it_holds_until_the_response_begins() -> None:
    with waits_at_most(4.0) as patience:
        with waiting() as left_s:
            assert left_s is not None
            assert left_s <= 4.0
        patience.lift()
        with waiting() as left_s:
            assert left_s is None


async def test_what_a_request_leaves_behind_is_patient() -> None:
    over = asyncio.Event()

    async def write_later() -> float | None:
        await over.wait()
        with waiting() as left_s:
            return left_s

    with waits_at_most(0.0):
        left_behind = asyncio.create_task(write_later())
        await asyncio.sleep(0)
    over.set()
    assert await left_behind is None
    assert current() is None


async def test_a_deadline_counts_all_that_the_block_does_until_it_is_lifted() -> None:
    with waits_at_most(0.01) as patience, pytest.raises(OperationalError):
        async with patience.deadline():
            await asyncio.Event().wait()
    with waits_at_most(0.01) as patience:
        async with patience.deadline():
            patience.lift()
            await asyncio.sleep(0.05)


async def test_a_deadline_leaves_time_outs_of_the_block_alone() -> None:
    with waits_at_most(60.0) as patience, pytest.raises(TimeoutError):
        async with patience.deadline():
            raise TimeoutError


async def test_it_follows_a_query_into_its_thread(db: None) -> None:
    with waits_at_most(60.0) as patience:
        await Account.objects.acount()
        assert patience.left_s is not None
        assert patience.left_s < 60.0


async def test_an_entry_whose_turn_does_not_come_is_refused_and_not_made_later(alice: Member) -> None:
    held = threading.Event()
    made: list[str] = []
    holding = asyncio.create_task(run_in_db_thread(held.wait))
    await asyncio.sleep(0)  # it is given to the thread
    try:
        with waits_at_most(0.01), pytest.raises(DatabaseUnavailable):
            await run_in_db_thread(made.append, "too late")
    finally:
        held.set()
    assert await holding is True
    assert await run_in_db_thread(Account.objects.count) == 1
    assert not made


async def test_an_entry_that_has_begun_may_come_to_its_end(alice: Member) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def entry() -> str:
        begun.set()
        may_end.wait()
        return "done"

    with waits_at_most(0.3):
        entering = asyncio.create_task(run_in_db_thread(entry))
        await asyncio.to_thread(begun.wait)
        await asyncio.sleep(0.31)
        may_end.set()
        assert await entering == "done"


async def test_a_locked_database_is_waited_for_as_long_as_is_allowed(alice: Member) -> None:
    with locked():
        with waits_at_most(0.2), pytest.raises(DatabaseUnavailable):
            await run_in_db_thread(Account.objects.update, is_active=True)
        if connection.vendor == "sqlite":
            assert await run_in_db_thread(_busy_timeout_ms) == 20_000, "work in the background is patient again"
    assert await run_in_db_thread(Account.objects.update, is_active=True) == 1


async def test_a_request_without_patience_left_is_refused_where_it_would_have_to_wait(alice: Member) -> None:
    with locked(), waits_at_most(0.0), pytest.raises(OperationalError):
        await Account.objects.aupdate(is_active=True)


@contextmanager
def locked() -> Iterator[None]:
    """Somebody else writes to the table of accounts."""
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
        return
    begun, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            list(Account.objects.select_for_update())
            begun.set()
            may_end.wait()
        connection.close()

    with ThreadPoolExecutor(1) as other_thread:
        holding = other_thread.submit(hold)
        begun.wait()
        try:
            yield
        finally:
            may_end.set()
            holding.result()


def _busy_timeout_ms() -> int:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        return int(cursor.fetchone()[0])
