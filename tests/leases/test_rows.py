"""Whose a row is: any order of claims, crashes, renewals and ends, under a clock that a test turns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.clock import Clock
from tests.conftest import Member
from voiceapp.leases.loop import Loop
from voiceapp.leases.rows import Claims, Lease
from voiceapp.tasks.models import Subtask, Task
from voiceapp.tasks.states import FINAL, Status
from voiceapp.tasks.store import NotPending, cancel
from voiceapp.tasks.work.jobs import FAULT, WORKER_LOST
from voiceapp.tasks.work.queue import TaskQueue
from voiceapp.tasks.work.turns import Turns

LEASE_S = 30.0
ROUNDS = 300
START = datetime(2026, 1, 1, tzinfo=timezone.get_fixed_timezone(0))


def write(member: Member, **fields: object) -> Task:
    return Task.objects.create(
        **{
            "account": member.account,
            "workspace": member.workspace,
            "key": member.row,
            "kind": "audio/tts/synthesis",
            "model_name": "tts-1",
            "request_id": "r",
            "due_at": START,
            **fields,
        }
    )


STEPS = st.one_of(
    st.tuples(st.just("claim"), st.sampled_from("AB")),
    st.tuples(st.just("renew"), st.sampled_from("AB")),
    st.tuples(st.just("finish"), st.sampled_from("AB")),
    st.tuples(st.just("release"), st.sampled_from("AB")),
    st.tuples(st.just("crash"), st.sampled_from("AB")),
    st.tuples(st.just("cancel"), st.just("")),
    st.tuples(st.just("wait"), st.sampled_from(["1", "29", "31"])),
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, max_size=25))
def test_a_row_has_one_holder_and_one_end(steps: list[tuple[str, str]], alice: Member) -> None:
    Task.objects.all().delete()
    task = write(alice)
    clock = Clock(START)
    claims = Claims(Task, lease_s=LEASE_S, now=clock)
    held: dict[str, Lease] = {}
    holder: str | None = None
    """The model's opinion of whose lease stands; it may have run out without anybody noticing."""
    until = START
    status = Status.PENDING
    for step, who in steps:
        if step == "wait":
            clock.now += timedelta(seconds=int(who))
        elif step == "crash":
            held.pop(who, None)
        elif step == "cancel":
            if status == Status.PENDING:
                cancel(alice.account.pk, task.task_id)
                status, holder = Status.CANCELED, None
            else:
                with pytest.raises(NotPending):
                    cancel(alice.account.pk, task.task_id)
        elif step == "claim":
            may = status == Status.PENDING or (status == Status.RUNNING and until <= clock.now)
            taken = claims.claim(who)
            assert len(taken) == may
            if may:
                held[who], holder, status = taken[0], who, Status.RUNNING
                until = clock.now + timedelta(seconds=LEASE_S)
        elif who in held:
            mine = holder == who and status == Status.RUNNING and held[who].version == _version(task)
            if step == "renew":
                assert claims.renew(held[who]) == mine
                until = clock.now + timedelta(seconds=LEASE_S) if mine else until
            elif step == "finish":
                assert claims.finish(held[who], "succeed", ended_at=clock.now) == mine
                status = Status.SUCCEEDED if mine else status
            else:
                assert claims.release(held[who]) == mine
                if mine:
                    status, holder = Status.PENDING, None
        task.refresh_from_db()
        assert task.status == status
        assert (task.ended_at is not None) == (status in FINAL)


def _version(task: Task) -> int:
    return Task.objects.values_list("version", flat=True).get(pk=task.pk)


@pytest.mark.django_db(transaction=True)
def test_a_task_is_canceled_or_claimed_and_never_both(alice: Member) -> None:
    tasks = [write(alice) for _ in range(ROUNDS)]
    outcomes: dict[int, list[str]] = {task.pk: [] for task in tasks}
    all_at_once = threading.Barrier(3, timeout=60)

    def fight(name: str) -> None:
        """Claim, or cancel, the same task as the others at the same moment, round by round."""
        claims = Claims(Task)
        for task in tasks:
            all_at_once.wait()
            try:
                if name == "canceled":
                    cancel(alice.account.pk, task.task_id)
                elif not claims.claim(name, rows=Task.objects.filter(pk=task.pk)):
                    continue
            except NotPending:
                continue
            outcomes[task.pk].append(name)
        connection.close()

    with ThreadPoolExecutor(3) as threads:
        for fighting in [threads.submit(fight, name) for name in ("a", "b", "canceled")]:
            fighting.result()
    assert {len(names) for names in outcomes.values()} == {1}
    assert {names != ["canceled"] for names in outcomes.values()} == {True, False}


def test_a_worker_that_was_away_changes_nothing_while_another_works(alice: Member) -> None:
    task, clock = write(alice), Clock(START)
    claims = Claims(Task, lease_s=LEASE_S, now=clock)
    (away,) = claims.claim("A")
    clock.now += timedelta(seconds=LEASE_S + 1)
    (holds,) = claims.claim("B")
    assert not claims.renew(away)
    assert not claims.finish(away, "fail", ended_at=clock.now)
    assert not claims.release(away)
    assert claims.finish(holds, "succeed", ended_at=clock.now)
    task.refresh_from_db()
    assert (task.status, task.leased_by) == (Status.SUCCEEDED, "B")


def test_taking_many_rows_is_one_statement_that_takes_the_first_ones(
    alice: Member, django_assert_num_queries: Callable[[int], Any]
) -> None:
    tasks = [write(alice, due_at=START + timedelta(seconds=number), priority=number) for number in range(6)]
    claims = Claims(Task)
    with django_assert_num_queries(1):
        taken = claims.claim("w", limit=3, rows=Task.objects.order_by("-priority"), progress=0.5)
    assert {lease.row_id for lease in taken} == {task.pk for task in tasks[3:]}
    for lease in taken:
        row = Task.objects.get(pk=lease.row_id)
        assert (
            (row.status, row.version, row.attempts)
            == (Status.RUNNING, lease.version, lease.attempts)
            == ("RUNNING", 1, 1)
        )
        assert (row.leased_by, row.progress) == ("w", 0.5)
    assert claims.claim("w", rows=Task.objects.none()) == []
    assert {lease.row_id for lease in claims.claim("w", limit=9)} == {task.pk for task in tasks[:3]}


def test_finding_work_reads_an_index_and_not_the_table(alice: Member) -> None:
    write(alice)
    if connection.vendor == "postgresql":  # a small table is read whole, unless that is forbidden
        connection.cursor().execute("SET LOCAL enable_seqscan = off")
    plans = [
        Claims(Task).due().order_by("due_at").explain(),
        Task.objects.filter(status=Status.PENDING, account=alice.account).order_by("-priority", "due_at").explain(),
        Task.objects.filter(account=alice.account).order_by("-submitted_at", "-id").explain(),
        Task.objects.filter(task_id="x", account=alice.account).explain(),
    ]
    assert all("USING INDEX" in plan or "Index" in plan for plan in plans), plans


def test_accounts_take_turns(alice: Member, charlie: Member) -> None:
    for _ in range(5):
        write(alice)
    theirs = write(charlie)
    urgent = write(alice, priority=5)
    line = TaskQueue()
    first = [lease.row_id for lease in line.claim("w", 2)]
    assert set(first) == {theirs.pk, urgent.pk}


def test_an_account_that_is_alone_has_all_the_room_but_one_place(alice: Member, charlie: Member) -> None:
    tasks = [write(alice, due_at=START + timedelta(seconds=number)) for number in range(6)]
    line = TaskQueue()
    assert {lease.row_id for lease in line.claim("w", 4)} == {task.pk for task in tasks[:3]}
    assert line.claim("w", 1) == []
    theirs = write(charlie)
    assert [lease.row_id for lease in line.claim("w", 1)] == [theirs.pk]
    assert {lease.row_id for lease in line.claim("w", 5)} == {task.pk for task in tasks[3:]}


def test_who_has_the_least_under_way_comes_first(alice: Member, charlie: Member) -> None:
    for _ in range(3):
        write(alice)
    first = TaskQueue()
    assert len(first.claim("w", 4)) == 3
    theirs = [write(charlie) for _ in range(4)]
    for _ in range(4):
        write(alice)
    elsewhere = TaskQueue()
    assert {lease.row_id for lease in elsewhere.claim("v", 4)} < {task.pk for task in theirs}


def test_nobody_is_last_forever_to_processes_that_are_new(alice: Member, charlie: Member) -> None:
    write(alice)
    theirs = write(charlie)
    first = {account for _ in range(100) for account in Turns().shares(1, 0)}
    assert first == {alice.account.pk, theirs.account_id}


async def test_what_workers_die_on_fails(alice: Member) -> None:
    task = await dead_on(alice)
    assert task.status == Status.FAILED
    assert task.code == "InternalError.WorkerLost"


async def test_parts_that_were_done_outlive_workers_that_die_on_others(alice: Member) -> None:
    done = {"file_url": "a", "subtask_status": "SUCCEEDED"}
    task = await dead_on(
        alice,
        Subtask(index=0, status=Status.SUCCEEDED, result=done, usage={"duration": 7}),
        Subtask(index=1),
        kind="audio/asr/transcription",
        order={"file_urls": ["a", "b"]},
    )
    assert task.status == Status.SUCCEEDED
    assert task.usage == {"duration": 7}
    lost = {"file_url": "b", "subtask_status": "FAILED", "code": WORKER_LOST[0], "message": WORKER_LOST[1]}
    assert task.output == {"results": [done, lost]}


async def test_a_task_whose_order_makes_no_sense_ends_all_the_same(alice: Member) -> None:
    done = Subtask(index=0, status=Status.SUCCEEDED, result={"file_url": "a"})
    task = await dead_on(alice, done, kind="audio/asr/transcription", order={})
    assert (task.status, task.code) == (Status.FAILED, FAULT[0])


async def dead_on(member: Member, *parts: Subtask, **fields: object) -> Task:
    """A task that every worker died on, after one more came by."""
    task: Task = await sync_to_async(write)(member, status=Status.RUNNING, attempts=3, **fields)
    for part in parts or [Subtask(index=0)]:
        part.task = task
        await part.asave()
    line = TaskQueue()
    (lease,) = await sync_to_async(line.claim)("w", 2)
    await line.work(lease, lambda function, *arguments: sync_to_async(function)(*arguments))
    await task.arefresh_from_db()
    return task


class Gated(TaskQueue):
    """Takes what is due, and comes back with it only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.has_claimed = threading.Event()
        self.may_return = threading.Event()
        self.fails = False

    def claim(self, worker: str, limit: int) -> Sequence[Lease]:
        leases = super().claim(worker, limit)
        self.has_claimed.set()
        self.may_return.wait()
        if self.fails:
            raise OperationalError("The database went away.")
        return leases


async def test_what_a_stop_catches_in_the_middle_of_a_claim_is_given_back(alice: Member) -> None:
    task = await sync_to_async(write)(alice)
    line = Gated()
    loop = Loop([line])
    running = asyncio.create_task(loop.run())
    await asyncio.to_thread(line.has_claimed.wait)
    loop.stop()
    await asyncio.sleep(0)  # the stop is told by the loop itself
    line.may_return.set()
    await running
    await task.arefresh_from_db()
    assert (task.status, task.attempts) == (Status.PENDING, 0)


class Lasting(TaskQueue):
    """Works until it is let go, and says what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.renew_every_s = 3600.0
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self._event_loop = asyncio.get_running_loop()

    def claim(self, worker: str, limit: int) -> Sequence[Lease]:
        self._say("claim")
        return super().claim(worker, limit)

    def renew(self, lease: Lease) -> bool:
        self._say("renew")
        return super().renew(lease)

    async def work(self, lease: Lease, database: Any) -> None:
        self.begun.set()
        await self.may_end.wait()

    def _say(self, what: str) -> None:
        self._event_loop.call_soon_threadsafe(self.asked.put_nowait, what)


async def test_who_wakes_up_late_keeps_what_it_has_before_it_takes_more(alice: Member) -> None:
    await sync_to_async(write)(alice)
    line, clock = Lasting(), [0.0]
    loop = Loop([line], poll_s=3600, clock=lambda: clock[0])
    running = asyncio.create_task(loop.run())
    assert await line.asked.get() == "claim"
    await line.begun.wait()
    clock[0] = 10_000.0
    loop.wake(line.name)
    assert await line.asked.get() == "renew"
    assert await line.asked.get() == "claim"
    line.may_end.set()
    loop.stop()
    await running


async def test_a_stop_that_comes_before_the_start_is_not_lost(db: None) -> None:
    loop = Loop([TaskQueue()])
    loop.stop()
    async with asyncio.timeout(60):
        await loop.run()


async def test_a_stop_ends_a_claim_that_fails(alice: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voiceapp.leases.loop.RETRY_S", 3600.0)  # which a failed claim waits for the next
    line = Gated()
    line.fails = True
    loop = Loop([line])
    running = asyncio.create_task(loop.run())
    await asyncio.to_thread(line.has_claimed.wait)
    loop.stop()
    await asyncio.sleep(0)
    line.may_return.set()
    async with asyncio.timeout(60):
        await running
