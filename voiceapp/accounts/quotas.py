"""Free quotas and monthly budgets: set aside before a call, settled after it, never overspent by calls in parallel.

Every step is one transaction of conditional UPDATEs, which hold on SQLite and PostgreSQL alike: of many callers asking
for the last of something, exactly as many get it as it is enough for. What is set aside leaves a `Hold`. Whoever
deletes the hold gives back the difference, once; a hold that outlived every call is given back by the next caller who
would be refused otherwise. Functions here touch rows and run on the bookkeeper's thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet

from voiceapp.accounts.cards import runs_inside
from voiceapp.accounts.models import ApiKey, Hold, MonthlySpend, Quota
from voiceapp.errors import AccessDenied, Throttled

ALLOCATION = "Throttling.AllocationQuota"
QUOTA_RETRY_S = 3600
"""What Retry-After says of a quota: nothing makes room but an operator."""
HOLD_LIFETIME = timedelta(minutes=30)
"""Six times as long as the longest request; a call that lasts even longer is still billed in full."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a call wants set aside."""

    account_id: int
    family: str
    tokens: int
    """Of the family's free quota; 0 asks only whether some of it is left."""
    is_free_only: bool
    """Whether the free quota holds this call back."""
    key_id: int | None
    budget_nano: int | None
    """The key's monthly budget in nano-dollars; None knows no limit."""
    cost_nano: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """What was set aside."""

    hold_id: int
    tokens: int
    cost_nano: int
    quota_id: int | None
    spend_id: int | None
    left_nano: int | None
    """What the budget had left, this hold included; None without a budget."""


def is_free_only(model: str, family: str) -> bool:
    """Whether calls of a model end with the family's free quota, by `QUOTA_ENFORCED`."""
    if family not in settings.FREE_QUOTAS or settings.QUOTA_ENFORCED == "never":
        return False
    return settings.QUOTA_ENFORCED == "always" or not runs_inside(model, family)


def hold(wanted: Wanted) -> Held:
    """Set aside what a call may use at most.

    Raises:
        Throttled: `Throttling.AllocationQuota`, if the free quota is used up or over.
        AccessDenied: if the key's budget for this month does not reach.
    """
    with transaction.atomic():
        quota_id = _take_of_quota(wanted) if wanted.is_free_only else None
        spend_id, left_nano = (None, None) if wanted.budget_nano is None else _take_of_budget(wanted)
        row = Hold.objects.create(
            quota_id=quota_id,
            tokens=wanted.tokens if quota_id else 0,
            spend_id=spend_id,
            cost_nano=wanted.cost_nano if spend_id else 0,
            created_at=wanted.now,
        )
    return Held(row.pk, row.tokens, row.cost_nano, quota_id, spend_id, left_nano)


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
        _give_back_stale(Hold.objects.filter(quota__in=mine), wanted.now)
        if not enough.update(**taken):
            raise Throttled("Free allocated quota exceeded.", code=ALLOCATION, retry_after_s=QUOTA_RETRY_S)
    return int(mine.values_list("pk", flat=True).get())


def _take_of_budget(wanted: Wanted) -> tuple[int, int]:
    budget = wanted.budget_nano or 0
    this_month = MonthlySpend.objects.filter(key_id=wanted.key_id, month=month_of(wanted.now))
    enough = this_month.filter(spent_nano__lte=budget - max(1, wanted.cost_nano))
    taken = {"spent_nano": F("spent_nano") + wanted.cost_nano}
    if not enough.update(**taken):
        _open_month(wanted.key_id, wanted.now)
        _give_back_stale(Hold.objects.filter(spend__in=this_month), wanted.now)
        if not enough.update(**taken):
            raise AccessDenied("This API key's budget for this month does not allow the call. Ask an operator.")
    row = this_month.get()
    return row.pk, budget - row.spent_nano + wanted.cost_nano


def _open_month(key_id: int | None, now: datetime) -> None:
    if not ApiKey.objects.filter(pk=key_id).exists():
        return  # deleted while its last call was running: the ledger keeps its number, nobody its spending
    MonthlySpend.objects.bulk_create([MonthlySpend(key_id=key_id, month=month_of(now))], ignore_conflicts=True)


def _give_back_stale(holds: QuerySet[Hold], now: datetime) -> None:
    for row in holds.filter(created_at__lte=now - HOLD_LIFETIME):
        settle(Held(row.pk, row.tokens, row.cost_nano, row.quota_id, row.spend_id, None), tokens=0, cost_nano=0)
