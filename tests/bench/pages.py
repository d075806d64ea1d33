"""`python -m tests.bench.pages`: how long operators wait for pages of the admin, with a million lines in the ledger.

It fills a new SQLite database, or the empty one that DATABASE_URL names.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

import django

SPAN = timedelta(days=365)
"""Time over which the rows are spread."""
MODELS, ACCOUNTS, MEASURED = 20, 200, 20
KIND = "audio/tts/synthesis"
MOST_MS, MOST_QUERIES = 300.0, 40


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pages", description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--conversations", type=int, default=50_000)
    parser.add_argument("--records", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/pages.sqlite3")
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        django.setup()
        began = time.monotonic()
        fill(arguments.tasks, arguments.conversations, arguments.records)
        print(f"Filled in {time.monotonic() - began:.0f} s.")
        slow = [page for page in pages() if not measured(*page)]
    print(f"Above {MOST_MS:.0f} ms or {MOST_QUERIES} queries: {len(slow)}")


def fill(tasks: int, conversations: int, records: int) -> None:
    """Write accounts with keys, members, endpoints, and so many rows of each kind."""
    from django.contrib.auth.models import Permission, User
    from django.core.management import call_command
    from django.db import connection
    from django.utils import timezone

    from voiceapp.accounts.keys import new_key
    from voiceapp.accounts.models import Account, ApiKey, Membership, UsageRecord, Workspace
    from voiceapp.realtime.models import RealtimeSession, Turn
    from voiceapp.tasks.models import Task

    call_command("migrate", verbosity=0)
    now = timezone.now()
    Account.objects.bulk_create([Account(name=f"Account {number}") for number in range(ACCOUNTS)])
    accounts = list(Account.objects.order_by("pk"))
    Workspace.objects.bulk_create([Workspace(account=account, name="Default") for account in accounts])
    workspaces = list(Workspace.objects.order_by("pk"))
    ApiKey.objects.bulk_create([new_key(workspace, f"Key of {workspace.account_id}")[0] for workspace in workspaces])
    keys = list(ApiKey.objects.order_by("pk"))
    User.objects.create_superuser("superuser", password="x")
    member = User.objects.create_user("member", password="x", is_staff=True)
    member.user_permissions.set(Permission.objects.exclude(codename="see_every_account"))
    Membership.objects.create(user=member, account=accounts[0])

    def theirs(number: int) -> dict[str, Any]:
        place = number % ACCOUNTS
        return {"account": accounts[place], "workspace": workspaces[place]}

    def at(number: int, count: int) -> Any:
        return now - SPAN * (number / count)

    def written() -> Iterator[Any]:
        for number in range(records):
            key = keys[number % ACCOUNTS]
            yield UsageRecord(
                **theirs(number),
                **{"key": key, "caller": str(key), "operation": "chat", "family": "chat"},
                **{
                    "model": f"model-{number % MODELS}",
                    "request_id": f"r{number // 2}",
                    "created_at": at(number, records),
                },
                unit=("input_tokens", "output_tokens")[number % 2],
                **{"quantity": 100, "unit_price_nano": 70, "cost_nano": 7_000},
            )

    def held() -> Iterator[Any]:
        for number in range(conversations):
            began = at(number, conversations)
            closed = {"ended_at": began + timedelta(minutes=2), "close_code": 1000} if number > 10 else {}
            more = {"api_key": keys[number % ACCOUNTS], "model": "voice", "transport": "websocket"}
            yield RealtimeSession(id=f"sess_{number}", **theirs(number), **more, started_at=began, **closed)

    def said() -> Iterator[Any]:
        for number in range(conversations * 4):
            session, ordinal = f"sess_{number // 4}", number % 4 + 1
            more = {
                "started_at": at(number, conversations * 4),
                "is_spoken": True,
                "first_audio_ms": 300 + number % 500,
            }
            yield Turn(session_id=session, ordinal=ordinal, status="completed", user_text="Hello?", **more)

    def submitted() -> Iterator[Any]:
        for number in range(tasks):
            then = at(number, tasks)
            over = {"status": "SUCCEEDED", "scheduled_at": then, "ended_at": then, "progress": 1.0}
            more = {"kind": KIND, "model_name": f"model-{number % MODELS}", "submitted_at": then}
            yield Task(**theirs(number), key=keys[number % ACCOUNTS], **more, **(over if number > 100 else {}))

    for table, rows in ((UsageRecord, written()), (RealtimeSession, held()), (Turn, said()), (Task, submitted())):
        while part := list(islice(rows, 20_000)):
            table.objects.bulk_create(part, batch_size=500)
    if connection.vendor == "postgresql":  # as its autovacuum does after a while
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def pages() -> Iterator[tuple[str, str]]:
    """Yield login and address of each page."""
    from django.contrib import admin
    from django.urls import reverse

    from voiceapp.realtime.models import RealtimeSession
    from voiceapp.tasks.models import Task

    lists = {
        table: reverse(f"admin:{table._meta.app_label}_{table._meta.model_name}_changelist")
        for table in admin.site._registry
    }
    usage = reverse("admin:usage")
    session, task = RealtimeSession.objects.latest("started_at"), Task.objects.latest("pk")
    for user in ("superuser", "member"):
        yield user, reverse("admin:index")
        for address in lists.values():
            yield user, address
        yield from ((user, f"{usage}?days={days}&by=time") for days in (1, 30, 365))
        yield from ((user, f"{usage}?days=30&by={by}") for by in ("model", "key", "account", "agent"))
        ledger, tasks, sessions = reverse("admin:accounts_usagerecord_changelist"), lists[Task], lists[RealtimeSession]
        yield from ((user, f"{ledger}?{query}") for query in ("p=100", "q=r77", "account__id__exact=1"))
        yield from ((user, f"{tasks}?{query}") for query in ("p=100", "status=FAILED", "q=550f3353", f"kind={KIND}"))
        yield from ((user, f"{sessions}?{query}") for query in ("p=100", "state=open", "q=sess_77", "model=voice"))
        yield user, reverse("admin:realtime_realtimesession_change", args=[session.pk.replace("_", "_5F")])
        yield user, reverse("admin:tasks_task_change", args=[task.pk])
        yield user, f"{reverse('admin:search')}?s=sess_77&extended=1"


def measured(user: str, address: str) -> bool:
    """Print how long a page takes and its queries; return whether that is little enough."""
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client()
    client.force_login(User.objects.get(username=user))
    first = time.perf_counter()
    client.get(address)
    first_ms = (time.perf_counter() - first) * 1000
    took_ms, cpu = [], time.process_time()
    for _ in range(MEASURED):
        began = time.perf_counter()
        answer = client.get(address)
        took_ms.append((time.perf_counter() - began) * 1000)
    cpu_ms = (time.process_time() - cpu) * 1000 / MEASURED
    with CaptureQueriesContext(
        connection,
    ) as queries:
        client.get(address)
    p95 = sorted(took_ms)[round(MEASURED * 0.95) - 1]
    is_quick = p95 <= MOST_MS and len(queries) <= MOST_QUERIES
    mark = "" if is_quick else "SLOW "
    found = f"{p95:4.0f} ms (CPU {cpu_ms:.0f}, first {first_ms:.0f}), {len(queries)} queries, {answer.status_code}"
    print(f"{mark}{found}: {user} {address}")
    return is_quick


if __name__ == "__main__":
    main()
