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


def site_token(site_id: int) -> str:
    """Return what a page within another site sends in place of the cookie, which browsers keep from such pages."""
    return str(_site_signer().sign(f"{site_id}.{new_guest()}"))


def guest_of_site(token: str) -> tuple[int, str] | None:
    """Return the site and the guest that a token names; None if it is forged, or older than a login may be."""
    try:
        site_id, _, guest = _site_signer().unsign(token, max_age=settings.SESSION_COOKIE_AGE).partition(".")
    except BadSignature:
        return None
    return int(site_id), guest


def _site_signer() -> TimestampSigner:
    return TimestampSigner(salt="voiceapp.site-guest")


def _signer() -> TimestampSigner:
    return TimestampSigner(salt="voiceapp.guest")
