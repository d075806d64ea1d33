"""Accounts, workspaces and keys in the operators' site."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from tests.conftest import Member
from tests.realtime.test_models import begin
from tests.web import words_of
from voiceapp.accounts.auth import caller_from_bearer
from voiceapp.accounts.keys import parse
from voiceapp.accounts.models import Account, ApiKey, Membership, MonthlySpend, Workspace

KEY = re.compile(r"sk-[A-Za-z0-9_-]{43}[A-Za-z0-9]{6}")
KEYS = "admin:accounts_apikey_changelist"
ADD_KEY = "admin:accounts_apikey_add"


def wanted(member: Member, **changes: object) -> dict[str, object]:
    """What the form for a new key sends."""
    form = {"workspace": member.workspace.pk, "name": "Kitchen", "scopes": ["realtime"], "task_priority": 0}
    return {**form, "lasts": "", "expires_at_0": "", "expires_at_1": "", **changes}


def test_the_only_workspace_is_chosen_for_a_new_key(desk: Client, alice: Member) -> None:
    Account.objects.create(name="Guests").workspaces.create(name="Guests")
    for chosen in (alice.workspace.pk, None):
        assert desk.get(reverse(ADD_KEY)).context["adminform"].form.initial["workspace"] == chosen
        alice.account.workspaces.create(name=f"Beside {chosen}")


def ask_to_revoke(desk: Client, *rows: ApiKey, **more: str) -> str:
    chosen = {"action": "revoke", "_selected_action": [row.pk for row in rows]}
    return desk.post(reverse(KEYS), {**chosen, **more}, follow=True).content.decode()


def revoke(desk: Client, *rows: ApiKey) -> str:
    return ask_to_revoke(desk, *rows, confirmed="yes")


def test_it_shows_a_new_key_once_on_a_page_that_nothing_keeps(desk: Client, alice: Member) -> None:
    page = desk.post(reverse(ADD_KEY), wanted(alice))
    assert page.status_code == 200
    assert "no-store" in page.headers["Cache-Control"]
    (key,) = set(KEY.findall(page.content.decode()))
    row = ApiKey.objects.get(name="Kitchen")
    assert bytes(row.digest) == parse(key)
    assert row.scopes == ["realtime"]
    assert row.expires_at is None

    for address in (reverse(KEYS), reverse("admin:accounts_apikey_change", args=[row.pk]), reverse("admin:index")):
        later = desk.get(address).content.decode()
        assert not KEY.search(later)
        assert row.digest.hex() not in later
    assert row.shown in desk.get(reverse(KEYS)).content.decode()
    assert not KEY.search(str(list(LogEntry.objects.values())))


def test_reloading_the_page_with_the_key_makes_no_other(desk: Client, alice: Member) -> None:
    desk.post(reverse(ADD_KEY), wanted(alice))
    again = desk.post(reverse(ADD_KEY), wanted(alice), follow=True).content.decode()
    assert "was sent already" in again
    assert not KEY.search(again)
    assert ApiKey.objects.filter(name="Kitchen").count() == 1
    assert KEY.search(desk.post(reverse(ADD_KEY), wanted(alice, name="Kitchen 2")).content.decode())


def test_it_makes_a_key_that_expires_and_is_not_for_operators(desk: Client, alice: Member) -> None:
    form = desk.get(reverse(ADD_KEY)).context["adminform"].form
    assert form.initial.get("lasts", form.fields["lasts"].initial) == 90
    assert form["scopes"].initial == ["realtime", "inference", "tasks", "webhooks"]
    desk.post(reverse(ADD_KEY), wanted(alice, lasts="30"))
    expires_at = ApiKey.objects.get(name="Kitchen").expires_at
    assert expires_at is not None
    assert abs(expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("spent", "expected"),
    [
        (0, "2.00 of 2.00 $, lasts at this pace"),
        (1_000_000_000, "1.00 of 2.00 $, used up on 2026-11-21 at this pace"),
        (500_000_000, "1.50 of 2.00 $, lasts at this pace"),
        (3_000_000_000, "0.00 of 2.00 $, used up"),
    ],
)
def test_it_says_how_long_a_budget_lasts(
    desk: Client, alice: Member, monkeypatch: pytest.MonkeyPatch, spent: int, expected: str
) -> None:
    noon = datetime(2026, 11, 11, 0, tzinfo=UTC)
    ApiKey.objects.update(monthly_budget_nano=2_000_000_000, created_at=noon - timedelta(days=90))
    MonthlySpend.objects.create(key=alice.row, month="2026-11", spent_nano=spent)
    monkeypatch.setattr(timezone, "now", lambda: noon)
    assert expected in words_of(desk.get(reverse(KEYS)).content.decode())


@pytest.mark.parametrize(
    "wrong",
    [
        {"lasts": "31"},
        {"scopes": []},
        {"scopes": ["everything"]},
        {"name": ""},
        {"workspace": 999},
    ],
)
def test_it_makes_no_key_of_a_wrong_form(desk: Client, alice: Member, wrong: dict[str, object]) -> None:
    page = desk.post(reverse(ADD_KEY), wanted(alice, **wrong))
    assert page.context["adminform"].form.errors
    assert not KEY.search(page.content.decode())
    assert ApiKey.objects.count() == 1


def key_page(member: Member) -> str:
    return reverse("admin:accounts_apikey_change", args=[member.row.pk])


def test_it_changes_what_a_key_may_do_but_not_whose_it_is(desk: Client, alice: Member, charlie: Member) -> None:
    changes = wanted(
        charlie, name="Office", scopes=["inference"], allowed_models="voice\nespeak-ng", monthly_budget_nano="2.5"
    )
    assert desk.post(key_page(alice), changes).status_code == 302
    alice.row.refresh_from_db()
    assert (alice.row.name, alice.row.scopes) == ("Office", ["inference"])
    assert alice.row.allowed_models == ["voice", "espeak-ng"]
    assert alice.row.monthly_budget_nano == 2_500_000_000
    assert alice.row.workspace == alice.workspace
    assert bytes(alice.row.digest) == parse(alice.key)

    page = desk.get(key_page(alice))
    assert page.context["adminform"].form["monthly_budget_nano"].value() == "2.50"
    assert page.context["adminform"].form["allowed_models"].value() == "voice\nespeak-ng"
    assert "2.50 of 2.50 $" in page.content.decode()


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"allowed_models": "voice nonsense"}, "no model nonsense"),
        ({"monthly_budget_nano": "-1"}, "greater than or equal to 0"),
        ({"monthly_budget_nano": "0.0000001"}, "no more than 6 decimal places"),
        ({"task_priority": "101"}, "less than or equal to 100"),
        ({"expires_at_0": "2020-01-01", "expires_at_1": "12:00:00"}, "passed already"),
        ({"scopes": []}, "required"),
    ],
)
def test_it_changes_nothing_by_a_wrong_form(
    desk: Client, alice: Member, wrong: dict[str, object], complaint: str
) -> None:
    page = desk.post(key_page(alice), wanted(alice, **wrong))
    assert complaint in page.content.decode()
    alice.row.refresh_from_db()
    assert alice.row.name == "alice's laptop"


def test_it_changes_nothing_of_a_key_that_is_no_more_use(desk: Client, alice: Member, bob: Member) -> None:
    revoke(desk, alice.row)
    now = timezone.now()
    ApiKey.objects.filter(pk=bob.row.pk).update(created_at=now - timedelta(days=2), expires_at=now - timedelta(days=1))
    for member in (alice, bob):
        assert desk.get(key_page(member)).status_code == 200
        assert desk.post(key_page(member), wanted(member, name="Again")).status_code == 403
        member.row.refresh_from_db()
        assert member.row.name != "Again"


def test_it_applies_a_change_at_once(desk: Client, alice: Member) -> None:
    scopes = async_to_sync(caller_from_bearer)(alice.authorization).scopes
    assert "realtime" in scopes
    desk.post(key_page(alice), wanted(alice, scopes=["inference"]))
    assert async_to_sync(caller_from_bearer)(alice.authorization).scopes == {"inference"}


def test_it_revokes_the_chosen_keys_and_keeps_the_first_time(desk: Client, alice: Member, bob: Member) -> None:
    assert "Revoked 1 key. Conversations opened with them end" in revoke(desk, alice.row)
    alice.row.refresh_from_db()
    bob.row.refresh_from_db()
    first = alice.row.revoked_at
    assert first is not None
    assert bob.row.revoked_at is None

    assert "Revoked 1 key." in revoke(desk, alice.row, bob.row)
    alice.row.refresh_from_db()
    assert alice.row.revoked_at == first
    assert "Revoked." in LogEntry.objects.filter(object_id=str(bob.row.pk)).get().get_change_message()
    assert "were revoked before" in revoke(desk, alice.row)


def words(page: str) -> str:
    """The text of a page on one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_it_asks_before_it_revokes_and_says_what_stops(desk: Client, alice: Member, bob: Member) -> None:
    used = timezone.now() - timedelta(hours=3)
    ApiKey.objects.filter(pk=alice.row.pk).update(last_used_at=used)
    for state in ({}, {}, {"ended_at": timezone.now(), "close_code": 1000}):
        begin(alice, **state)
    begin(bob)

    asked = words(ask_to_revoke(desk, alice.row))
    assert "Revoke this key?" in asked
    assert "2 open conversations end within 5 seconds" in asked
    assert "programs that use it are refused" in asked
    last = date_format(timezone.localtime(used), "DATETIME_FORMAT")
    assert f"of {alice.workspace}, {alice.row.shown}: 2 open conversations, last used {last}" in asked
    both = words(ask_to_revoke(desk, alice.row, bob.row))
    assert "Revoke these 2 keys?" in both
    assert "3 open conversations end" in both
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()

    page = desk.get(key_page(alice)).content.decode()
    address = reverse("admin:accounts_key_revoke", args=[alice.row.pk])
    assert f'href="{address}"' in page
    assert words(desk.get(address).content.decode()) == asked
    revoke(desk, alice.row)
    assert address not in desk.get(key_page(alice)).content.decode()
    assert desk.get(address).status_code == 404


def test_it_says_that_nothing_is_open(desk: Client, alice: Member) -> None:
    assert "there are none now" in words(ask_to_revoke(desk, alice.row))


def test_it_lets_nobody_revoke_who_may_only_look(alice: Member, bob: Member) -> None:
    bob.user.is_staff = True
    bob.user.save()
    bob.user.user_permissions.add(Permission.objects.get(codename="view_apikey"))
    client = Client()
    client.force_login(bob.user)
    assert client.get(reverse(KEYS)).status_code == 200
    assert client.get(reverse(ADD_KEY)).status_code == 403
    revoke(client, alice.row)
    assert client.get(reverse("admin:accounts_key_revoke", args=[alice.row.pk])).status_code == 403
    alice.row.refresh_from_db()
    assert alice.row.revoked_at is None


def test_it_deletes_a_key_only_after_it_was_revoked(desk: Client, alice: Member) -> None:
    address = reverse("admin:accounts_apikey_delete", args=[alice.row.pk])
    assert desk.post(address, {"post": "yes"}).status_code == 403
    revoke(desk, alice.row)
    assert desk.post(address, {"post": "yes"}).status_code == 302
    assert not ApiKey.objects.exists()


def test_it_deletes_an_account_with_all_that_is_its_own(desk: Client, alice: Member, charlie: Member) -> None:
    revoke(desk, alice.row)
    address = reverse("admin:accounts_account_delete", args=[alice.account.pk])
    assert desk.post(address, {"post": "yes"}).status_code == 302
    assert list(Account.objects.all()) == [charlie.account]
    assert list(Workspace.objects.all()) == [charlie.workspace]


def test_it_gives_a_new_account_a_workspace(desk: Client, alice: Member) -> None:
    inlines = {f"{name}-{kind}_FORMS": "0" for name in ("workspaces", "memberships") for kind in ("TOTAL", "INITIAL")}
    people = {"memberships-TOTAL_FORMS": "1", "memberships-0-user": alice.user.pk}
    desk.post(reverse("admin:accounts_account_add"), {"name": "New", "is_active": "on", **inlines, **people})
    account = Account.objects.get(name="New")
    assert [workspace.name for workspace in account.workspaces.all()] == ["Default"]
    assert Membership.objects.get(account=account).user == alice.user


@pytest.mark.parametrize("name", ["account", "workspace", "apikey"])
def test_it_lists_and_searches(desk: Client, alice: Member, charlie: Member, name: str) -> None:
    address = reverse(f"admin:accounts_{name}_changelist")
    assert "Zenith" in desk.get(address).content.decode()
    found = desk.get(address, {"q": "Acme"})
    assert found.status_code == 200
    assert found.context["cl"].result_count == 1


def test_it_filters_keys_by_state(desk: Client, alice: Member, bob: Member, charlie: Member) -> None:
    now = timezone.now()
    ApiKey.objects.filter(pk=bob.row.pk).update(created_at=now - timedelta(days=2), expires_at=now - timedelta(days=1))
    ApiKey.objects.filter(pk=charlie.row.pk).update(revoked_at=now)
    for state, expected in (("usable", alice), ("expired", bob), ("revoked", charlie)):
        page = desk.get(reverse(KEYS), {"state": state})
        assert list(page.context["cl"].result_list) == [expected.row]
        assert f" {state} " in words_of(page.content.decode())
    assert desk.get(reverse(KEYS)).context["cl"].result_count == 3


def test_what_is_not_deleted_yet_says_what_to_do_first(desk: Client, alice: Member) -> None:
    chosen = {"action": "delete_selected", "_selected_action": [alice.row.pk]}
    selected = desk.post(reverse(KEYS), chosen, follow=True).content.decode()
    alone = desk.get(reverse("admin:accounts_apikey_delete", args=[alice.row.pk]))
    account = desk.get(reverse("admin:accounts_account_delete", args=[alice.account.pk])).content.decode()
    assert "Revoke it first" in selected
    assert alone.status_code == 403 or "Revoke it first" in alone.content.decode()
    assert "untick “Active”" in account
    assert all("have permission" not in page for page in (selected, account))
    revoke(desk, alice.row)
    assert "Are you sure" in desk.post(reverse(KEYS), chosen, follow=True).content.decode()
