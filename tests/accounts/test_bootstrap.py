"""`manage.py bootstrap`."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django import Settings

from tests.prepared import environment_of, prepare
from voiceapp.accounts.keys import parse
from voiceapp.accounts.models import Account, ApiKey, Membership

ROOT = Path(__file__).resolve().parent.parent.parent
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
    started = [
        subprocess.Popen(
            [sys.executable, "manage.py", "bootstrap"],
            cwd=ROOT,
            env=environment_of(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    results = [(process.communicate(timeout=120), process.returncode) for process in started]
    assert [code for _, code in results] == [0] * 4, results
    assert sorted(len(KEY.findall(out)) for (out, _), _ in results) == [0, 0, 0, 1]


def in_a_plain_shell(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A management command of the installation in this folder, without the variables that `make run` sets."""
    clean = {name: value for name, value in os.environ.items() if name not in ("DEBUG", "SECRET_KEY")}
    clean |= {"VAR_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "voiceapp.settings", **environment}
    arguments = [sys.executable, "manage.py", *command]
    return subprocess.run(arguments, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=120)


def test_commands_need_no_variables_after_a_start_in_development_until_a_secret_ends_it(tmp_path: Path) -> None:
    before = in_a_plain_shell(tmp_path, "createkey", "--account", "Local")
    assert "SECRET_KEY is not set" in before.stderr
    assert in_a_plain_shell(tmp_path, "bootstrap", DEBUG="1").returncode == 0

    made = in_a_plain_shell(tmp_path, "createkey", "--account", "Local")

    assert (made.returncode, len(KEY.findall(made.stdout))) == (0, 1), made.stderr
    program = "from django.conf import settings; print(settings.DEBUG)"
    told = in_a_plain_shell(tmp_path, "shell", "-v0", "-c", program, SECRET_KEY="long-and-random", HTTPS="0")
    assert told.stdout.strip() == "False", told.stderr
