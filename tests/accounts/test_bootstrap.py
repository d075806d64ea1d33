"""`manage.py bootstrap`."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django import Settings

from tests.prepared import environment_of, prepare
from tests.serving import Process, manage
from voiceapp.accounts.keys import parse
from voiceapp.accounts.models import Account, ApiKey, Membership

KEY = re.compile(r"(?<!\S)sk-\S+")
"""Other parts of a key, or a password, may happen to hold its beginning."""


@pytest.fixture(autouse=True)
def _development(settings: Settings, db: None, tmp_path: Path) -> None:
    settings.DEBUG = True
    settings.DEVELOPMENT_MARK = tmp_path / "development"


def bootstrap() -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("bootstrap", stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_it_makes_an_account_a_key_and_a_login_that_work() -> None:
    out, _ = bootstrap()
    (key,) = KEY.findall(out)
    row = ApiKey.objects.get(digest=parse(key))
    (password,) = re.findall(r"admin / (\S+)", out)
    user = authenticate(username="admin", password=password)
    assert isinstance(user, User)
    assert user.is_superuser
    assert Membership.objects.get().account == row.workspace.account == Account.objects.get()
    assert "http://localhost:8000/" in out


def test_it_says_and_does_nothing_the_second_time() -> None:
    bootstrap()
    before = list(ApiKey.objects.values()), list(User.objects.values()), list(Account.objects.values())
    assert bootstrap() == ("", "")
    assert before == (list(ApiKey.objects.values()), list(User.objects.values()), list(Account.objects.values()))


def test_it_takes_no_account_of_the_guests() -> None:
    Account.objects.create(name="Guests")
    assert "sk-" in bootstrap()[0]


def test_it_leaves_an_operator_who_can_sign_in_alone(operator: User) -> None:
    out, _ = bootstrap()
    assert "sk-" in out
    assert "admin /" not in out
    assert list(User.objects.all()) == [operator]


def test_it_makes_nothing_outside_development_and_says_what_to_run(settings: Settings) -> None:
    settings.DEBUG = False
    out, err = bootstrap()
    assert out == ""
    assert "createsuperuser" in err
    assert "createkey --account" in err
    assert not Account.objects.exists()
    assert not User.objects.exists()


def test_it_prints_once_when_four_start_at_the_same_time(tmp_path: Path) -> None:
    prepare(tmp_path)
    started = [Process("bootstrap", environment=environment_of(tmp_path)) for _ in range(4)]
    assert [process.wait() for process in started] == [0] * 4, [process.log for process in started]
    assert sorted(len(KEY.findall(process.log)) for process in started) == [0, 0, 0, 1]


def in_a_plain_shell(folder: Path, *command: str, **environment: str) -> tuple[int, str]:
    """A management command of the installation in this folder, without the variables that `make run` sets."""
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    clean |= {"VAR_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "voiceapp.settings", **environment}
    return manage(*command, environment=clean)


def test_commands_need_no_variables_after_a_start_in_development_until_a_secret_ends_it(tmp_path: Path) -> None:
    assert "SECRET_KEY is not set" in in_a_plain_shell(tmp_path, "createkey", "--account", "Local")[1]
    assert in_a_plain_shell(tmp_path, "bootstrap", DEBUG="1")[0] == 0

    status, log = in_a_plain_shell(tmp_path, "createkey", "--account", "Local")

    assert status == 0, log
    assert KEY.fullmatch(log.split()[-1]), log
    program = "from django.conf import settings; print(settings.DEBUG)"
    _, log = in_a_plain_shell(tmp_path, "shell", "-v0", "-c", program, SECRET_KEY="long-and-random", HTTPS="0")
    assert log.strip() == "False"
