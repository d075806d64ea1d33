"""What may end a session from outside: time, the stop of the server, credentials that are revoked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from django.conf import settings

from voiceapp.accounts.auth import Caller
from voiceapp.drain import drain_event
from voiceapp.realtime.close_codes import KEY_REVOKED, TEMPORARY_KEY_OVER
from voiceapp.realtime.revocation import Credentials, credentials_of, revocation_watch

GOODBYE_S = 2.0
"""How long before the stopping server's patience ends a session ends itself."""


@dataclass(frozen=True, slots=True)
class Revocation:
    """How a session ends whose credentials were revoked."""

    code: int
    reason: str
    error: str
    """Code of the error event."""


KEY_LOST = Revocation(KEY_REVOKED, "The API key of this session is no longer valid.", "invalid_api_key")
LOGIN_LOST = Revocation(KEY_REVOKED, "You are no longer signed in, or may not talk here any more.", "signed_out")
TEMPORARY_KEY_LOST = Revocation(
    TEMPORARY_KEY_OVER,
    "The temporary key of this session has expired, or its API key is no longer valid.",
    "temporary_key_expired",
)


@dataclass(frozen=True, slots=True)
class EndConditions:
    """What may end a conversation from outside."""

    lifetime_s: float
    drain_s: float
    """How long an answer in progress may go on while the server stops."""
    stopping: Callable[[], Awaitable[None]]
    """Returns when the server begins to stop."""
    revoked: Callable[[], Awaitable[None]]
    """Returns when the caller's key may not be used any more, or a person's login."""
    revocation: Revocation = KEY_LOST
    """How the session ends then."""


def end_conditions(
    caller: Caller, session_key: str, *, lifetime_s: float, ends_with_temporary_key: bool
) -> EndConditions:
    """Those of a caller's session; `session_key` is that of the login by which they are known, or empty."""
    expire = ends_with_temporary_key or settings.TEMPORARY_KEYS_END_SESSIONS
    credentials = credentials_of(caller, session_key, expire=expire)
    return EndConditions(
        lifetime_s=lifetime_s,
        drain_s=max(0.0, settings.DRAIN_S - GOODBYE_S),
        stopping=drain_event().wait_begun,
        revoked=lambda: revocation_watch().wait(credentials),
        revocation=_revocation(credentials),
    )


def _revocation(credentials: Credentials) -> Revocation:
    if credentials.expires_at is not None:
        return TEMPORARY_KEY_LOST
    return LOGIN_LOST if credentials.key_id is None else KEY_LOST
