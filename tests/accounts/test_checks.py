"""Settings that contradict themselves are named before anybody calls."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from pytest_django import Settings

from voiceapp.accounts.checks import check_limits, check_prices, check_who_may_talk, check_who_pays
from voiceapp.catalogue.cards import ModelCard


def found() -> list[str]:
    return [str(message.id) for message in (*check_who_may_talk(), *check_limits(), *check_who_pays(), *check_prices())]


def test_it_finds_nothing_wrong_with_the_defaults() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("PUBLIC_PAGE", "everybody", "voiceapp.accounts.E001"),
        ("GUEST_SESSIONS_TOTAL", 1000, "voiceapp.accounts.W001"),
        ("MAX_SESSIONS_PER_ACCOUNT", 0, "voiceapp.accounts.E002"),
        ("GUEST_SESSION_S", -1, "voiceapp.accounts.E002"),
        ("TRANSCRIPT_DAYS", -1, "voiceapp.accounts.E003"),
        ("RATE_LIMITS", {"default": "20/1", "chat": "fast"}, "voiceapp.accounts.E005"),
        ("QUOTA_ENFORCED", "sometimes", "voiceapp.accounts.E006"),
        ("LEDGER_PRICES", {"whisper-2": {"audio_seconds": 1}}, "voiceapp.accounts.E008"),
        ("LEDGER_PRICES", {"asr": {"seconds": 1}}, "voiceapp.accounts.E009"),
        ("LEDGER_PRICES", {"asr": {"audio_seconds": 0.5}}, "voiceapp.accounts.E010"),
    ],
)
def test_it_names_a_setting_that_cannot_be(settings: Settings, name: str, value: object, expected: str) -> None:
    settings.PUBLIC_PAGE = "guest"
    setattr(settings, name, value)
    assert found() == [expected]


def test_it_misses_the_proxies_that_are_to_be_trusted(settings: Settings) -> None:
    settings.TRUST_PROXY, settings.TRUSTED_PROXY_COUNT = True, 0
    assert found() == ["voiceapp.accounts.E004"]


@pytest.mark.parametrize(
    ("prices", "is_direct", "expected"),
    [
        ({"audio_seconds": 1}, True, ["voiceapp.accounts.I012"]),
        ({"audio_seconds": 1, "conversations": 0}, True, []),
        ({"audio_seconds": 1}, False, []),
        ({}, True, []),
    ],
)
def test_it_misses_a_price_of_calls_that_are_passed_on(
    settings: Settings, only_models: Callable[..., None], prices: dict[str, int], is_direct: bool, expected: list[str]
) -> None:
    engine = "voiceapp.engines.upstream.realtime.provider.RelayedRealtime"
    only_models(ModelCard("upstream", "realtime", engine, service="upstream", forwards_offers=is_direct))
    settings.LEDGER_PRICES = {"realtime": prices}
    assert found() == expected


def test_it_misses_what_talks_to_redis(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:6379/0"
    assert found() == []
    # What an installation without requirements-redis.txt has on its path.
    monkeypatch.delitem(sys.modules, "redis", raising=False)
    monkeypatch.setattr(sys, "path", [])
    importlib.invalidate_caches()
    assert found() == ["voiceapp.accounts.E007"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"tts": {"characters": 15000}}', "15000"),
        ('{"tts": 15000}', "ImproperlyConfigured: LEDGER_PRICES is JSON"),
    ],
)
def test_prices_are_read_from_the_environment(text: str, expected: str) -> None:
    program = (
        "from django.conf import settings; prices = settings.LEDGER_PRICES; "
        "print(prices.get('tts', {}).get('characters'), prices['rerank'])"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "voiceapp.settings", "DEBUG": "1", "LEDGER_PRICES": text}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )
    assert expected in done.stdout + done.stderr
    assert ("{'input_tokens': 100}" in done.stdout) == (done.returncode == 0)
