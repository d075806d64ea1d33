"""Who may use the page: which visitors, and from which origins."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.accounts.page import SignInRequired, may_visit, page_caller, require_own_page
from voiceapp.errors import AccessDenied, NotFound

NOBODY = AnonymousUser()


async def test_people_talk_in_their_own_name_wherever_there_is_a_page(alice: Member, settings: Settings) -> None:
    for settings.PUBLIC_PAGE in ("login", "guest"):
        caller = await page_caller(alice.user, "a guest's cookie")
        assert (caller.user_id, caller.account_id, caller.is_guest) == (alice.user.pk, alice.account.pk, False)


async def test_guests_talk_where_the_page_is_for_guests(db: None, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    assert (await page_caller(NOBODY, "a guest's cookie")).is_guest
    with pytest.raises(SignInRequired):
        await page_caller(NOBODY, "")
    settings.PUBLIC_PAGE = "login"
    with pytest.raises(SignInRequired, match="Sign in to talk"):
        await page_caller(NOBODY, "a guest's cookie")


async def test_a_page_that_is_switched_off_is_there_for_nobody(alice: Member, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "off"
    for user in (alice.user, NOBODY):
        with pytest.raises(NotFound):
            await page_caller(user, "a guest's cookie")
        with pytest.raises(NotFound):
            may_visit(user)
    with pytest.raises(NotFound):
        require_own_page(scope("http://voice.example"))


def test_who_need_not_sign_in_first(settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    assert may_visit(NOBODY)
    settings.PUBLIC_PAGE = "login"
    assert not may_visit(NOBODY)


def scope(origin: str | None, host: str = "voice.example", scheme: str = "ws") -> dict[str, Any]:
    headers = [(b"host", host.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    return {"type": "websocket", "scheme": scheme, "headers": headers}


@pytest.fixture
def hosts(settings: Settings) -> Settings:
    settings.ALLOWED_HOSTS = ["voice.example", "[::1]"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://front.example", "https://*.wild.example"]
    return settings


@pytest.mark.parametrize(
    ("origin", "host", "scheme"),
    [
        ("http://voice.example", "voice.example", "ws"),
        ("http://VOICE.example:80", "voice.example", "ws"),
        ("https://voice.example", "voice.example", "wss"),
        ("https://voice.example", "voice.example:443", "wss"),
        ("http://voice.example:8000", "voice.example:8000", "ws"),
        ("http://[::1]:8000", "[::1]:8000", "ws"),
        ("https://front.example", "voice.example", "ws"),
    ],
)
def test_our_own_origin_may_talk(hosts: Settings, origin: str, host: str, scheme: str) -> None:
    require_own_page(scope(origin, host, scheme))


@pytest.mark.parametrize(
    ("origin", "host", "scheme"),
    [
        (None, "voice.example", "ws"),
        ("", "voice.example", "ws"),
        ("null", "voice.example", "ws"),
        ("http://voice.example", "voice.example", "wss"),
        ("https://voice.example", "voice.example", "ws"),
        ("http://voice.example:8001", "voice.example:8000", "ws"),
        ("http://voice.example.evil.example", "voice.example", "ws"),
        ("http://evil.example", "voice.example", "ws"),
        ("http://voice.example@evil.example", "voice.example", "ws"),
        ("http://voice.example:port", "voice.example", "ws"),
        ("http://evil.example", "evil.example", "ws"),
        ("http://evil.example", "", "ws"),
        ("https://any.wild.example", "voice.example", "ws"),
        ("http://front.example", "voice.example", "ws"),
    ],
)
def test_no_other_origin_may_talk(hosts: Settings, origin: str | None, host: str, scheme: str) -> None:
    with pytest.raises(AccessDenied):
        require_own_page(scope(origin, host, scheme))
