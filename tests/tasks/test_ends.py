"""Waiting for the end of a task, for somebody who asked to be told."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.tasks.conftest import write
from voiceapp.database.thread import run_in_db_thread
from voiceapp.tasks.ends import CANNOT_TELL, ENDS, NONE_UNDER_WAY, next_end
from voiceapp.tasks.models import Task
from voiceapp.tasks.states import Status
from voiceapp.tasks.streams import task_watcher


def end(task: Task, status: Status) -> None:
    Task.objects.filter(pk=task.pk).update(status=status, ended_at=timezone.now())


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELED])
async def test_the_end_of_a_task_is_told_as_it_was(alice: Member, status: Status) -> None:
    task = await run_in_db_thread(write, alice)
    waiting = asyncio.create_task(next_end(alice.account.pk, alice.row.pk))
    await asyncio.sleep(0)  # it asks the database first; what is asked next comes after that
    await run_in_db_thread(end, task, status)
    async with asyncio.timeout(20):
        assert await waiting == ENDS[status]


async def test_without_a_task_under_way_it_says_so_at_once(alice: Member, charlie: Member) -> None:
    await run_in_db_thread(partial(write, alice, status=Status.SUCCEEDED))
    await run_in_db_thread(write, charlie)
    assert await next_end(alice.account.pk, alice.row.pk) == NONE_UNDER_WAY


async def test_a_caller_who_leaves_is_followed_no_more(alice: Member, settings: Settings) -> None:
    settings.MAX_TASK_STREAMS_PER_ACCOUNT = 1
    await run_in_db_thread(write, alice)
    waiting = asyncio.create_task(next_end(alice.account.pk, alice.row.pk))
    await asyncio.sleep(0)
    await run_in_db_thread(alice.account.refresh_from_db)
    await asyncio.sleep(0)
    assert await next_end(alice.account.pk, alice.row.pk) == CANNOT_TELL
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert task_watcher().has_room(alice.account.pk)
