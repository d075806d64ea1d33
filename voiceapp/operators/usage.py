"""The page of what was used: by time, model, key, account, agent or operation, with charts and as CSV."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.db.models import CharField, Count, F, Q, QuerySet, Sum
from django.db.models.functions import Cast, Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode

from voiceapp.accounts.ledger import UNITS
from voiceapp.accounts.models import ApiKey, Quota, UsageRecord
from voiceapp.accounts.own_rows import own, sees_all
from voiceapp.formats import dollars
from voiceapp.http.admin import csv_download
from voiceapp.http.charts import Chart, chart
from voiceapp.realtime.models import Turn

MAY_SEE = "accounts.view_usagerecord"
PERIODS = {"1": "Today", "7": "7 days", "30": "30 days", "90": "90 days", "365": "a year"}
"""Words by the number of days; the last of them is today, in UTC."""
USUAL_DAYS = "30"
GROUPS = {"time": "", "model": "model", "key": "caller", "account": "account__name", "agent": "agent"}
GROUPS["operation"] = "operation"
"""Columns of the ledger by what they group; `time` is by day, or by hour within a day."""
OF_TURNS = {"time": "", "model": "session__model", "account": "session__account__name"}
"""The same of turns, as far as they have them."""
TITLES = {
    "input_tokens": "Tokens in",
    "output_tokens": "Tokens out",
    "dropped_tokens": "Tokens dropped",
    "audio_seconds": "Audio (min)",
    "characters": "Characters",
    "image_count": "Images",
    "video_count": "Videos",
    "video_seconds": "Videos (min)",
    "conversations": "Calls passed on",
}
MOST_ROWS = 100
MOST_LEFT = 20
"""Keys and quotas whose rest is shown."""
LATENCY = "Voice to voice (ms)"

REMEMBERED_S = 6 * 3600
MOST_REMEMBERED = 1000
"""Groups of one look at days that are over."""

Row = dict[str, Any]
"""Sums of one group: `group`, `requests`, `cost` in nano-dollars, `latency` in ms or None, and units by their names."""


def usage(request: HttpRequest, context: Mapping[str, Any]) -> HttpResponse:
    """Show what was used, or with `csv` download it.

    Raises:
        PermissionDenied: if the person may not look at the ledger.
    """
    if not request.user.has_perm(MAY_SEE):
        raise PermissionDenied
    query, now = request.GET, timezone.now()
    days = query.get("days", "") if query.get("days") in PERIODS else USUAL_DAYS
    by = query.get("by", "") if query.get("by") in GROUPS else "time"
    slot = 13 if days == "1" else 10  # characters of `2026-11-20 14:00:00`
    filters = {name: query[name][:200].replace("\0", "") for name in GROUPS if name != "time" and name in query}
    since = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=int(days) - 1)
    over_time = sums(request.user, since, "time", filters, slot)
    rows = over_time if by == "time" else sums(request.user, since, by, filters, slot)
    columns = _columns(rows)
    if "csv" in query:
        return csv_download("usage.csv", [by, *columns], ([row["group"], *_cells(row, columns)] for row in rows))

    def link(**changes: str) -> str:
        asked = {"days": days, "by": by, **filters, **changes}
        return f"?{urlencode({name: value for name, value in asked.items() if value})}"

    page = {
        **context,
        "title": "Usage",
        "periods": [(words, link(days=number), number == days) for number, words in PERIODS.items()],
        "groups": [(name.capitalize(), link(by=name), name == by) for name in GROUPS],
        "filters": [(name, value, link(**{name: ""})) for name, value in filters.items()],
        "table": {
            "headers": [by.capitalize(), *columns],
            "rows": [[_group(row["group"], by, link), *_cells(row, columns)] for row in rows[:MOST_ROWS]],
        },
        "charts": list(_charts(over_time, since, now, slot)),
        "csv": link(csv="1"),
        "rests": list(_rests(request)),
    }
    return render(request, "admin/usage.html", page)


def sums(user: Any, since: datetime, by: str, filters: Mapping[str, str], slot: int) -> list[Row]:
    """Sum usage, cost and latency by group: times newest first, all else dearest first.

    The ledger only grows, so the sums of days that are over are remembered for a while.
    """
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    found = _summed(user, midnight, None, by, filters, slot)
    if since < midnight:
        viewer = "all" if sees_all(user) else user.pk
        asked = repr((viewer, since, midnight, by, slot, sorted(filters.items())))
        key = f"usage-{hashlib.sha256(asked.encode()).hexdigest()}"
        if (past := cache.get(key)) is None:
            past = _summed(user, since, midnight, by, filters, slot)
            if len(past) <= MOST_REMEMBERED:
                cache.set(key, past, REMEMBERED_S)
        for group, row in past.items():
            found[group].update(row)
    rows = [{**row, "group": group, "latency": _mean(row)} for group, row in found.items()]
    if by == "time":
        return sorted(rows, key=lambda row: row["group"], reverse=True)
    return sorted(rows, key=lambda row: (-row["cost"], -row["requests"], row["group"]))


def _mean(row: Mapping[str, int]) -> float | None:
    return row["latency_ms"] / row["spoken"] if row["spoken"] else None


def _summed(
    user: Any, since: datetime, until: datetime | None, by: str, filters: Mapping[str, str], slot: int
) -> defaultdict[str, Counter[str]]:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    units = {unit: Sum("quantity", filter=Q(unit=unit), default=0) for unit in UNITS}
    records = _between(own(UsageRecord.objects.all(), user), "created_at", since, until)
    records = records.filter(**{GROUPS[name]: value for name, value in filters.items()})
    sums_of = {"requests": Count("request_id", distinct=True), "cost": Sum("cost_nano"), **units}
    for row in _grouped(records, GROUPS[by], "created_at", slot).annotate(**sums_of):
        found[str(row.pop("group"))].update({name: int(value) for name, value in row.items()})
    if by in OF_TURNS and filters.keys() <= OF_TURNS.keys():
        turns = own(Turn.objects.filter(is_spoken=True, first_audio_ms__isnull=False), user, "session__account")
        turns = _between(turns, "started_at", since, until)
        turns = turns.filter(**{OF_TURNS[name]: value for name, value in filters.items()})
        latencies = {"latency_ms": Sum("first_audio_ms"), "spoken": Count("pk")}
        for row in _grouped(turns, OF_TURNS[by], "started_at", slot).annotate(**latencies):
            if (group := row.pop("group")) in found:  # of a model without usage, nothing is listed
                found[group].update(row)
    return found


def _between(rows: QuerySet[Any], time: str, since: datetime, until: datetime | None) -> QuerySet[Any]:
    return rows.filter(**{f"{time}__gte": since}, **({} if until is None else {f"{time}__lt": until}))


def _grouped(rows: QuerySet[Any], column: str, time: str, slot: int) -> QuerySet[Any]:
    # The beginning of the time's text: on SQLite, truncating a time calls Python for every row.
    group = F(column) if column else Left(Cast(time, CharField()), slot)
    return rows.order_by().annotate(group=group).values("group")


def _columns(rows: list[Row]) -> list[str]:
    """Titles of the columns in which there is something."""
    used = [title for unit, title in TITLES.items() if any(row.get(unit) for row in rows)]
    return ["Requests", *used, *([LATENCY] if any(row["latency"] for row in rows) else []), "Cost ($)"]


def _cells(row: Row, columns: list[str]) -> list[str]:
    words = {title: _in_words(unit, row.get(unit, 0)) for unit, title in TITLES.items()}
    words |= {"Requests": str(row["requests"]), "Cost ($)": dollars(int(row["cost"]))}
    words[LATENCY] = "–" if row["latency"] is None else f"{row['latency']:.0f}"
    return [words[column] for column in columns]


def _in_words(unit: str, quantity: int) -> str:
    return f"{quantity / 60:.1f}" if unit.endswith("_seconds") else str(quantity)


def _group(value: str, by: str, link: Callable[..., str]) -> str:
    if by == "time" or not value:
        return value or "–"
    return str(format_html('<a class="underline" href="{}">{}</a>', link(by="time", **{by: value}), value))


def _charts(rows: list[Row], since: datetime, now: datetime, slot: int) -> Iterator[Chart]:
    """Draw a chart for each column in which there is something, over the whole period."""
    step = timedelta(hours=1) if slot == 13 else timedelta(days=1)
    slots = [str(since + step * place)[:slot] for place in range((now - since) // step + 1)]
    known = {row["group"]: row for row in rows}
    unit = "hour" if slot == 13 else "day"
    for title in _columns(rows)[1:]:
        cells = {group: _cells(row, [title])[0] for group, row in known.items()}
        values = {group: 0.0 if cell == "–" else float(cell) for group, cell in cells.items()}
        if any(values.values()):
            points = [(_label(each), values.get(each, 0.0), 0.0, [cells.get(each, "–")]) for each in slots]
            yield chart(title, unit, [title], points)


def _label(slot: str) -> str:
    return f"{slot[11:]}:00" if len(slot) == 13 else slot


def _rests(request: HttpRequest) -> Iterator[tuple[str, str, str]]:
    """Yield address, name and rest of keys with a budget and of quotas, as their lists say it."""
    now = timezone.now()
    keys = Q(monthly_budget_nano__isnull=False, revoked_at__isnull=True)
    for model, condition in ((ApiKey, keys), (Quota, Q(expires_at__gt=now))):
        shown = admin.site.get_model_admin(model)
        if not shown.has_view_permission(request):
            continue
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        for row in shown.get_queryset(request).filter(condition)[:MOST_LEFT]:
            yield reverse(name, args=[row.pk]), str(row), shown.left(row)
