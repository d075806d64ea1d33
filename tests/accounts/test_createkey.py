"""`manage.py createkey`."""

from __future__ import annotations

import io
import os
import pty
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.conftest import Member
from voiceapp.accounts.keys import parse
from voiceapp.accounts.models import Account, ApiKey

pytestmark = pytest.mark.django_db


def createkey(*arguments: str) -> tuple[str, str]:
    """What it wrote to standard output and to standard error."""
    out, err = io.StringIO(), io.StringIO()
    call_command("createkey", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_it_prints_the_key_alone() -> None:
    out, err = createkey("--account", "New")
    key = out.removesuffix("\n")
    row = ApiKey.objects.get(digest=parse(key))
    assert row.workspace.account.name == "New"
    assert row.expires_at is None
    assert key not in err
    assert row.shown in err


def test_it_asks_for_a_name_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, terminal = pty.openpty()
    monkeypatch.setattr("sys.stdin", os.fdopen(terminal))
    os.write(keyboard, b"Telephone\n\n")
    _, err = createkey("--account", "New")
    assert ApiKey.objects.get().name == "Telephone"
    assert "Where will the key be used?" in err
    with pytest.raises(CommandError, match="1 to 100"):
        createkey("--account", "New")
    os.close(keyboard)


def test_it_uses_the_account_that_is_there(alice: Member) -> None:
    out, _ = createkey("--account", "Acme", "--name", "Kitchen")
    row = ApiKey.objects.get(digest=parse(out.strip()))
    assert (row.workspace, row.name) == (alice.workspace, "Kitchen")
    assert Account.objects.count() == 1


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("45m", timedelta(minutes=45)),
        ("2W", timedelta(weeks=2)),
    ],
)
def test_it_makes_keys_that_expire(span: str, expected: timedelta) -> None:
    out, err = createkey("--account", "New", "--expires-in", span)
    row = ApiKey.objects.get(digest=parse(out.strip()))
    assert row.expires_at is not None
    assert abs(row.expires_at - timezone.now() - expected) < timedelta(seconds=30)
    assert "expires 20" in err


@pytest.mark.parametrize("span", ["", "0d", "30", "d", "-1d", "1.5h", "999999w", "9999999s", "٣d"])
def test_it_refuses_what_is_no_time_span(span: str) -> None:
    with pytest.raises(CommandError):
        createkey("--account", "New", f"--expires-in={span}")
    assert not Account.objects.exists()


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "Guests"])
def test_it_refuses_names_that_no_account_may_have(name: str) -> None:
    with pytest.raises(CommandError):
        createkey("--account", name)


def test_it_makes_no_key_that_would_be_refused(alice: Member) -> None:
    Account.objects.update(is_active=False)
    with pytest.raises(CommandError, match="not active"):
        createkey("--account", "Acme")
    assert ApiKey.objects.count() == 1
