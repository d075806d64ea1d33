"""The page of what was used."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.accounts.test_ledger_admin import NOON, use
from tests.conftest import Member
from tests.realtime.test_models import begin
from tests.web import words_of
from voiceapp.accounts.models import ApiKey, MonthlySpend, Quota, UsageRecord
from voiceapp.realtime.models import Turn

NOW = datetime(2026, 11, 21, 15, 30, tzinfo=UTC)


@pytest.fixture
def used(alice: Member, bob: Member, charlie: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two days of three people."""
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    use(alice, 1_000_000)
    use(alice, 500_000, model="gte-rerank")
    use(bob, 250_000, at=NOON + timedelta(days=1))
    use(charlie, 10, at=NOON + timedelta(days=1))
    use(alice, 10_000_000, at=NOON - timedelta(days=60))
    dictated = UsageRecord.objects.create(
        account=alice.account, workspace=alice.workspace, key=alice.row, caller=str(alice.row), operation="speech",
        family="asr", model="whisper", request_id="r0", unit="audio_seconds", quantity=90, unit_price_nano=0,
        cost_nano=0, created_at=NOON,
    )  # fmt: skip
    session = begin(alice, model="gte-rerank", started_at=NOON)
    more = {"session": session, "status": "completed", "started_at": dictated.created_at, "is_spoken": True}
    for ordinal, latency in enumerate((300, 500, None), 1):
        Turn.objects.create(ordinal=ordinal, first_audio_ms=latency, **more)


def rows(desk: Client, **query: str) -> list[list[str]]:
    answer = desk.get(reverse("admin:usage"), {"csv": "1", **query})
    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(answer.content.decode())))


HEAD = ["Requests", "Tokens in"]
AUDIO = "Audio (min)"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            {},
            [
                ["time", *HEAD, AUDIO, "Voice to voice (ms)", "Cost ($)"],
                ["2026-11-21", "2", "250010", "0.0", "–", "0.025001"],
                ["2026-11-20", "2", "1500000", "1.5", "400", "0.15"],
            ],
        ),
        ({"days": "1"}, [["time", *HEAD, "Cost ($)"], ["2026-11-21 12", "2", "250010", "0.025001"]]),
        (
            {"by": "model"},
            [
                ["model", *HEAD, AUDIO, "Voice to voice (ms)", "Cost ($)"],
                ["qwen3-rerank", "3", "1250010", "0.0", "–", "0.125001"],
                ["gte-rerank", "1", "500000", "0.0", "400", "0.05"],
                ["whisper", "1", "0", "1.5", "–", "0.00"],
            ],
        ),
        (
            {"by": "account", "model": "qwen3-rerank"},
            [["account", *HEAD, "Cost ($)"], ["Acme", "2", "1250000", "0.125"], ["Zenith", "1", "10", "0.000001"]],
        ),
        ({"by": "agent", "account": "Zenith"}, [["agent", *HEAD, "Cost ($)"], ["", "1", "10", "0.000001"]]),
        ({"by": "key", "model": "nonsense"}, [["key", "Requests", "Cost ($)"]]),
        ({"by": "nonsense", "days": "nonsense", "model": "gte-rerank", "operation": "speech"},
         [["time", "Requests", "Cost ($)"]]),
    ],
)  # fmt: skip
def test_it_sums_what_was_used(desk: Client, used: None, query: dict[str, str], expected: list[list[str]]) -> None:
    assert rows(desk, **query) == expected
    assert desk.get(reverse("admin:usage"), query).status_code == 200


def test_it_draws_every_day_and_says_what_is_left(desk: Client, used: None, alice: Member) -> None:
    ApiKey.objects.filter(pk=alice.row.pk).update(monthly_budget_nano=10**9, created_at=NOW - timedelta(days=90))
    MonthlySpend.objects.create(key=alice.row, month="2026-11", spent_nano=6 * 10**8)
    Quota.objects.create(
        account=alice.account, family="rerank", granted=100, used=10,
        first_used_at=NOW - timedelta(days=10), expires_at=NOW + timedelta(days=10),
    )  # fmt: skip
    page = desk.get(reverse("admin:usage"), {"days": "7", "account": "Acme"})
    charts = {chart.title: [bar.height for bar in chart.bars] for chart in page.context["charts"]}
    assert charts == {
        "Tokens in": [0, 0, 0, 0, 0, 60, 10],
        "Audio (min)": [0, 0, 0, 0, 0, 60, 0],
        "Voice to voice (ms)": [0, 0, 0, 0, 0, 60, 0],
        "Cost ($)": [0, 0, 0, 0, 0, 60, 10],
    }
    words = words_of(page.content.decode())
    assert "Only the account Acme . Show all" in words
    assert "0.40 of 1.00 $, lasts at this pace" in words
    assert "90, lasts at this pace" in words


def test_only_those_who_may_look_at_the_ledger_see_it(alice: Member, used: None) -> None:
    alice.user.is_staff = True
    alice.user.save()
    client = Client()
    client.force_login(alice.user)
    assert client.get(reverse("admin:usage")).status_code == 403
    alice.user.user_permissions.add(Permission.objects.get(codename="view_usagerecord"))
    assert "Zenith" not in str(rows(client, by="account"))
    assert "Acme" in str(rows(client, by="account"))
