"""Guessing passwords is slow; signing in is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.accounts.redis import RedisServer
from voiceapp.accounts.throttle import FAILURES_PER_ADDRESS, LoginAttempt
from voiceapp.errors import Throttled


def fail(times: int, address: str = "192.0.2.1", name: str = "operator") -> None:
    for _ in range(times):
        LoginAttempt(address, name).begin()


def test_it_refuses_the_sixth_attempt() -> None:
    fail(5)
    with pytest.raises(Throttled, match="15 minutes") as refused:
        fail(1)
    assert refused.value.retry_after_s == 900


def test_it_counts_an_ipv6_network_as_one_address() -> None:
    fail(5, address="2001:db8::1")
    with pytest.raises(Throttled):
        fail(1, address="2001:db8::2")


@pytest.mark.parametrize("name", ["OPERATOR", "operator", "ｏｐｅｒａｔｏｒ"])
def test_it_sees_through_another_spelling_of_a_name(name: str) -> None:
    fail(5)
    with pytest.raises(Throttled):
        fail(1, name=name)


def test_it_leaves_other_names_and_other_addresses_alone() -> None:
    fail(5)
    fail(5, name="alice")
    fail(5, address="192.0.2.2")


def test_it_forgives_after_a_success() -> None:
    fail(4)
    attempt = LoginAttempt("192.0.2.1", "operator")
    attempt.begin()
    attempt.succeeded()
    fail(5)


def test_it_never_tires_of_somebody_who_signs_in() -> None:
    for _ in range(FAILURES_PER_ADDRESS + 10):
        attempt = LoginAttempt("192.0.2.1", "operator")
        attempt.begin()
        attempt.succeeded()


def test_it_stops_one_password_tried_with_many_names() -> None:
    for number in range(FAILURES_PER_ADDRESS):
        fail(1, name=f"name{number}")
    with pytest.raises(Throttled):
        fail(1, name="another")


def sign_in(client: Client, password: str, address: str = "192.0.2.1") -> str | None:
    """What the page complains about; None when it let us in."""
    form = {"username": "operator", "password": password, "next": reverse("admin:index")}
    response = client.post(reverse("login"), form, REMOTE_ADDR=address)
    if response.status_code == 302:
        return None
    return str(response.context["form"].non_field_errors()[0])


def test_it_refuses_even_the_right_password_on_a_page_after_five_failures(
    operator: User, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client()
    for _ in range(5):
        assert "Too many" not in str(sign_in(client, "wrong"))
    assert "Too many failed attempts" in str(sign_in(client, "operator-password"))
    assert sign_in(client, "operator-password", address="192.0.2.2") is None
    Client().post(reverse("login"), {"username": "a-password", "password": "wrong"}, REMOTE_ADDR="192.0.2.3")
    wrong = "sign-in refused, address=192.0.2.1 name=operator reason=invalid_login"
    late = "sign-in refused, address=192.0.2.1 name=operator reason=Throttling.RateQuota"
    told = [record.message for record in caplog.records if record.name == "voiceapp.pages.login"]
    assert told == [*[wrong] * 5, late, "sign-in refused, address=192.0.2.3 reason=invalid_login"]


def test_it_signs_an_operator_in_after_a_typing_error(operator: User) -> None:
    client = Client()
    assert sign_in(client, "wrong") is not None
    assert sign_in(client, "operator-password") is None
    assert client.get(reverse("admin:index")).status_code == 200


PROGRAM = """
import django
django.setup()
from voiceapp.accounts.throttle import LoginAttempt
from voiceapp.errors import Throttled
try:
    for number in range(9):
        LoginAttempt("192.0.2.1", "operator").begin()
        print(number)
        {after}
except Throttled:
    pass
"""


def tried(redis: RedisServer, after: str = "") -> int:
    """How often a process of its own may try."""
    variables = {"DJANGO_SETTINGS_MODULE": "voiceapp.settings", "DEBUG": "1", "REDIS_URL": redis.url}
    program = [sys.executable, "-c", PROGRAM.format(after=after)]
    done = subprocess.run(program, env=os.environ | variables, capture_output=True, text=True, timeout=120)
    assert not done.stderr
    return len(done.stdout.split())


def test_processes_count_together_in_redis_and_alone_without_it(tmp_path: Path) -> None:
    redis = RedisServer(tmp_path)
    redis.start()
    try:
        assert tried(redis, after="if number == 2: break") == 3
        assert tried(redis) == 2
        redis.stop()
        assert tried(redis) == 5
    finally:
        redis.stop()
