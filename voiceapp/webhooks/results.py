"""Results of calls, written to the database: many in one transaction, each as if it were alone.

Endpoints are locked before their deliveries, in the order of their keys, as everything does that changes both.
"""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from voiceapp.formats import Facts
from voiceapp.leases.rows import Lease
from voiceapp.leases.statements import Statement, insert, keys_given
from voiceapp.leases.states import after, take
from voiceapp.webhooks.delivery import Attempted
from voiceapp.webhooks.models import Attempt, Delivery, WebhookEndpoint
from voiceapp.webhooks.rules import Outcome, Verdict, failed_too_long, judge
from voiceapp.webhooks.states import DELIVERY_STEPS, ENDPOINT_STEPS, REASONS, DeliveryStatus, DisabledReason
from voiceapp.webhooks.store import cancel_waiting

logger = logging.getLogger(__name__)

NOT_CALLED = "The endpoint was disabled or deleted before this could be delivered."
ATTEMPT = ("delivery", "at", "status_code", "duration_ms", "answer_start", "error")


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """One call that was made, or could not be."""

    lease: Lease
    endpoint_id: int
    """The row's key."""
    attempted: Attempted
    at: datetime
    """Time when it began."""
    is_hopeless: bool = False
    """Nothing could be sent, and trying again would change nothing."""

    @property
    def is_of_receiver(self) -> bool:
        """The receiver itself was called, so the result counts for or against it."""
        return self.attempted.outcome != Outcome()

    def verdict(self, now: datetime) -> Verdict:
        if self.is_hopeless:
            return Verdict("fail")
        schedule: Sequence[float] = settings.WEBHOOK_RETRY_SCHEDULE
        return judge(self.attempted.outcome, self.lease.attempts, now, random.random, schedule)


def record(sent: Sequence[AttemptResult]) -> None:
    """Record the results of calls. Deliveries that another process has claimed meanwhile are left to it."""
    now = timezone.now()
    with transaction.atomic():
        held = dict(_hold_statement().run(one.lease.row_id for one in sent))
        ours = [one for one in sent if held.get(one.lease.row_id) == one.lease.version]
        if not ours:
            return
        insert(Attempt, ATTEMPT, [_attempt(one) for one in ours])
        ends = [(one, one.verdict(now)) for one in ours]
        _succeed_statement().run(one.lease.row_id for one, verdict in ends if verdict.step == "succeed")
        unhappy = {one.endpoint_id for one, verdict in ends if verdict.step != "succeed"}
        _count_statement().run({one.endpoint_id for one in ours} - unhappy)
        endpoints = WebhookEndpoint.objects.select_related("workspace").in_bulk(unhappy)
        for one, verdict in ends:
            if verdict.step != "succeed":
                step, changes = _end_of(one, verdict, endpoints[one.endpoint_id])
                take(Delivery.objects.filter(pk=one.lease.row_id), DELIVERY_STEPS, step, **changes)
                if step == "fail":
                    transaction.on_commit(partial(_log_failure, one, endpoints[one.endpoint_id], changes))
        verdicts: defaultdict[int, list[Verdict]] = defaultdict(list)
        for one, verdict in ends:
            if one.is_of_receiver:
                verdicts[one.endpoint_id].append(verdict)
        for endpoint_id in sorted(unhappy):
            _count(endpoints[endpoint_id], verdicts[endpoint_id], now)


def _log_failure(one: AttemptResult, endpoint: WebhookEndpoint, changes: dict[str, Any]) -> None:
    facts = Facts(
        account=endpoint.workspace.account_id,
        endpoint=endpoint.public_id,
        attempts=one.lease.attempts,
        code=one.attempted.outcome.status,
        seconds=one.attempted.duration_ms / 1000,
        reason=changes["failure_reason"],
    )
    logger.info("delivery %s: failed for good, %s", one.lease.row_id, facts)


def cancel_uncalled(due: QuerySet[Delivery]) -> None:
    """End deliveries to an endpoint that is not active."""
    take(due, DELIVERY_STEPS, "cancel", finish_at=Now(), failure_reason=NOT_CALLED, version=F("version") + 1)


def _attempt(one: AttemptResult) -> Sequence[Any]:
    """Values of `ATTEMPT`."""
    at, done = connection.ops.adapt_datetimefield_value(one.at), one.attempted
    return (one.lease.row_id, at, done.outcome.status, done.duration_ms, done.answer_start, done.error[:300])


def _end_of(one: AttemptResult, verdict: Verdict, endpoint: WebhookEndpoint) -> tuple[str, dict[str, Any]]:
    """The delivery's step, and the further columns that change."""
    status = one.attempted.outcome.status
    why = (one.attempted.error or f"The receiver responded with status {status}.")[:300]
    if verdict.step == "fail":
        return "fail", {"finish_at": Now(), "failure_reason": why}
    if not endpoint.is_called:
        return "cancel", {"finish_at": Now(), "failure_reason": NOT_CALLED}
    return "retry", {"due_at": Now() + timedelta(seconds=verdict.wait_s), "failure_reason": why}


def _count(endpoint: WebhookEndpoint, verdicts: Sequence[Verdict], now: datetime) -> None:
    """The endpoint's counters after final ends, in the order in which they came, and whether it is called on."""
    rows = WebhookEndpoint.objects.filter(pk=endpoint.pk)
    ends = [verdict.step for verdict in verdicts if verdict.step != "retry"]
    if "succeed" in ends:
        _count_statement().run([endpoint.pk])
        ends = ends[len(ends) - ends[::-1].index("succeed") :]
    if failures := len(ends):
        rows.update(
            consecutive_fail=F("consecutive_fail") + failures,
            first_fail_at=Coalesce("first_fail_at", Now()),
            last_failure_at=Now(),
        )
    reason = next((verdict.disable for verdict in verdicts if verdict.disable is not None), None)
    if reason is None and failures:
        consecutive, since = rows.values_list("consecutive_fail", "first_fail_at").get()
        reason = DisabledReason.FAILURES if failed_too_long(consecutive, since, now) else None
    if reason is not None and endpoint.is_called:
        take(rows, ENDPOINT_STEPS, "disable", disabled_reason=reason, updated_at=now)
        cancel_waiting(endpoint, f"The endpoint was disabled: {REASONS[reason]}.")


@cache
def _hold_statement() -> Statement:
    """Key and version of deliveries that are worked on; locks their endpoints, then them."""
    rows = WebhookEndpoint.objects.filter(deliveries__pk__in=keys_given(), deliveries__status=DeliveryStatus.DELIVERING)
    rows = rows.select_for_update(no_key=True).order_by("pk")
    return Statement.selecting(rows.values_list("deliveries__pk", "deliveries__version"))


@cache
def _succeed_statement() -> Statement:
    rows = Delivery.objects.filter(pk__in=keys_given())
    return Statement.updating(rows, status=after(DELIVERY_STEPS, "succeed"), finish_at=Now(), failure_reason="")


@cache
def _count_statement() -> Statement:
    rows = WebhookEndpoint.objects.filter(pk__in=keys_given())
    return Statement.updating(rows, consecutive_fail=0, first_fail_at=None, last_success_at=Now())
