"""`python -m tests.bench.webhooks`: how fast events are delivered, beside a bare loop that posts signed bodies.

On SQLite and on a PostgreSQL of its own, where one is installed. The receiver is another process on this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime

ENDPOINTS = 16
EVENTS = 200
BARE = 3000
AT_ONCE = 64
ONE_BY_ONE = 100
WAITING = 100_000
"""For one endpoint, while another's are claimed."""
AIM_MS = 150
AIM_PER_S = 400
AIM_SHARE = 0.35


def receive() -> None:
    """The receiver: answers 200, and on GET tells how long after its `created_at` each body came, in ms."""
    from aiohttp import web

    late: list[float] = []

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        created = datetime.fromisoformat(json.loads(body)["created_at"])
        late.append((datetime.now(UTC) - created).total_seconds() * 1000)
        return web.Response()

    async def tell(_: web.Request) -> web.Response:
        told = web.json_response(late)
        late.clear()
        return told

    async def serve() -> None:
        application = web.Application()
        application.router.add_post("/{tail:.*}", take)
        application.router.add_get("/", tell)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


def send(database: str, port: int) -> None:
    """Measure one database; in a process of its own, for its settings."""
    with tempfile.TemporaryDirectory(prefix="voiceapp-webhooks-") as folder:
        os.environ |= {
            "DATABASE_URL": database or f"sqlite:///{folder}/webhooks.sqlite3",
            "DEBUG": "1",
            "VAR_DIR": folder,
            "DJANGO_SETTINGS_MODULE": "voiceapp.settings",
            "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "WEBHOOK_MAX_WAITING": str(WAITING),
        }
        import django
        from django.conf import settings
        from django.core.management import call_command

        django.setup()
        settings.DEBUG = False  # which would keep every query in memory
        call_command("migrate", verbosity=0)
        _measure(f"http://127.0.0.1:{port}/")


def _measure(receiver: str) -> None:
    from django.db import connection

    from voiceapp.accounts.models import Account
    from voiceapp.leases.loop import Loop
    from voiceapp.leases.wake import on_wake
    from voiceapp.server.work import EmbeddedWork
    from voiceapp.webhooks import store
    from voiceapp.webhooks.events import Event, EventKind, publish
    from voiceapp.webhooks.models import Delivery
    from voiceapp.webhooks.queue import DeliveryQueue

    print(f"On {connection.vendor}\n")
    account = Account.objects.create(name="bench")
    alone = account.workspaces.create(name="Alone")
    store.create(alone.pk, url=receiver, events=[EventKind.TASK_FINISHED])
    many = account.workspaces.create(name="Many")
    for number in range(ENDPOINTS):
        store.create(many.pk, url=f"{receiver}{number}", events=[EventKind.TASK_FINISHED])

    json.load(urllib.request.urlopen(receiver))  # what came before
    work = EmbeddedWork(Loop([DeliveryQueue()]))
    work.start()
    for number in range(ONE_BY_ONE):
        publish(alone.pk, [Event(EventKind.TASK_FINISHED, f"task-{number}")])
        time.sleep(0.02)
    _wait(lambda: Delivery.objects.exclude(status="SUCCEEDED").exists())
    late = json.load(urllib.request.urlopen(receiver))
    _print("from happening to receiver, one by one", late)
    print(f"    the aim is p95 <= {AIM_MS} ms\n")
    work.stop()

    publish(many.pk, [Event(EventKind.TASK_FINISHED, f"task-{number}") for number in range(EVENTS)])
    loop = Loop([DeliveryQueue()])
    forget = on_wake(loop.wake)
    work = EmbeddedWork(loop)
    began, cpu = time.perf_counter(), time.process_time()
    work.start()
    _wait(lambda: Delivery.objects.exclude(status="SUCCEEDED").exists(), every_s=0.1)
    took, used = time.perf_counter() - began, time.process_time() - cpu
    work.stop()
    forget()
    count = EVENTS * ENDPOINTS
    bare_took, bare_used = asyncio.run(_bare(receiver))
    for what, number, seconds, processor_s in (
        ("deliveries by one process", count, took, used),
        ("signed posts by a bare loop", BARE, bare_took, bare_used),
    ):
        print(f"{number / seconds:8.0f}/s {what}; {number / processor_s:.0f} in a second of its processor time")
    by_clock, by_processor = (count / took) / (BARE / bare_took), (count / used) / (BARE / bare_used)
    print(f"{by_clock:8.0%} of the bare loop's; {by_processor:.0%} by processor time")
    print(f"    the aims are {AIM_PER_S}/s on PostgreSQL, and {AIM_SHARE:.0%}\n")

    dead = account.workspaces.create(name="Dead")
    store.create(dead.pk, url=receiver, events=[EventKind.TASK_FINISHED])
    for start in range(0, WAITING, 5000):
        publish(dead.pk, [Event(EventKind.TASK_FINISHED, f"task-{start + number}") for number in range(5000)])
    line = DeliveryQueue()
    line.claim("bench", AT_ONCE)
    took_ms = []
    for number in range(ONE_BY_ONE):
        publish(alone.pk, [Event(EventKind.TASK_FINISHED, f"task-{number}")])
        began = time.perf_counter()
        [lease] = line.claim("bench", AT_ONCE)
        took_ms.append((time.perf_counter() - began) * 1000)
        Delivery.objects.filter(pk=lease.row_id).delete()
    _print(f"to claim one, while {WAITING} wait for somebody else", took_ms)
    print()


async def _bare(receiver: str) -> tuple[float, float]:
    """The same bodies signed and posted, and nothing written down: seconds that it took, and of processor time."""
    import aiohttp

    from voiceapp.webhooks.events import envelope
    from voiceapp.webhooks.secrets import new_secret
    from voiceapp.webhooks.signing import signature_headers

    secret = new_secret()
    numbers = iter(range(BARE))

    async def post(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            now = datetime.now(UTC)
            body = envelope(f"whe_{number:026}", now.isoformat(), "task-1", "task.finished", "ws_1").encode()
            headers = signature_headers(f"whe_{number:026}", body, [secret], now)
            async with session.post(receiver, data=body, headers=headers) as answer:
                await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=AT_ONCE)) as session:
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(post(session) for _ in range(AT_ONCE)))
        return time.perf_counter() - began, time.process_time() - cpu


def _wait(is_unfinished: object, every_s: float = 0.02) -> None:
    assert callable(is_unfinished)
    while is_unfinished():
        time.sleep(every_s)


def _print(what: str, values_ms: Sequence[float]) -> None:
    ordered = sorted(values_ms)
    p50, p95 = (ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95))
    print(f"{p50:8.1f} ms p50 {p95:8.1f} ms p95   {what} ({len(ordered)})")


def main() -> None:
    """Start a receiver, then measure on each database."""
    with subprocess.Popen(
        [sys.executable, "-m", __spec__.name, "receive"], stdout=subprocess.PIPE, text=True
    ) as taking:
        assert taking.stdout is not None
        port = taking.stdout.readline().strip()
        try:
            subprocess.run([sys.executable, "-m", __spec__.name, "send", port, ""], check=True)
            from tests.postgres import start_postgres

            with start_postgres() as server:
                subprocess.run([sys.executable, "-m", __spec__.name, "send", port, server.fresh()], check=True)
        finally:
            taking.kill()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["receive"]:
            receive()
        case ["send", port, database]:
            send(database, int(port))
        case _:
            main()
