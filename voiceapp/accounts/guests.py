"""Guests of the public page, told apart by a signed cookie: a visitor who only looks leaves no row behind."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpResponseBase

COOKIE = "guest"


def guest_of(cookies: Mapping[str, str]) -> str:
    """Return the guest that the cookies name; empty without one, if forged, or older than a login may be."""
    try:
        return str(_signer().unsign(cookies.get(COOKIE, ""), max_age=settings.SESSION_COOKIE_AGE))
    except BadSignature:
        return ""


def new_guest() -> str:
    """A name that cannot be guessed."""
    return secrets.token_urlsafe(16)


def remember_guest(response: HttpResponseBase, guest: str) -> None:
    """Have the browser send this guest's cookie from now on, for as long as a login lasts."""
    response.set_cookie(
        COOKIE,
        _signer().sign(guest),
        max_age=settings.SESSION_COOKIE_AGE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _signer() -> TimestampSigner:
    return TimestampSigner(salt="voiceapp.guest")
