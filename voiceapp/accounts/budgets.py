"""Free quotas and monthly budgets: set aside before a call, settled after it, never overspent by calls in parallel.

Reservations are conditional UPDATEs, one transaction for each step, so concurrent calls cannot overspend a quota or a
budget, on SQLite and PostgreSQL alike. What is set aside leaves a `Hold`. Deleting the hold gives back the difference,
once. A hold that has outlived its call belongs to a process that was killed; the next call that would be refused
otherwise gives it back. Functions here touch rows and run in the database thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from voiceapp.accounts.models import ApiKey, Hold, MonthlySpend, Quota, UsageRecord
from voiceapp.catalogue.lookup import catalogue
from voiceapp.errors import AccessDenied, Throttled

ALLOCATION = "Throttling.AllocationQuota"
QUOTA_RETRY_S = 3600
"""Retry-After of an exhausted quota: only an operator can make room."""
HOLD_LIFETIME = timedelta(minutes=30)
"""Six times as long as the longest request; work that may last longer says so. A call that lasts even longer is still
billed in full."""
NO_BUDGET = "This API key's budget for this month does not allow the call. Ask an operator."


@dataclass(frozen=True, slots=True)
class Wanted:
    """Amounts that a call asks to have set aside."""

    account_id: int
    family: str
    tokens: int
    """Tokens of the family's free quota; 0 asks only whether some of it is left."""
    is_free_only: bool
    """True if the call is refused when the free quota is used up."""
    key_id: int | None
    budget_nano: int | None
    """The key's monthly budget in nano-dollars; None means no limit."""
    cost_nano: int
    """At least 1 must be left of the budget, whatever the call costs."""
    now: datetime
    request_id: str = ""
    """Names the charge: what an earlier attempt at it holds is given back, and what is paid for is not paid again."""
    lifetime: timedelta = HOLD_LIFETIME
    asks_anew: bool = False
    """The caller came long ago: `budget_nano` may have changed since, so the key's row is read."""


@dataclass(frozen=True, slots=True)
class Held:
    """Amounts that were set aside."""

    hold_id: int
    tokens: int
    cost_nano: int
    quota_id: int | None
    spend_id: int | None
    left_nano: int | None
    """The rest of the budget, this hold included; None without a budget."""


def is_free_only(model: str, family: str) -> bool:
    """Return whether calls of a model end with the family's free quota, by `QUOTA_ENFORCED`."""
    if family not in settings.FREE_QUOTAS or settings.QUOTA_ENFORCED == "never":
        return False
    return settings.QUOTA_ENFORCED == "always" or not catalogue().runs_here(model, family)


def hold(wanted: Wanted, *, instead_of: Held | None = None) -> Held:
    """Set aside what a call may use at most, in place of what it holds already.

    Raises:
        Throttled: `Throttling.AllocationQuota`, if the free quota is used up or over; what was held stays held.
        AccessDenied: if the key's budget for this month does not allow it; what was held stays held.
    """
    with transaction.atomic():
        if instead_of is not None:
            settle(instead_of, tokens=0, cost_nano=0)
        quota_id = _take_of_quota(wanted) if wanted.is_free_only else None
        budget_nano = _current_budget(wanted) if wanted.asks_anew else wanted.budget_nano
        taken = None if budget_nano is None else _take_of_budget(wanted, budget_nano)
        spend_id, left_nano = taken or (None, None)
        row = Hold.objects.create(
            quota_id=quota_id,
            tokens=wanted.tokens if quota_id else 0,
            spend_id=spend_id,
            cost_nano=wanted.cost_nano if spend_id else 0,
            request_id=wanted.request_id,
            created_at=wanted.now,
            expires_at=wanted.now + wanted.lifetime,
        )
    return Held(row.pk, row.tokens, row.cost_nano, quota_id, spend_id, left_nano)


def check(wanted: Wanted) -> None:
    """Check that the budget allows a call, and set nothing aside: for work that is only accepted now, and done later.

    Raises:
        AccessDenied: if the key's budget for this month does not allow it.
    """
    if wanted.asks_anew:
        wanted = replace(wanted, budget_nano=_current_budget(wanted))
    if wanted.budget_nano is None or _left(wanted) >= max(1, wanted.cost_nano):
        return
    with transaction.atomic():
        _give_back(Hold.objects.filter(spend__in=_month(wanted)), wanted)
    if _left(wanted) < max(1, wanted.cost_nano):
        raise AccessDenied(NO_BUDGET)


def settle(held: Held, *, tokens: int, cost_nano: int) -> None:
    """Replace what was set aside by what was used; call it within the transaction that writes the ledger.

    A hold that was given back meanwhile no longer counts, so all that was used does.
    """
    if not Hold.objects.filter(pk=held.hold_id).delete()[0]:
        held = Held(held.hold_id, 0, 0, held.quota_id, held.spend_id, held.left_nano)
    if held.quota_id is not None:
        Quota.objects.filter(pk=held.quota_id).update(used=F("used") + (tokens - held.tokens))
    if held.spend_id is not None:
        MonthlySpend.objects.filter(pk=held.spend_id).update(spent_nano=F("spent_nano") + (cost_nano - held.cost_nano))


def spend(key_id: int, cost_nano: int, now: datetime) -> None:
    """Add to what a key has spent this month without having held it: its budget may be set tomorrow."""
    rows = MonthlySpend.objects.filter(key_id=key_id, month=month_of(now))
    if not rows.update(spent_nano=F("spent_nano") + cost_nano):
        _open_month(key_id, now)
        rows.update(spent_nano=F("spent_nano") + cost_nano)


def month_of(now: datetime) -> str:
    """The calendar month of an aware time in UTC, the server's own zone: `2026-11`."""
    return f"{now:%Y-%m}"


def forecast(rest: int, used: int, *, since: datetime, now: datetime, until: datetime) -> str:
    """Say whether the rest lasts until then, at the pace of what was used since; of less than a day, as if of one."""
    if not rest:
        return "used up"
    lasts = math.inf if not used else max(now - since, timedelta(days=1)).total_seconds() * rest / used
    if lasts >= (until - now).total_seconds():
        return "lasts at this pace"
    return f"used up on {now + timedelta(seconds=lasts):%Y-%m-%d} at this pace"


def _take_of_quota(wanted: Wanted) -> int:
    mine = Quota.objects.filter(account_id=wanted.account_id, family=wanted.family)
    # Asking for none still needs one token left, and none is taken.
    room = F("granted") - max(1, wanted.tokens)
    enough = mine.filter(expires_at__gt=wanted.now, used__lte=room)
    taken = {"used": F("used") + wanted.tokens}
    if not enough.update(**taken):
        Quota.objects.bulk_create(
            [
                Quota(
                    account_id=wanted.account_id,
                    family=wanted.family,
                    granted=settings.FREE_QUOTAS[wanted.family],
                    first_used_at=wanted.now,
                    expires_at=wanted.now + timedelta(days=settings.FREE_QUOTA_DAYS),
                )
            ],
            ignore_conflicts=True,  # it exists, or another process makes it just now
        )
        _give_back(Hold.objects.filter(quota__in=mine), wanted)
        if not enough.update(**taken):
            raise Throttled("Free allocated quota exceeded.", code=ALLOCATION, retry_after_s=QUOTA_RETRY_S)
    return int(mine.values_list("pk", flat=True).get())


def _take_of_budget(wanted: Wanted, budget_nano: int) -> tuple[int, int] | None:
    """The month's row and what it has left, the new hold included; None for what is in the ledger already."""
    this_month = _month(wanted)
    enough = this_month.filter(spent_nano__lte=budget_nano - max(1, wanted.cost_nano))
    taken = {"spent_nano": F("spent_nano") + wanted.cost_nano}
    if not enough.update(**taken):
        _open_month(wanted.key_id, wanted.now)
        _give_back(Hold.objects.filter(spend__in=this_month), wanted)
        if not enough.update(**taken):
            if wanted.request_id and UsageRecord.objects.filter(request_id=wanted.request_id).exists():
                return None
            raise AccessDenied(NO_BUDGET)
    row = this_month.get()
    return row.pk, budget_nano - row.spent_nano + wanted.cost_nano


def _month(wanted: Wanted) -> QuerySet[MonthlySpend]:
    return MonthlySpend.objects.filter(key_id=wanted.key_id, month=month_of(wanted.now))


def _left(wanted: Wanted) -> int:
    return (wanted.budget_nano or 0) - (_month(wanted).values_list("spent_nano", flat=True).first() or 0)


def _current_budget(wanted: Wanted) -> int | None:
    """The budget as an operator has set it by now; of a key that was deleted, what it was."""
    rows = ApiKey.objects.filter(pk=wanted.key_id).values_list("monthly_budget_nano", flat=True)
    return next(iter(rows), wanted.budget_nano)


def _open_month(key_id: int | None, now: datetime) -> None:
    if not ApiKey.objects.filter(pk=key_id).exists():
        return  # deleted while its last call was running: the ledger keeps its number, but no sum is kept
    MonthlySpend.objects.bulk_create([MonthlySpend(key_id=key_id, month=month_of(now))], ignore_conflicts=True)


def _give_back(holds: QuerySet[Hold], wanted: Wanted) -> None:
    """Free what killed processes hold, and what an earlier attempt at the same charge holds."""
    # A process of the release before leaves `expires_at` empty.
    stale = Q(expires_at__lte=wanted.now) | Q(expires_at=None, created_at__lte=wanted.now - HOLD_LIFETIME)
    if wanted.request_id:
        stale |= Q(request_id=wanted.request_id)
    for row in holds.filter(stale):
        settle(Held(row.pk, row.tokens, row.cost_nano, row.quota_id, row.spend_id, None), tokens=0, cost_nano=0)
