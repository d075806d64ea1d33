"""The front page of the operators' site: what needs attention, the figures of now and today, and two charts."""

from __future__ import annotations

import math
import resource
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Avg, Count, Model, Q, QuerySet, Sum
from django.db.models.functions import TruncHour, TruncMinute
from django.urls import reverse
from django.utils import timezone

from voiceapp.accounts.models import ApiKey, UsageRecord
from voiceapp.accounts.own_rows import own, sees_all
from voiceapp.disk import disks, free_bytes_of
from voiceapp.engines.models.providers import service_states, troubles
from voiceapp.formats import dollars, size
from voiceapp.http.charts import Chart, chart
from voiceapp.leases.rows import oldest_due_s
from voiceapp.operators.served import served
from voiceapp.realtime.close_codes import INTERNAL_ERROR, UNAVAILABLE
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.tasks.models import Task
from voiceapp.tasks.states import FINAL, Status
from voiceapp.webhooks.models import WebhookEndpoint
from voiceapp.webhooks.states import EndpointStatus

LATE_S = 60.0
"""Wait of due work after which it is likely that no worker runs."""
FAULTS = (1011, INTERNAL_ERROR, UNAVAILABLE)
"""Close codes of conversations that this server ended for a fault of its own."""
PATHS: dict[type[Model], str] = {
    Turn: "session__account",
    ApiKey: "workspace__account",
    WebhookEndpoint: "workspace__account",
}
"""Ways to the account of a row that does not name it itself."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the front page."""

    name: str
    value: str
    address: str = ""
    """Address of the list of the rows behind it; empty without one."""
    note: str = ""
    """Explanation of the value, where the name does not say it all."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that an operator should look at."""

    text: str
    address: str = ""


def shown(now: datetime, user: Any) -> dict[str, Any]:
    """Return what the front page shows a person, by its names in the template."""
    models = served() if sees_all(user) else []
    return {"alarms": alarms(now, user), "figures": figures(now, user), "charts": charts(now, user), "models": models}


def _rows(table: type[Model], user: Any) -> QuerySet[Any]:
    return own(table._default_manager.all(), user, PATHS.get(table, "account"))


def _list(model: str) -> str:
    return str(reverse(f"admin:{model}_changelist"))


def state(user: Any) -> tuple[Any, ...]:
    """Return a value that differs once a figure of a person's front page has changed much."""
    failing = _rows(WebhookEndpoint, user).filter(consecutive_fail__gt=0)
    return (
        _rows(RealtimeSession, user).filter(ended_at__isnull=True).count(),
        _rows(Turn, user).order_by("-pk").values_list("pk", flat=True).first(),
        dict(_open_tasks(user)),
        list(failing.values_list("pk", "consecutive_fail")),
    )


def alarms(now: datetime, user: Any) -> list[Alarm]:
    """Return what needs attention, the most urgent first."""
    failing = _rows(WebhookEndpoint, user).filter(deleted_at__isnull=True)
    count = failing.filter(consecutive_fail__gt=0, status=EndpointStatus.ACTIVE).count()
    faults = _rows(RealtimeSession, user).filter(ended_at__gte=midnight(now), close_code__in=FAULTS).count()
    found = _of_server() if sees_all(user) else []
    if faults:
        text = f"Conversations ended by a fault of this server today: {faults}"
        found.append(Alarm(text, _list("realtime_realtimesession")))
    if count:
        found.append(Alarm(f"Webhook receivers that fail: {count}", _list("webhooks_webhookendpoint")))
    return found


def _of_server() -> list[Alarm]:
    shortage = disks().shortage()
    found = [Alarm(str(shortage))] if shortage else []
    found += [Alarm(f"Speech server out of order: {error.for_operators}") for error in troubles()]
    found += [
        Alarm(f"Service {state.name}: {state.for_operators}") for state in service_states() if state.trouble is not None
    ]
    found += [
        Alarm(f"The oldest of the waiting {name} has waited for {waited_s:.0f} s. Is a worker running?")
        for name, waited_s in oldest_due_s().items()
        if waited_s > LATE_S
    ]
    return found


def figures(now: datetime, user: Any) -> list[Figure]:
    """Return the figures of now, and of the day, which begins at midnight in the server's time zone."""
    today = midnight(now)
    sessions, turns = _list("realtime_realtimesession"), _rows(Turn, user).filter(started_at__gte=today)
    conversations = _rows(RealtimeSession, user)
    failed = turns.filter(status=Turn.Status.FAILED).count()
    median_ms, p95_ms = voice_to_voice_ms(turns)
    spent = _rows(UsageRecord, user).filter(created_at__gte=today).aggregate(nano=Sum("cost_nano"))["nano"] or 0
    tasks = dict(_open_tasks(user))
    ended = _rows(Task, user).filter(ended_at__gte=today, status=Status.FAILED).count()
    return [
        Figure(
            "Open conversations",
            str(conversations.filter(ended_at__isnull=True).count()),
            f"{sessions}?state=open",
        ),
        Figure("Conversations begun today", str(conversations.filter(started_at__gte=today).count()), sessions),
        Figure("Turns today", str(turns.count()), note=f"{failed} failed"),
        Figure(
            "Voice to voice today",
            "–" if median_ms is None else f"{median_ms} ms",
            note="From the caller's last sound of speech until the reply's first sound was sent; the median of spoken "
            + ("turns. There is none yet." if p95_ms is None else f"turns. 95 of 100 took at most {p95_ms} ms."),
        ),
        Figure(
            "Tasks waiting and running",
            f"{tasks.get(Status.PENDING, 0)} and {tasks.get(Status.RUNNING, 0)}",
            _list("tasks_task"),
            note=f"{ended} failed today",
        ),
        Figure("Spent today", f"{dollars(spent)} $", f"{reverse('admin:usage')}?days=1&by=model"),
        Figure(
            "API keys used today",
            str(_rows(ApiKey, user).filter(last_used_at__gte=today).count()),
            _list("accounts_apikey"),
        ),
        *(_figures_of_server() if sees_all(user) else ()),
    ]


def _figures_of_server() -> list[Figure]:
    return [
        Figure("Memory of this process", size(_memory_bytes()), note="At its highest."),
        Figure("Free disk space", size(free_bytes_of(settings.VAR_DIR))),
    ]


def charts(now: datetime, user: Any) -> list[Chart]:
    """Return the turns of the last hour, by minute, and of the last day, by hour."""
    minute = now.replace(second=0, microsecond=0)
    hour, turns = minute.replace(minute=0), _rows(Turn, user)
    return [
        _chart(turns, "The last hour", "minute", minute, timedelta(minutes=1), 60, TruncMinute("started_at")),
        _chart(turns, "The last day", "hour", hour, timedelta(hours=1), 24, TruncHour("started_at")),
    ]


def midnight(now: datetime) -> datetime:
    """Return the beginning of the day in the server's time zone."""
    today: datetime = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    return today


def voice_to_voice_ms(turns: QuerySet[Turn]) -> tuple[int | None, int | None]:
    """Return the median and the 95th percentile of spoken turns; None without any. Reads two rows, not all.

    Latencies of typed turns count from the request and are left out.
    """
    latencies = (
        turns.filter(is_spoken=True, first_audio_ms__isnull=False)
        .order_by("first_audio_ms")
        .values_list("first_audio_ms", flat=True)
    )
    count = latencies.count()
    if not count:
        return None, None
    return latencies[(count - 1) // 2], latencies[math.ceil(count * 0.95) - 1]


def _open_tasks(user: Any) -> list[tuple[str, int]]:
    return list(_rows(Task, user).exclude(status__in=FINAL).order_by().values_list("status").annotate(Count("pk")))


def _chart(
    turns: QuerySet[Turn], title: str, unit: str, last: datetime, step: timedelta, count: int, begins: Any
) -> Chart:
    first = last - step * (count - 1)
    found = {
        row["at"]: row
        for row in turns.filter(started_at__gte=first)
        .order_by()
        .annotate(at=begins)
        .values("at")
        .annotate(
            turns=Count("pk"),
            failed=Count("pk", filter=Q(status=Turn.Status.FAILED)),
            latency=Avg("first_audio_ms", filter=Q(is_spoken=True)),
        )
    }
    points = []
    for at in (first + step * place for place in range(count)):
        row = found.get(at, {"turns": 0, "failed": 0, "latency": None})
        latency = "–" if row["latency"] is None else f"{row['latency']:.0f} ms"
        cells = [str(row["turns"]), str(row["failed"]), latency]
        points.append((timezone.localtime(at).strftime("%H:%M"), row["turns"], row["failed"], cells))
    return chart(title, unit, ["Turns", "Failed", "Voice to voice, mean"], points)


def _memory_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
