from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from pytest_django.fixtures import Settings

from voiceapp.engines.models.lanes import PATIENT_S, CoresInUse, Lane, LaneFull, lanes, need_by
from voiceapp.errors import EngineUnavailable
from voiceapp.load import AHEAD, load


@pytest.fixture
def lane() -> Iterator[Lane]:
    lane = Lane("test", threads=1, capacity=3)
    yield lane
    lane.close()


async def started(lane: Lane, gate: threading.Event) -> asyncio.Task[bool]:
    """A task whose work holds the lane's only thread until `gate` is set."""
    running = threading.Event()

    def hold() -> bool:
        running.set()
        return gate.wait(10)

    task = asyncio.create_task(lane.run(hold))
    await asyncio.to_thread(running.wait, 10)
    return task


async def test_it_passes_the_error_of_the_work_on(lane: Lane) -> None:
    with pytest.raises(ZeroDivisionError):
        await lane.run(divmod, 7, 0)
    assert lane.pending == 0


async def test_it_leaves_the_event_loop_free(lane: Lane) -> None:
    gate = threading.Event()
    task = await started(lane, gate)
    gate.set()
    assert await task


async def test_a_full_lane_refuses_at_once(lane: Lane) -> None:
    gate = threading.Event()
    tasks: list[asyncio.Task[Any]] = [await started(lane, gate)]
    tasks += [asyncio.create_task(lane.run(int)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(EngineUnavailable) as refusal:
        await lane.run(int)
    assert isinstance(refusal.value, LaneFull)
    assert (refusal.value.code, refusal.value.retryable) == ("Throttling.Concurrency", True)
    gate.set()
    assert await asyncio.gather(*tasks) == [True, 0, 0]
    assert await lane.run(int) == 0


async def test_cancelling_the_caller_drops_work_that_waits(lane: Lane) -> None:
    gate = threading.Event()
    done: list[str] = []
    holder = await started(lane, gate)
    waiting = asyncio.create_task(lane.run(done.append, "dropped"))
    await asyncio.sleep(0)
    assert lane.pending == 2
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert lane.pending == 1
    gate.set()
    await holder
    await lane.run(done.append, "served")
    assert done == ["served"]


async def needed_in(seconds: float, lane: Lane, function: Any, *args: object) -> Any:
    need_by(time.monotonic() + seconds)
    return await lane.run(function, *args)


async def test_what_is_needed_first_goes_first_and_of_equals_what_came_first(lane: Lane) -> None:
    gate = threading.Event()
    done: list[str] = []
    holder = await started(lane, gate)
    lane.capacity = 10
    waiting = [
        asyncio.create_task(needed_in(60, lane, done.append, "late")),
        asyncio.create_task(needed_in(30, lane, done.append, "later")),
        *[asyncio.create_task(lane.run(done.append, name)) for name in ("now", "then")],
        asyncio.create_task(needed_in(-5, lane, done.append, "overdue")),
    ]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(holder, *waiting)
    assert done == ["overdue", "now", "then", "later", "late"]


async def test_patient_work_leaves_a_thread_to_what_is_needed_at_once() -> None:
    lane = Lane("test", threads=2, capacity=10)
    gate, running = threading.Event(), threading.Semaphore(0)

    def hold() -> bool:
        running.release()
        return gate.wait(10)

    patient = [asyncio.create_task(needed_in(60 + PATIENT_S, lane, hold)) for _ in range(3)]
    await asyncio.to_thread(running.acquire, timeout=10)
    assert await lane.run(int) == 0
    assert not running.acquire(blocking=False), "a second patient one would hold the last thread"
    gate.set()
    assert await asyncio.gather(*patient) == [True] * 3
    assert lane.pending == 0
    lane.close()


@pytest.mark.parametrize(
    ("name", "spare_s", "is_load"), [("voice", 0, True), ("voice", 99, False), ("reply", 0, False)]
)
async def test_what_is_needed_at_once_and_waits_for_a_voice_thread_is_load(
    settings: Settings, name: str, spare_s: float, is_load: bool
) -> None:
    settings.TURN_BUDGET_MS, settings.VOICE_THREADS = 1e-6, 1
    load.cache_clear()
    need_by(time.monotonic() + spare_s)
    lane = Lane(name, threads=1, capacity=1)
    await lane.run(int)
    lane.close()
    assert load().most_sessions(1) == (1 if is_load else AHEAD)
    load.cache_clear()


async def test_what_still_waits_when_it_closes_is_dropped(lane: Lane) -> None:
    gate = threading.Event()
    holder = await started(lane, gate)
    waiting = asyncio.create_task(lane.run(int))
    await asyncio.sleep(0)
    lane.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    assert await holder


async def test_it_knows_whether_work_would_start_at_once(lane: Lane) -> None:
    gate = threading.Event()
    assert lane.has_idle_thread
    task = await started(lane, gate)
    assert not lane.has_idle_thread
    gate.set()
    await task
    assert lane.has_idle_thread


async def test_batch_work_yields_to_conversations() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    voice, batch = await asyncio.gather(lanes().voice.run(priority), lanes().batch.run(priority))
    assert batch >= min(voice + 10, 19)
    assert voice > os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), "the event loop goes first"


def test_batch_work_yields_to_conversations_of_a_server_that_was_started_with_nice() -> None:
    code = """
import asyncio, os, threading
from voiceapp.engines.models.lanes import Lane
os.nice(5)
if os.getuid() == 0:
    os.setuid(65534)  # root may do what others may not
lane = Lane("batch", threads=1, capacity=1, niceness=10)
print(asyncio.run(lane.run(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))))
lane.close()
"""
    here = os.getpriority(os.PRIO_PROCESS, 0)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == f"{min(19, here + 15)}\n", done.stderr


def test_cores_in_use_are_the_mean_of_the_latest_half_second() -> None:
    cores = CoresInUse(10.0, 100.0)
    assert cores.look(10.4, 100.8) == 0, "too soon to tell"
    assert cores.look(10.5, 101.0) == pytest.approx(2)
    assert cores.look(10.9, 101.0) == pytest.approx(2)
    assert cores.look(11.5, 101.5) == pytest.approx(0.5)
