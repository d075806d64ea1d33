"""Access to the voice page, decided here for its views, its socket and its SDP offers alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import QueryDict
from django.http.request import split_domain_port, validate_host

from voiceapp.accounts.auth import Caller, caller_from_user, guest_caller
from voiceapp.accounts.guests import guest_of, guest_of_site
from voiceapp.errors import AccessDenied, NotFound

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


SITE_PARAMETER = "site_token"
"""Query parameter with the token of a page within another site."""


class SignInRequired(AccessDenied):
    """The page is for people who have signed in."""

    def __init__(self) -> None:
        super().__init__("Sign in to talk.")


def may_visit(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether the page opens for this visitor; if not, they sign in first.

    Raises:
        NotFound: the page is switched off.
    """
    _require_page()
    return settings.PUBLIC_PAGE == "guest" or bool(user.is_authenticated)


async def page_caller(user: AbstractBaseUser | AnonymousUser, guest: str) -> Caller:
    """Return the caller on the page: the signed-in person, else the `guest` that a cookie names (empty: none).

    Raises:
        NotFound: the page is switched off.
        SignInRequired: guests may not talk here, or no cookie names one.
        AccessDenied: no active account belongs to the person, or that of all guests is not active.
    """
    if not may_visit(user):
        raise SignInRequired
    if user.is_authenticated:
        return await caller_from_user(user)
    if not guest:
        raise SignInRequired
    return await guest_caller(guest)


async def site_caller(token: str) -> Caller:
    """Return the guest of another site whose page sends this token; who is signed in does not count there.

    Raises:
        NotFound: the page is switched off.
        SignInRequired: the token is forged or too old.
        AccessDenied: the site may not show the page any more.
    """
    _require_page()
    found = guest_of_site(token)
    if found is None:
        raise SignInRequired
    site_id, guest = found
    return await guest_caller(guest, site_id)


async def page_caller_of(scope: Mapping[str, Any]) -> Caller:
    """Return the caller behind an ASGI connection of the page. Raises what `page_caller` and `site_caller` raise."""
    query = QueryDict(scope.get("query_string", b""))
    if SITE_PARAMETER in query:
        return await site_caller(query[SITE_PARAMETER])
    return await page_caller(scope["user"], guest_of(scope["cookies"]))


def require_own_page(scope: Mapping[str, Any]) -> None:
    """Check that an ASGI connection was made by a page of this server: a cookie is its credential, so scheme, host and
    port of its origin have to be our own.

    Raises:
        NotFound: the page is switched off.
        AccessDenied: another origin, no origin, or a host that is not served here.
    """
    _require_page()
    origin, host = _header(scope, b"origin"), _header(scope, b"host")
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        raise AccessDenied("This host name is not served here (ALLOWED_HOSTS).")
    scheme = "https" if scope.get("scheme") in ("wss", "https") else "http"
    if _normal(origin) not in {_normal(f"{scheme}://{host}"), *map(_normal, settings.CSRF_TRUSTED_ORIGINS)}:
        raise AccessDenied("This page may not open a conversation here: its origin is not ours.")


def _require_page() -> None:
    if settings.PUBLIC_PAGE == "off":
        raise NotFound("The page is switched off.")


def _normal(origin: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(origin)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return ("", origin, None)
    return (parts.scheme, (parts.hostname or "").lower(), port)


def _header(scope: Mapping[str, Any], name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope.get("headers", ()) if key.lower() == name), "")
