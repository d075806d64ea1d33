"""The thread for transactions from async code."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connection

from tests.conftest import Member
from voiceapp.accounts.models import Account
from voiceapp.database.thread import DatabaseUnavailable, close_db_thread, run_in_db_thread


async def test_it_keeps_one_thread_and_one_connection(alice: Member) -> None:
    def where() -> tuple[int, int]:
        connection.ensure_connection()
        return threading.get_ident(), id(connection.connection)

    first = await run_in_db_thread(where)
    assert first == await run_in_db_thread(where)
    assert first[0] != threading.get_ident()


async def test_it_opens_another_connection_when_the_old_one_is_closed(alice: Member) -> None:
    assert await run_in_db_thread(Account.objects.count) == 1
    close_db_thread()
    assert await run_in_db_thread(Account.objects.count) == 1


async def test_it_says_that_the_database_does_not_answer_and_goes_on_when_it_does(alice: Member) -> None:
    def cut() -> None:
        # As a database does that is stopped: the connection is gone under whoever uses it next.
        connection.ensure_connection()
        connection.errors_occurred = True
        raise OperationalError("server closed the connection unexpectedly")

    with pytest.raises(DatabaseUnavailable) as refused:
        await run_in_db_thread(cut)
    assert (refused.value.http_status, refused.value.code) == (503, "ServiceUnavailable")
    assert "server closed" not in refused.value.message
    assert await run_in_db_thread(Account.objects.count) == 1


async def test_it_hands_on_every_other_error(db: None) -> None:
    with pytest.raises(ZeroDivisionError):
        await run_in_db_thread(lambda: 1 // 0)
