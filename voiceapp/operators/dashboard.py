"""The figures of the day on the index of the operators' site."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils import timezone

from voiceapp.accounts.models import ApiKey
from voiceapp.engines.models.providers import service_states, troubles
from voiceapp.leases.rows import oldest_due_s
from voiceapp.realtime.models import RealtimeSession, Turn


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: str
    address: str = ""
    """Address of the list of the rows behind it; empty without one."""
    note: str = ""
    """Explanation of the value, where the name does not say it all."""


def figures_of_the_day(now: datetime) -> list[Figure]:
    """Return the figures of the day, which begins at midnight in the server's time zone."""
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
        Figure(
            "Median voice to voice today",
            "no spoken turn with a spoken reply yet" if median_ms is None else f"{median_ms} ms",
            note="Spoken turns only: from the caller's last sound of speech until the reply's first sound was sent.",
        ),
        Figure(
            "API keys used today",
            str(ApiKey.objects.filter(last_used_at__gte=midnight).count()),
            reverse("admin:accounts_apikey_changelist"),
        ),
        *(
            Figure(f"Oldest waiting of {name}", f"{waited_s:.0f} s", note="Is a worker running that takes them?")
            for name, waited_s in oldest_due_s().items()
        ),
        *(
            Figure("Speech server out of order", error.for_operators, note="Conversations use the embedded engine.")
            for error in troubles()
        ),
        *(
            Figure(f"Service {state.name}", state.for_operators, note="As this process last met it.")
            for state in service_states()
        ),
    ]


def median_voice_to_voice_ms(since: datetime) -> int | None:
    """The median of spoken turns begun since then, from the caller's last sound of speech to the reply's first sound.

    Latencies of typed turns count from the request and are left out. None without any. Reads two rows, not all.
    """
    latencies = (
        Turn.objects.filter(started_at__gte=since, is_spoken=True, first_audio_ms__isnull=False)
        .order_by("first_audio_ms")
        .values_list("first_audio_ms", flat=True)
    )
    count = latencies.count()
    middle = list(latencies[max(0, (count - 1) // 2) : count // 2 + 1])
    return round(statistics.mean(middle)) if middle else None
