"""What a task may cost others, and what may befall it, while it is worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.db import OperationalError

from tests.conftest import Member, join
from tests.tasks.conftest import PATIENCE_S, PlainKind, Program, accept, only_kind
from tests.web import everywhere, listening
from voiceapp.accounts.models import Account, Workspace
from voiceapp.database.thread import DatabaseUnavailable
from voiceapp.leases.loop import Loop
from voiceapp.tasks.kinds import PartResult
from voiceapp.tasks.work.context import TaskContext

EMBEDDING = "embeddings/text-embedding/text-embedding"
SPEECH = {"model": "tts-1", "input": {"text": "Good morning."}}


@pytest.fixture
def narrow(settings: Any) -> None:
    """One place, beside the one that is kept free."""
    settings.TASK_CAPACITY = 1
    settings.FETCH_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def dora(db: None) -> Program:
    account = Account.objects.create(name="Dora's")
    return Program(join("dora", Workspace.objects.create(account=account, name="Default")))


async def test_a_task_that_only_fetches_holds_up_no_other_account(
    program: Program, stranger: Program, dora: Program, narrow: None, worker: Loop
) -> None:
    asked, may_answer = asyncio.Semaphore(0), asyncio.Event()

    async def slow_file(request: web.Request) -> web.Response:
        asked.release()
        await may_answer.wait()
        return web.Response(body=b"one\n")

    async with listening(everywhere(slow_file)) as origin:
        body = {"model": "text-embedding-v4", "input": {"url": f"{origin}/file"}}
        fetching = []
        for one in (program, stranger):
            fetching.append((one, await one.create(EMBEDDING, body)))
            async with asyncio.timeout(PATIENCE_S):
                await asked.acquire()
        again = await program.create("audio/tts/synthesis", SPEECH)
        spoken = await dora.follow(await dora.create("audio/tts/synthesis", SPEECH))
        assert spoken["output"]["task_status"] == "SUCCEEDED"
        # An account has no more at once than before: the room is for others.
        assert (await program.look(again))["output"]["task_status"] == "PENDING"
        may_answer.set()
        for one, task in fetching:
            assert (await one.follow(task))["output"]["task_status"] == "SUCCEEDED"
    assert (await program.follow(again))["output"]["task_status"] == "SUCCEEDED"


class Unlucky(PlainKind):
    """A `Kind` whose database goes away once, in the middle of its work."""

    path = "test/unlucky/unlucky"
    max_attempts = 20
    failures: ClassVar[list[Exception]] = []

    async def run(self, part: TaskContext) -> PartResult:
        if self.failures:
            raise self.failures.pop()
        return PartResult({"is_done": True})


@pytest.fixture
def unlucky(settings: Any) -> Iterator[None]:
    settings.TASK_LEASE_S = 1.0
    with only_kind(settings, Unlucky):
        yield


@pytest.mark.parametrize("failure", [OperationalError("gone"), DatabaseUnavailable()])
async def test_a_database_that_goes_away_is_no_fault_of_the_task(
    alice: Member, program: Program, unlucky: None, worker: Loop, failure: Exception
) -> None:
    Unlucky.failures.append(failure)
    task = await sync_to_async(accept)(alice, Unlucky)
    over = await program.follow(task.task_id)
    assert over["output"]["task_status"] == "SUCCEEDED"
    await task.arefresh_from_db()
    assert task.attempts > 1
