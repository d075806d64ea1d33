"""What became of calls, written down: many at once in one transaction, each as if it were alone.

Endpoints are locked before their deliveries, in the order of their keys, as everything does that changes both.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from voiceapp.leases.rows import Claims, Lease
from voiceapp.webhooks.delivery import Attempted
from voiceapp.webhooks.models import Attempt, Delivery, WebhookEndpoint
from voiceapp.webhooks.rules import Disable, Next, Outcome, Verdict, failed_too_long, judge
from voiceapp.webhooks.store import cancel_waiting

NOT_CALLED = "The endpoint was disabled or deleted before this could be delivered."


@dataclass(frozen=True, slots=True)
class Sent:
    """One call that was made, or could not be."""

    lease: Lease
    endpoint_id: int
    """The row's key."""
    attempted: Attempted
    at: datetime
    """When it began."""
    is_hopeless: bool = False
    """Nothing could be sent, and trying again would change nothing."""

    @property
    def is_of_receiver(self) -> bool:
        """Whether the receiver was called, so that the end says something about it."""
        return self.attempted.outcome != Outcome()

    def verdict(self, now: datetime) -> Verdict:
        if self.is_hopeless:
            return Verdict(Next.FAILED)
        schedule: Sequence[float] = settings.WEBHOOK_RETRY_SCHEDULE
        return judge(self.attempted.outcome, self.lease.attempts, now, random.random, schedule)


def record(claims: Claims[Delivery], sent: Sequence[Sent]) -> None:
    """Write down what became of calls. What somebody else has taken over meanwhile is left to them."""
    now = timezone.now()
    with transaction.atomic():
        locked = WebhookEndpoint.objects.select_for_update(no_key=True).order_by("pk").only("status", "deleted_at")
        endpoints = locked.in_bulk({one.endpoint_id for one in sent})
        held = claims.hold([one.lease for one in sent])
        ours = [one for one in sent if one.lease.row_id in held]
        Attempt.objects.bulk_create([_attempt(one) for one in ours])
        by_endpoint: defaultdict[int, list[tuple[Sent, Verdict]]] = defaultdict(list)
        for one in ours:
            by_endpoint[one.endpoint_id].append((one, one.verdict(now)))
        good = [one.lease for one, verdict in _all(by_endpoint) if verdict.next is Next.SUCCEEDED]
        claims.finish_held(good, str(Delivery.Status.SUCCEEDED), finish_at=Now(), failure_reason="")
        for one, verdict in _all(by_endpoint):
            if verdict.next is not Next.SUCCEEDED:
                claims.finish_held([one.lease], **_end_of(one, verdict, endpoints[one.endpoint_id]))
        ends = {
            endpoint_id: [verdict for one, verdict in pairs if one.is_of_receiver]
            for endpoint_id, pairs in by_endpoint.items()
        }
        flawless = [pk for pk, verdicts in ends.items() if {one.next for one in verdicts} == {Next.SUCCEEDED}]
        _count_successes(flawless)
        for endpoint_id in sorted(ends.keys() - set(flawless)):
            _count(endpoints[endpoint_id], ends[endpoint_id], now)


def cancel_uncalled(due: QuerySet[Delivery]) -> None:
    """End deliveries to an endpoint that is told nothing."""
    due.update(status=Delivery.Status.CANCELED, finish_at=Now(), failure_reason=NOT_CALLED, version=F("version") + 1)


def _all(by_endpoint: defaultdict[int, list[tuple[Sent, Verdict]]]) -> list[tuple[Sent, Verdict]]:
    return [pair for pairs in by_endpoint.values() for pair in pairs]


def _attempt(one: Sent) -> Attempt:
    return Attempt(
        delivery_id=one.lease.row_id,
        at=one.at,
        status_code=one.attempted.outcome.status,
        duration_ms=one.attempted.duration_ms,
        answer_start=one.attempted.answer_start,
        error=one.attempted.error[:300],
    )


def _end_of(one: Sent, verdict: Verdict, endpoint: WebhookEndpoint) -> dict[str, Any]:
    status = one.attempted.outcome.status
    why = (one.attempted.error or f"The receiver answered {status}.")[:300]
    if verdict.next is Next.FAILED:
        return {"status": Delivery.Status.FAILED, "finish_at": Now(), "failure_reason": why}
    if not endpoint.is_called:
        return {"status": Delivery.Status.CANCELED, "finish_at": Now(), "failure_reason": NOT_CALLED}
    wait = timedelta(seconds=verdict.wait_s)
    return {"status": Delivery.Status.WAITING_RETRY, "due_at": Now() + wait, "failure_reason": why}


def _count(endpoint: WebhookEndpoint, verdicts: Sequence[Verdict], now: datetime) -> None:
    """The endpoint's counters after final ends, in the order in which they came, and whether it is called on."""
    rows = WebhookEndpoint.objects.filter(pk=endpoint.pk)
    ends = [verdict.next for verdict in verdicts if verdict.next is not Next.RETRY]
    if Next.SUCCEEDED in ends:
        _count_successes([endpoint.pk])
        ends = ends[len(ends) - ends[::-1].index(Next.SUCCEEDED) :]
    if failures := len(ends):
        rows.update(
            consecutive_fail=F("consecutive_fail") + failures,
            first_fail_at=Coalesce("first_fail_at", Now()),
            last_failure_at=Now(),
        )
    reason = next((verdict.disable for verdict in verdicts if verdict.disable is not None), None)
    if reason is None and failures:
        consecutive, since = rows.values_list("consecutive_fail", "first_fail_at").get()
        reason = Disable.FAILURES if failed_too_long(consecutive, since, now) else None
    if reason is not None and endpoint.is_called:
        rows.update(status=WebhookEndpoint.Status.DISABLED, disabled_reason=reason.value, updated_at=now)
        cancel_waiting(endpoint, f"The endpoint was disabled: {WebhookEndpoint.Reason(reason).label}.")


def _count_successes(endpoint_ids: Sequence[int]) -> None:
    if endpoint_ids:
        rows = WebhookEndpoint.objects.filter(pk__in=endpoint_ids)
        rows.update(consecutive_fail=0, first_fail_at=None, last_success_at=Now())
