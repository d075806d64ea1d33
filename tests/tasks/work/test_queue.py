"""What a task may cost others, and what may befall it, while it is worked on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.db import OperationalError

from tests.conftest import Member, join
from tests.tasks.conftest import PATIENCE_S, Program, only_kind
from voiceapp.accounts.auth import caller_of_key
from voiceapp.accounts.models import Account, Workspace
from voiceapp.database.thread import DatabaseUnavailable
from voiceapp.leases.loop import Loop
from voiceapp.tasks import store
from voiceapp.tasks.kinds import PartResult, Payload, kind_at
from voiceapp.tasks.models import Task
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
    """A third account's program."""
    account = Account.objects.create(name="Dora's")
    return Program(join("dora", Workspace.objects.create(account=account, name="Default")))


@asynccontextmanager
async def slow_files(asked: asyncio.Semaphore, may_answer: asyncio.Event) -> AsyncIterator[str]:
    """The address of a file on loopback that comes when it is let."""

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.release()
        await may_answer.wait()
        return web.Response(body=b"one\n")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/file"
    finally:
        await runner.cleanup()


async def test_a_task_that_only_fetches_holds_up_no_other_account(
    program: Program, stranger: Program, dora: Program, narrow: None, worker: Loop
) -> None:
    asked, may_answer = asyncio.Semaphore(0), asyncio.Event()
    async with slow_files(asked, may_answer) as url:
        body = {"model": "text-embedding-v4", "input": {"url": url}}
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


class Unlucky:
    """A `Kind` whose database goes away once, in the middle of its work."""

    path = "test/unlucky/unlucky"
    time_limit_s = 60.0
    max_attempts = 20
    parallel = 1
    has_results = False
    failures: ClassVar[list[Exception]] = []

    async def run(self, part: TaskContext) -> PartResult:
        if self.failures:
            raise self.failures.pop()
        return PartResult({"is_done": True})

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])


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

    def accept() -> Task:
        return store.accept(caller_of_key(alice.row.pk), kind_at(Unlucky.path), Payload("none"), request_id="test")

    task = await sync_to_async(accept)()
    over = await program.follow(task.task_id)
    assert over["output"]["task_status"] == "SUCCEEDED"
    await task.arefresh_from_db()
    assert task.attempts > 1
