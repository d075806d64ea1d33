"""The operators' AdminSite: what is running, and who may use it. Each app registers its own admin.py."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from voiceapp.accounts.models import ApiKey
from voiceapp.accounts.throttle import ThrottledAdminLogin
from voiceapp.realtime.models import RealtimeSession, Turn


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the panel on the index."""

    name: str
    value: str
    address: str = ""
    """Where the rows behind it are listed; empty when nowhere."""


class OperatorsSite(admin.AdminSite):
    site_header = "Voiceapp"
    site_title = "Voiceapp"
    index_title = "Operations"
    index_template = "admin/operations.html"
    login_form = ThrottledAdminLogin

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        may_see = request.user.has_perm("realtime.view_realtimesession")
        figures = figures_of_the_day(timezone.now()) if may_see else []
        return super().index(request, {**(extra_context or {}), "figures": figures})


def figures_of_the_day(now: datetime) -> list[Figure]:
    """What an operator wants to know first; the day begins at midnight in the server's time zone."""
    midnight = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    sessions = reverse("admin:realtime_realtimesession_changelist")
    median_ms = median_voice_to_voice_ms(midnight)
    return [
        Figure(
            "Open conversations",
            str(RealtimeSession.objects.filter(ended_at__isnull=True).count()),
            f"{sessions}?state=open",
        ),
        Figure(
            "Conversations begun today", str(RealtimeSession.objects.filter(started_at__gte=midnight).count()), sessions
        ),
        Figure("Median voice to voice today", "no spoken turn yet" if median_ms is None else f"{median_ms} ms"),
        Figure(
            "API keys used today",
            str(ApiKey.objects.filter(last_used_at__gte=midnight).count()),
            reverse("admin:accounts_apikey_changelist"),
        ),
    ]


def median_voice_to_voice_ms(since: datetime) -> int | None:
    """Half of the spoken answers begun since then were heard faster; None without any. Reads two rows, not all."""
    latencies = (
        Turn.objects.filter(started_at__gte=since, first_audio_ms__isnull=False)
        .order_by("first_audio_ms")
        .values_list("first_audio_ms", flat=True)
    )
    count = latencies.count()
    middle = list(latencies[max(0, (count - 1) // 2) : count // 2 + 1])
    return round(statistics.mean(middle)) if middle else None
