"""The audit of the operators' site."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from tests.conftest import Member
from tests.web import words_of

AUDIT = "admin:admin_logentry_changelist"


def test_it_shows_changes_and_sign_ins_and_nobody_removes_them(desk: Client, alice: Member) -> None:
    alice.user.set_password("a-long-password")
    alice.user.save()
    visitor = Client()
    for password in ("wrong", "a-long-password"):
        visitor.post(reverse("login"), {"username": alice.user.username, "password": password})
    visitor.post(reverse("login"), {"username": "someone else", "password": "wrong"})
    desk.post(reverse("admin:accounts_account_change", args=[alice.account.pk]), {"name": "=Acme"})
    page = desk.get(reverse(AUDIT))
    assert [row.get_change_message() for row in page.context["cl"].result_list][-3:-1] == [
        "Signed in from 127.0.0.1.",
        "Refused to sign in from 127.0.0.1.",
    ]
    assert "Signed in from 127.0.0.1." in words_of(page.content.decode())
    entry = LogEntry.objects.first()
    assert entry is not None
    assert desk.post(reverse("admin:admin_logentry_delete", args=[entry.pk]), {"post": "yes"}).status_code == 403
    assert desk.get(reverse("admin:admin_logentry_add")).status_code == 403

    chosen = {"action": "download", "_selected_action": [row.pk for row in LogEntry.objects.all()]}
    lines = desk.post(reverse(AUDIT), chosen).content.decode().splitlines()
    assert lines[0] == "action_time,user,content_type,object_repr,did"
    assert len(lines) == 1 + LogEntry.objects.count()
    assert "wrong" not in "".join(lines)
