"""The ledger and the quotas in the operators' site."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from tests.conftest import Member
from voiceapp.accounts import ledger_admin
from voiceapp.accounts.models import Quota, UsageRecord
from voiceapp.formats import dollars

LEDGER = "admin:accounts_usagerecord_changelist"
EXPORT = "admin:accounts_usagerecord_export"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def use(member: Member, quantity: int, *, model: str = "qwen3-rerank", at: datetime = NOON, caller: str = "") -> None:
    UsageRecord.objects.create(
        account=member.account,
        workspace=member.workspace,
        key=member.row,
        caller=caller or str(member.row),
        operation="rerank",
        family="rerank",
        model=model,
        request_id=f"r{UsageRecord.objects.count()}",
        unit="input_tokens",
        quantity=quantity,
        unit_price_nano=100,
        cost_nano=100 * quantity,
        created_at=at,
    )


@pytest.fixture
def used(alice: Member, bob: Member, charlie: Member) -> None:
    """Two days of three people."""
    use(alice, 1_000_000)
    use(alice, 500_000, model="gte-rerank")
    use(bob, 250_000, at=NOON + timedelta(days=1))
    use(charlie, 10, at=NOON + timedelta(days=1))


@pytest.mark.parametrize(
    ("nano", "text"),
    [(0, "0.00"), (70, "0.00000007"), (100_000_000, "0.10"), (2_500_000_000, "2.50"), (1_234_567_890, "1.23456789")],
)
def test_it_shows_nano_dollars_as_dollars(nano: int, text: str) -> None:
    assert dollars(nano) == text


def exported(desk: Client, **query: str) -> list[dict[str, str]]:
    answer = desk.get(reverse(EXPORT), query)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/csv")
    assert "attachment" in answer.headers["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_it_exports_what_the_filters_leave(desk: Client, used: None, alice: Member) -> None:
    rows = exported(desk)
    assert len(rows) == 4
    assert sum(int(row["cost_nano"]) for row in rows) == 175_001_000
    (row,) = exported(desk, model="gte-rerank")
    assert row == {
        "created_at": "2026-11-20T12:00:00+00:00",
        "account": "Acme",
        "workspace": "Acme / Default",
        "key_id": str(alice.row.pk),
        "caller": str(alice.row),
        "operation": "rerank",
        "family": "rerank",
        "model": "gte-rerank",
        "agent": "",
        "request_id": "r1",
        "unit": "input_tokens",
        "quantity": "500000",
        "unit_price_nano": "100",
        "cost_nano": "50000000",
    }
    query = "?model=gte-rerank&amp;q=r1"
    assert reverse(EXPORT) + query in desk.get(reverse(LEDGER) + query.replace("&amp;", "&")).content.decode()
    assert len(exported(desk, account__id__exact=str(alice.account.pk), q="r0")) == 1


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_it_exports_no_formulas(desk: Client, alice: Member, name: str) -> None:
    use(alice, 1, caller=name)
    assert exported(desk)[0]["caller"] == f"'{name}"


def test_it_exports_no_more_than_fits_into_memory(desk: Client, used: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_admin, "MOST_EXPORTED", 3)
    answer = desk.get(reverse(EXPORT), {"family": "rerank"}, follow=True)
    assert answer.redirect_chain == [(f"{reverse(LEDGER)}?family=rerank", 302)]
    assert "Narrow the filters" in answer.content.decode()
    assert len(exported(desk, model="gte-rerank")) == 1


def test_nobody_changes_the_ledger(desk: Client, used: None) -> None:
    line = UsageRecord.objects.get(request_id="r1")
    address = reverse("admin:accounts_usagerecord_change", args=[line.pk])
    page = desk.get(address).content.decode()
    assert "0.0000001" in page
    assert "0.05" in page
    assert desk.post(address, {"quantity": 1}).status_code == 403
    assert desk.get(reverse("admin:accounts_usagerecord_add")).status_code == 403
    assert desk.post(reverse("admin:accounts_usagerecord_delete", args=[line.pk]), {"post": "yes"}).status_code == 403
    assert UsageRecord.objects.count() == 4


def test_it_is_shown_to_those_who_may_look(alice: Member, used: None) -> None:
    alice.user.is_staff = True
    alice.user.save()
    client = Client()
    client.force_login(alice.user)
    assert client.get(reverse(LEDGER)).status_code == client.get(reverse(EXPORT)).status_code == 403
    alice.user.user_permissions.add(Permission.objects.get(codename="view_usagerecord"))
    assert client.get(reverse(LEDGER)).status_code == client.get(reverse(EXPORT)).status_code == 200


def test_it_lists_the_line_of_a_deleted_key(desk: Client, used: None, alice: Member) -> None:
    name, pk = str(alice.row), alice.row.pk
    alice.row.delete()
    assert escape(name) in desk.get(reverse(LEDGER)).content.decode()
    assert {row["key_id"] for row in exported(desk, caller=name)} == {str(pk)}


def test_an_operator_grants_more_but_does_not_say_what_was_used(desk: Client, alice: Member) -> None:
    end = timezone.now().replace(microsecond=0) + timedelta(days=90)
    quota = Quota.objects.create(account=alice.account, family="rerank", granted=10, used=7, expires_at=end)
    assert "Acme" in desk.get(reverse("admin:accounts_quota_changelist")).content.decode()
    address = reverse("admin:accounts_quota_change", args=[quota.pk])
    later = end + timedelta(days=1)
    form = {"granted": 50, "used": 0, "expires_at_0": f"{later:%Y-%m-%d}", "expires_at_1": f"{later:%H:%M:%S}"}
    assert desk.post(address, form).status_code == 302
    quota.refresh_from_db()
    assert (quota.granted, quota.used, quota.expires_at) == (50, 7, later)
    assert desk.get(reverse("admin:accounts_quota_add")).status_code == 403
