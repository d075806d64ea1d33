"""`python -m tests.bench.tasks`: how fast tasks are taken, worked off and found again, and recordings written down.

On SQLite and on a PostgreSQL of its own.
"""

from __future__ import annotations

import asyncio
import functools
import http.server
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import wave
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

ONE_BY_ONE = 100
AT_ONCE = 1000
ACCOUNTS = 20
SIZES = (1_000, 100_000)
POLLS_PER_S = 2
"""Of each account."""
POLLING_S = 10.0
RECORDING_S = 120.0
AIM_START_MS = 150
ROOT = Path(__file__).resolve().parents[2]


class Nothing:
    """A kind of task that is done at once, so that what is timed is the machinery."""

    path = "bench/nothing/nothing"
    title = description = "Nothing"
    time_limit_s = 10.0
    max_attempts = 3
    parallel = 1
    has_results = False

    async def run(self, part: Any) -> Any:
        from voiceapp.tasks.kinds import PartResult

        return PartResult({"url": "none"})

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])


def measure(database: str) -> None:
    """Measure one database; in a process of its own, for its settings."""
    with tempfile.TemporaryDirectory(prefix="voiceapp-tasks-") as name:
        folder = Path(name)
        os.environ |= {
            "DATABASE_URL": database or f"sqlite:///{folder}/tasks.sqlite3",
            "DEBUG": "1",
            "VAR_DIR": name,
            "MODELS_DIR": os.environ.get("MODELS_DIR", str(ROOT / "var" / "models")),
            "DJANGO_SETTINGS_MODULE": "voiceapp.settings",
            "FETCH_ALLOWED_NETWORKS": "127.0.0.0/8",
            "TASK_MAX_WAITING": "1000000",
        }
        import django
        from django.conf import settings
        from django.core.management import call_command
        from django.db import connection

        django.setup()
        settings.DEBUG = False  # which would keep every query in memory
        settings.TASK_KINDS = ["tests.bench.tasks.Nothing", "voiceapp.speech.transcription_tasks.FileTranscription"]
        call_command("migrate", verbosity=0)
        print(f"On {connection.vendor}\n")
        callers = _callers()
        _work(callers)
        _poll(callers, folder)
        if not database:
            _transcribe(callers[0][0], folder)


def _callers() -> list[tuple[Any, str]]:
    """Who asks, each of an account of their own, with the text of their key."""
    from voiceapp.accounts.auth import Caller
    from voiceapp.accounts.keys import new_key
    from voiceapp.accounts.models import Account

    callers = []
    for number in range(ACCOUNTS):
        workspace = Account.objects.create(name=f"bench {number}").workspaces.create(name="Default")
        row, key = new_key(workspace, "bench")
        row.save()
        callers.append((Caller(workspace.account_id, workspace.pk, row.pk, None, False, "bench"), key))
    return callers


def _work(callers: Sequence[tuple[Any, str]]) -> None:
    from voiceapp.leases.loop import Loop
    from voiceapp.server.work import EmbeddedWork
    from voiceapp.tasks import store
    from voiceapp.tasks.kinds import Payload, kind_at
    from voiceapp.tasks.models import Task
    from voiceapp.tasks.signals import task_finished
    from voiceapp.tasks.states import FINAL
    from voiceapp.tasks.work.queue import TaskQueue

    kind = kind_at(Nothing.path)
    finished = threading.Semaphore(0)

    def count(**_: object) -> None:
        finished.release()

    def accept(number: int) -> None:
        store.accept(callers[number % ACCOUNTS][0], kind, Payload("none"), request_id="bench")

    task_finished.connect(count)
    work = EmbeddedWork(Loop([TaskQueue()]))
    work.start()
    for number in range(ONE_BY_ONE):
        accept(number)
        assert finished.acquire(timeout=30)
    waits = [
        (task.scheduled_at - task.submitted_at) / timedelta(milliseconds=1)
        for task in Task.objects.filter(status__in=FINAL, scheduled_at__isnull=False)
    ]
    work.stop()
    _print("from created to begun", waits)
    print(f"    the aim is p95 <= {AIM_START_MS} ms\n")

    began = time.perf_counter()
    for number in range(AT_ONCE):
        accept(number)
    print(f"{AT_ONCE / (time.perf_counter() - began):8.0f} tasks/s created")
    work = EmbeddedWork(Loop([TaskQueue()]))
    began, processor = time.perf_counter(), time.process_time()
    work.start()
    for _ in range(AT_ONCE):
        assert finished.acquire(timeout=60)
    took, used = time.perf_counter() - began, time.process_time() - processor
    work.stop()
    print(f"{AT_ONCE / took:8.0f} tasks/s begun and finished; {AT_ONCE / used:.0f} in a second of processor time\n")


def _poll(callers: Sequence[tuple[Any, str]], folder: Path) -> None:
    """Look at tasks over HTTP, all accounts at once, while the table grows."""
    from django.utils import timezone

    from tests.realtime.product import Home, Product
    from voiceapp.tasks.models import Task
    from voiceapp.tasks.states import Status

    folder = folder / "served"
    variables = {"DATABASE_URL": os.environ["DATABASE_URL"], "TASK_ENGINE": "worker", "RATE_LIMITS": "tasks.query=off"}
    (folder / "home").mkdir(parents=True)
    server = Product(Home(folder / "home", {}, variables), folder)
    try:
        for size in SIZES:
            missing = size - Task.objects.count()
            Task.objects.bulk_create(
                (
                    Task(
                        account_id=caller.account_id,
                        workspace_id=caller.workspace_id,
                        kind=Nothing.path,
                        model_name="none",
                        request_id="bench",
                        status=Status.SUCCEEDED,
                        ended_at=timezone.now(),
                    )
                    for caller, _ in (callers[number % ACCOUNTS] for number in range(missing))
                ),
                batch_size=2000,
            )
            asked = [
                (
                    key,
                    random.sample(
                        list(Task.objects.filter(account_id=caller.account_id).values_list("task_id", flat=True)), 40
                    ),
                )
                for caller, key in callers
            ]
            took_ms = asyncio.run(_polling(server.origin, asked))
            _print(f"query over HTTP among {size:,} tasks, {ACCOUNTS} accounts {POLLS_PER_S} a second each", took_ms)
    finally:
        server.stop()
    print()


async def _polling(origin: str, asked: Sequence[tuple[str, Sequence[str]]]) -> list[float]:
    import aiohttp

    took_ms: list[float] = []
    loop = asyncio.get_running_loop()

    async def poll(session: aiohttp.ClientSession, key: str, ids: Sequence[str]) -> None:
        await asyncio.sleep(random.random() / POLLS_PER_S)
        until = loop.time() + POLLING_S
        due = loop.time()
        while due < until:
            began = time.perf_counter()
            headers = {"Authorization": f"Bearer {key}"}
            async with session.get(f"{origin}/api/v1/tasks/{random.choice(ids)}", headers=headers) as answer:
                assert answer.status == 200, await answer.text()
                await answer.read()
            took_ms.append((time.perf_counter() - began) * 1000)
            due += 1 / POLLS_PER_S
            await asyncio.sleep(max(0.0, due - loop.time()))

    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        for key, ids in asked:
            group.create_task(poll(session, key, ids))
    return took_ms


def _transcribe(caller: Any, folder: Path) -> None:
    """Write a long recording down, as a task."""
    from tests.bench import clips
    from voiceapp.leases.loop import Loop
    from voiceapp.server.work import EmbeddedWork
    from voiceapp.tasks import store
    from voiceapp.tasks.kinds import Payload, kind_at
    from voiceapp.tasks.signals import task_finished
    from voiceapp.tasks.work.queue import TaskQueue

    origin, found = clips.load()
    seconds = 0.0
    with wave.open(str(folder / "talk.wav"), "wb") as talk:
        talk.setnchannels(1)
        talk.setsampwidth(2)
        talk.setframerate(clips.RATE_HZ)
        while seconds < RECORDING_S:
            for clip in found:
                talk.writeframes(clip.pcm.tobytes() + bytes(clips.RATE_HZ))
                seconds += clip.seconds + 0.5
    over = threading.Event()
    ends = []

    def end(task: Any, **_: object) -> None:
        ends.append(task)
        over.set()

    task_finished.connect(end)
    answering = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        work = EmbeddedWork(Loop([TaskQueue()]))
        work.start()
        url = f"http://127.0.0.1:{server.server_port}/talk.wav"
        kind = kind_at("audio/asr/transcription")
        took, used = 0.0, 0.0
        for what in ("to load the model", "measured"):
            over.clear()
            order = Payload("paraformer-v2", [{"file_url": url}], {"language": None, "file_urls": [url]})
            began, processor = time.perf_counter(), time.process_time()
            store.accept(caller, kind, order, request_id="bench")
            assert over.wait(300), what
            took, used = time.perf_counter() - began, time.process_time() - processor
        work.stop()
        server.shutdown()
    assert ends[-1].status == "SUCCEEDED", ends[-1].message
    print(f"A recording of {seconds:.0f} s ({origin}) as a task:")
    print(f"{seconds / took:8.1f} x real time by the clock, {seconds / used:.1f} x by the time of one processor\n")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def _print(what: str, took_ms: Sequence[float]) -> None:
    ordered = sorted(took_ms)
    print(f"{statistics.median(ordered):8.2f} ms p50 {ordered[int(len(ordered) * 0.95)]:8.2f} ms p95   {what}")


def main() -> None:
    """Measure on each database."""
    from tests.postgres import start_postgres

    subprocess.run([sys.executable, "-m", __spec__.name, "measure", ""], check=True)
    with start_postgres() as server:
        subprocess.run([sys.executable, "-m", __spec__.name, "measure", server.fresh()], check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", database]:
            measure(database)
        case _:
            main()
