"""A walk through the whole operators' site, as a superuser, as a member of one account, and as those without rights."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from tests.accounts.test_ledger_admin import use
from tests.conftest import Member
from tests.realtime.test_models import begin
from tests.tasks.conftest import write
from tests.web import words_of
from voiceapp.accounts.models import ApiKey, GuestSite, MintedKey, Quota, UsageRecord
from voiceapp.agents.models import Agent
from voiceapp.http.admin import LiveAdmin
from voiceapp.operators import dashboard
from voiceapp.realtime.models import Turn
from voiceapp.tasks.models import StorageUse
from voiceapp.webhooks import store
from voiceapp.webhooks.events import Event, EventKind, publish
from voiceapp.webhooks.models import Delivery

SHARED = {Agent, Group}
"""Rows that belong to no account."""
DENIED = (302, 403, 404)
EXTRA = [reverse("admin:accounts_usagerecord_export"), f"{reverse('admin:usage')}?by=account"]
"""Pages that belong to no table."""


def fill(member: Member) -> list[Model]:
    """Write a row of every kind in a member's name."""
    name = member.user.username
    session = begin(member, model=f"{name}-realtime")
    Turn.objects.create(session=session, ordinal=1, status="completed", is_spoken=True, first_audio_ms=400)
    task = write(member, model_name=f"{name}-tts")
    use(member, 1_000_000, model=f"{name}-rerank", at=timezone.now())
    url = f"https://{name}.example"
    endpoint, _ = store.create(member.workspace.pk, url=url, events=[EventKind.SESSION_CREATED])
    publish(member.workspace.pk, [Event(EventKind.SESSION_CREATED, session.pk)])
    site = GuestSite.objects.create(origin=f"https://{name}.site.example", account=member.account)
    quota = Quota.objects.create(account=member.account, family="rerank", granted=10, expires_at=timezone.now())
    storage = StorageUse.objects.create(account=member.account, result_bytes=1)
    entry = LogEntry.objects.create(user=member.user, object_repr=f"{name}'s", action_flag=2, object_id="1")
    theirs = [member.account, member.workspace, member.row, member.user]
    usage = UsageRecord.objects.get(model=f"{name}-rerank")
    soon = timezone.now() + timedelta(hours=1)
    minted = MintedKey.objects.create(key=member.row, realtime_only=True, expires_at=soon)
    return [session, task, usage, minted, endpoint, Delivery.objects.latest("pk"), site, quota, storage, entry, *theirs]


def pages(row: Model) -> list[str]:
    """Addresses of the pages of a row."""
    name = f"{row._meta.app_label}_{row._meta.model_name}"
    return [reverse(f"admin:{name}_{page}", args=[quote(row.pk)]) for page in ("change", "history", "delete")]


LISTS = {
    table: reverse(f"admin:{table._meta.app_label}_{table._meta.model_name}_changelist")
    for table in admin.site._registry
}


@pytest.mark.parametrize("walker", ["superuser", "member", "without permissions", "without staff status"])
def test_everybody_finds_their_own_and_nothing_else(alice: Member, charlie: Member, walker: str) -> None:
    own, others = fill(alice), fill(charlie)
    assert {type(row) for row in own} == set(LISTS) - SHARED, "a table that the walk does not know"
    alice.user.is_superuser = walker == "superuser"
    alice.user.is_staff = walker != "without staff status"
    alice.user.save()
    if walker in ("member", "without staff status"):
        alice.user.user_permissions.set(Permission.objects.exclude(codename="see_every_account"))
    client = Client()
    client.force_login(alice.user)
    may_look, sees_all = walker in ("superuser", "member"), walker == "superuser"

    for address in [*LISTS.values(), *EXTRA]:
        answer = client.get(address)
        assert (answer.status_code == 200) == may_look, address
        if may_look:
            assert is_about(answer, charlie) == (sees_all and address not in (LISTS[Agent], LISTS[Group])), address
    for row in own:
        assert client.get(pages(row)[0]).status_code in ((200,) if may_look else DENIED), row
    for row in others:
        for address in pages(row):
            assert client.get(address).status_code in ((200, 403) if sees_all else DENIED), address
            assert sees_all or not is_about(client.get(address, follow=True), charlie), address
    for add in ("accounts_apikey_add", "webhooks_webhookendpoint_add", "accounts_workspace_add"):
        assert is_about(client.get(reverse(f"admin:{add}")), charlie) == sees_all, add
    assert is_about(client.get(reverse("admin:search"), {"s": "zenith", "extended": "1"}), charlie) == sees_all

    request = RequestFactory().get("/")
    request.user = alice.user
    for shown in admin.site._registry.values():
        if isinstance(shown, LiveAdmin) and may_look:
            state = str(shown.state(shown.get_queryset(request), ""))
            assert any(f"{row.pk}" in state for row in own if isinstance(row, shown.model))
            assert any(f"({row.pk!r}" in state for row in others if isinstance(row, shown.model)) == sees_all
    figures = {figure.name: figure.value for figure in dashboard.figures(timezone.now(), alice.user)}
    assert figures["Open conversations"] == {"superuser": "2", "member": "1"}.get(walker, "1")
    assert figures["Spent today"] == ("0.20 $" if sees_all else "0.10 $")


def test_a_member_gives_no_rights_over_the_server(alice: Member, bob: Member, charlie: Member) -> None:
    alice.user.is_staff = bob.user.is_superuser = True
    alice.user.save()
    bob.user.save()
    alice.user.user_permissions.set(Permission.objects.exclude(codename="see_every_account"))
    client = Client()
    client.force_login(alice.user)

    add = reverse("admin:accounts_apikey_add")
    form = {"name": "Phone", "task_priority": 0, "lasts": "", "is_front": "on", "monthly_budget_nano": "9"}
    for workspace, scopes in ((alice.workspace, ["admin"]), (charlie.workspace, ["realtime"])):
        assert client.post(add, {**form, "workspace": workspace.pk, "scopes": scopes}).context["adminform"].form.errors
    client.post(add, {**form, "workspace": alice.workspace.pk, "scopes": ["realtime"]})
    made = ApiKey.objects.get(name="Phone")
    assert (made.scopes, made.is_front, made.monthly_budget_nano) == (["realtime"], False, None)

    person = {"username": "alice", "is_active": "on", "is_staff": "on", "is_superuser": "on", "first_name": "Al"}
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    client.post(reverse("admin:auth_user_change", args=[alice.user.pk]), {**person, **joined})
    alice.user.refresh_from_db()
    assert (alice.user.first_name, alice.user.is_superuser) == ("Al", False)
    passwords = {"password1": "quite-a-long-one", "password2": "quite-a-long-one"}
    change = reverse("admin:auth_user_password_change", args=[bob.user.pk])
    assert client.post(change, passwords).status_code == 403
    assert User.objects.get(pk=bob.user.pk).check_password("bob-password")


def is_about(answer: Any, member: Member) -> bool:
    """Return whether a page or file has words of a member or their account."""
    page = words_of(answer.content.decode())
    return any(word in page for word in (member.account.name, member.user.username, str(member.row.shown)))
