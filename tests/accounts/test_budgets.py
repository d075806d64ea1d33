"""Free quotas and monthly budgets: nobody overspends, nothing set aside is lost."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from tests.conftest import Member
from voiceapp.accounts.budgets import HOLD_LIFETIME, Wanted, hold, is_free_only, month_of, settle, spend
from voiceapp.accounts.models import ApiKey, Hold, MonthlySpend, Quota
from voiceapp.catalogue.cards import ModelCard
from voiceapp.errors import AccessDenied, Throttled

MIDDLE = datetime(2026, 11, 15, tzinfo=UTC)


def wanted(member: Member, **changes: object) -> Wanted:
    """Ten tokens of the embedding family, held back by the free quota alone."""
    plain = Wanted(
        account_id=member.account.pk,
        family="embedding",
        tokens=10,
        is_free_only=True,
        key_id=member.row.pk,
        budget_nano=None,
        cost_nano=700,
        now=timezone.now(),
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def priced(member: Member, **changes: object) -> Wanted:
    """The same in the middle of a month, held back by a budget of 1,000 nano-dollars alone."""
    return wanted(member, **{"is_free_only": False, "budget_nano": 1000, "now": MIDDLE, **changes})


def test_it_grants_a_million_tokens_for_ninety_days_from_the_first_use(alice: Member) -> None:
    request = wanted(alice)
    hold(request)
    quota = Quota.objects.get()
    assert (quota.granted, quota.used) == (1_000_000, 10)
    assert (quota.first_used_at, quota.expires_at) == (request.now, request.now + timedelta(days=90))


def test_it_takes_back_what_was_not_used(alice: Member) -> None:
    settle(hold(wanted(alice)), tokens=3, cost_nano=0)
    assert Quota.objects.get().used == 3
    assert not Hold.objects.exists()


def test_it_counts_what_was_used_beyond_what_was_held(alice: Member) -> None:
    settle(hold(wanted(alice)), tokens=12, cost_nano=0)
    assert Quota.objects.get().used == 12


def test_it_settles_once(alice: Member) -> None:
    held = hold(wanted(alice))
    settle(held, tokens=0, cost_nano=0)
    settle(held, tokens=0, cost_nano=0)
    assert Quota.objects.get().used == 0


def test_it_grants_the_last_token_and_no_more(alice: Member, bob: Member, charlie: Member, settings: Settings) -> None:
    settings.FREE_QUOTAS = {"embedding": 25, "rerank": 25}
    hold(wanted(alice))
    hold(wanted(bob))
    with pytest.raises(Throttled) as refused:
        hold(wanted(alice))
    assert (refused.value.code, refused.value.http_status) == ("Throttling.AllocationQuota", 429)
    assert refused.value.message == "Free allocated quota exceeded."
    hold(wanted(alice, tokens=5))
    for tokens in (0, 1):
        with pytest.raises(Throttled):
            hold(wanted(alice, tokens=tokens))
    hold(wanted(alice, family="rerank"))
    hold(wanted(charlie))
    assert Quota.objects.get(account=alice.account, family="embedding").used == 25


def test_it_ends_after_ninety_days_and_is_not_renewed(alice: Member) -> None:
    first = wanted(alice)
    settle(hold(first), tokens=1, cost_nano=0)
    hold(dataclasses.replace(first, now=first.now + timedelta(days=90) - timedelta(seconds=1)))
    for later in (timedelta(days=90), timedelta(days=400)):
        with pytest.raises(Throttled):
            hold(dataclasses.replace(first, now=first.now + later))


def test_it_gives_back_what_a_killed_process_held(alice: Member, settings: Settings) -> None:
    settings.FREE_QUOTAS = {"embedding": 10}
    killed = wanted(alice)
    held = hold(killed)
    with pytest.raises(Throttled):
        hold(dataclasses.replace(killed, now=killed.now + HOLD_LIFETIME - timedelta(seconds=1)))
    hold(dataclasses.replace(killed, now=killed.now + HOLD_LIFETIME))
    assert Quota.objects.get().used == 10

    # It was not killed, only slow: what it used counts all the same.
    settle(held, tokens=4, cost_nano=0)
    assert Quota.objects.get().used == 14


def test_it_spends_no_more_than_the_budget_of_the_month(alice: Member, bob: Member) -> None:
    first = hold(priced(alice))
    assert first.left_nano == 1000
    with pytest.raises(AccessDenied, match="budget"):
        hold(priced(alice))
    second = hold(priced(alice, cost_nano=300))
    assert second.left_nano == 300
    with pytest.raises(AccessDenied):
        hold(priced(alice, cost_nano=0))
    hold(priced(bob))

    settle(first, tokens=0, cost_nano=100)
    assert MonthlySpend.objects.get(key=alice.row).spent_nano == 400
    hold(priced(alice, cost_nano=600))


def test_it_begins_every_month_anew(alice: Member) -> None:
    november = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
    hold(priced(alice, now=november, cost_nano=1000))
    with pytest.raises(AccessDenied):
        hold(priced(alice, now=november))
    hold(priced(alice, now=november + timedelta(seconds=1)))
    assert [row.month for row in MonthlySpend.objects.order_by("month")] == ["2026-11", "2026-12"]


def test_it_counts_what_was_spent_before_there_was_a_budget(alice: Member) -> None:
    now = timezone.now()
    spend(alice.row.pk, 400, now)
    spend(alice.row.pk, 400, now)
    assert MonthlySpend.objects.get(month=month_of(now)).spent_nano == 800
    with pytest.raises(AccessDenied):
        hold(priced(alice, now=now))
    hold(priced(alice, now=now, cost_nano=200))


def test_it_gives_back_what_a_killed_process_held_of_a_budget(alice: Member) -> None:
    killed = priced(alice, cost_nano=1000)
    hold(killed)
    hold(dataclasses.replace(killed, now=killed.now + HOLD_LIFETIME))
    assert MonthlySpend.objects.get().spent_nano == 1000


def test_it_takes_nothing_of_the_quota_when_the_budget_does_not_reach(alice: Member) -> None:
    with pytest.raises(AccessDenied):
        hold(wanted(alice, budget_nano=1))
    assert not Quota.objects.exists()
    assert not Hold.objects.exists()


def test_it_settles_a_call_whose_key_was_deleted(alice: Member) -> None:
    held = hold(wanted(alice, budget_nano=1000))
    ApiKey.objects.get(pk=alice.row.pk).delete()
    settle(held, tokens=2, cost_nano=140)
    assert Quota.objects.get().used == 2
    spend(alice.row.pk, 140, timezone.now())
    assert not MonthlySpend.objects.exists()


@pytest.mark.parametrize(
    ("enforced", "model", "expected"),
    [
        ("elsewhere", "inside", False),
        ("elsewhere", "alias", False),
        ("elsewhere", "outside", True),
        ("elsewhere", "nobody-knows", True),
        ("always", "inside", True),
        ("always", "outside", True),
        ("never", "inside", False),
        ("never", "outside", False),
    ],
)
def test_it_holds_back_whom_the_settings_say(
    settings: Settings, enforced: str, model: str, expected: bool, only_models: Callable[..., None]
) -> None:
    settings.QUOTA_ENFORCED = enforced
    only_models(
        ModelCard("inside", "rerank", "x", aliases=("alias",), runs_here=True), ModelCard("outside", "rerank", "x")
    )
    assert is_free_only(model, "rerank") is expected


def test_it_holds_nobody_back_from_a_family_without_a_free_quota(settings: Settings) -> None:
    settings.QUOTA_ENFORCED = "always"
    assert not is_free_only("any", "chat")


@pytest.mark.django_db(transaction=True)
def test_processes_side_by_side_never_overspend(alice: Member, settings: Settings) -> None:
    """Ten threads with connections of their own are to the database what ten processes are."""
    settings.FREE_QUOTAS = {"embedding": 50}
    start = threading.Barrier(10)
    budget_nano = 40 * 70

    def ten_calls() -> list[str]:
        answers = []
        try:
            start.wait()
            for _ in range(10):
                try:
                    held = hold(wanted(alice, tokens=1, cost_nano=70, budget_nano=budget_nano))
                    settle(held, tokens=1, cost_nano=70)
                    answers.append("done")
                except (Throttled, AccessDenied) as refused:
                    answers.append(refused.code)
        finally:
            connection.close()
        return answers

    def all_calls() -> list[str]:
        with ThreadPoolExecutor(10) as threads:
            return [answer for future in [threads.submit(ten_calls) for _ in range(10)] for answer in future.result()]

    answers = Counter(all_calls())
    assert answers == {"done": 40, "AccessDenied": 60}
    assert (Quota.objects.get().used, MonthlySpend.objects.get().spent_nano) == (40, budget_nano)

    budget_nano = 1000 * 70
    answers = Counter(all_calls())
    assert answers == {"done": 10, "Throttling.AllocationQuota": 90}
    assert (Quota.objects.get().used, MonthlySpend.objects.get().spent_nano) == (50, 50 * 70)
    assert not Hold.objects.exists()
