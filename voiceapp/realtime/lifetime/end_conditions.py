"""Conditions that end a session from outside: time, the stop of the server, revoked credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from django.conf import settings

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.seats import seats
from voiceapp.drain import drain_event
from voiceapp.realtime.close_codes import KEY_REVOKED, LIFETIME_OVER, NORMAL, TEMPORARY_KEY_OVER
from voiceapp.realtime.doors import Door
from voiceapp.realtime.lifetime.revocation import Credentials, credentials_of, revocation_watch

GOODBYE_S = 2.0
"""Lead of a session's own end before the stopping server would end it."""
LAST_REPLIES_S = 20.0
"""Time at the end of DRAIN_S in which conversations are told to end. Before that they go on."""


STOPPING = "The server is stopping; connect again."


class SessionEnded(Exception):
    """A session, or the connection that carries several, is over."""

    def __init__(self, code: int, reason: str, *, error: str | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.error = error
        """Code of an error event to say before the end, where the caller or an engine is at fault."""


@dataclass(frozen=True, slots=True)
class Revocation:
    """The end of a session whose credentials were revoked."""

    code: int
    reason: str
    error: str
    """Code of the error event."""

    def ended(self) -> SessionEnded:
        return SessionEnded(self.code, self.reason, error=self.error)


KEY_LOST = Revocation(KEY_REVOKED, "The API key of this session is no longer valid.", "invalid_api_key")
LOGIN_LOST = Revocation(KEY_REVOKED, "You are no longer signed in, or may not talk here any more.", "signed_out")
TEMPORARY_KEY_LOST = Revocation(
    TEMPORARY_KEY_OVER,
    "The temporary key of this session has expired, or its API key is no longer valid.",
    "temporary_key_expired",
)


@dataclass(frozen=True, slots=True)
class EndConditions:
    lifetime_s: float
    drain_s: float
    """Time that a response in progress may go on while the server stops."""
    stopping: Callable[[], Awaitable[None]]
    """Returns when the server stops and conversations go on no longer."""
    revoked: Callable[[], Awaitable[None]]
    """Returns when the caller's key may not be used any more, or a person's login."""
    revocation: Revocation = KEY_LOST
    """End of the session in that case."""


def end_conditions(
    caller: Caller, session_key: str, *, lifetime_s: float, ends_with_temporary_key: bool
) -> EndConditions:
    """Those of a caller's session; `session_key` is that of the login by which they are known, or empty."""
    expire = ends_with_temporary_key or settings.TEMPORARY_KEYS_END_SESSIONS
    credentials = credentials_of(caller, session_key, expire=expire)
    return EndConditions(
        lifetime_s=lifetime_s,
        drain_s=max(0.0, min(settings.DRAIN_S, LAST_REPLIES_S) - GOODBYE_S),
        stopping=wait_stopping,
        revoked=lambda: revocation_watch().wait(credentials),
        revocation=_revocation(credentials),
    )


async def wait_stopping() -> None:
    """Return when the server stops and conversations are to end."""
    await drain_event().wait_begun()
    await asyncio.sleep(max(0.0, settings.DRAIN_S - LAST_REPLIES_S))


async def connection_ended(caller: Caller, door: Door) -> SessionEnded:
    """Return the end of a connection that carries sessions one after the other, when something outside ends it.

    Its caller was looked up once, so it lasts no longer than a session.
    """
    limits = end_conditions(
        caller, "", lifetime_s=seats().lifetime_s(caller), ends_with_temporary_key=door.ends_with_temporary_key
    )
    ends = {
        asyncio.ensure_future(limits.stopping()): SessionEnded(NORMAL, STOPPING),
        asyncio.ensure_future(limits.revoked()): limits.revocation.ended(),
        asyncio.ensure_future(asyncio.sleep(limits.lifetime_s)): SessionEnded(
            LIFETIME_OVER, "The connection has reached its longest duration; connect again."
        ),
    }
    try:
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return ends[done.pop()]
    finally:
        for waiting in ends:
            waiting.cancel()


def _revocation(credentials: Credentials) -> Revocation:
    if credentials.expires_at is not None:
        return TEMPORARY_KEY_LOST
    return LOGIN_LOST if credentials.key_id is None else KEY_LOST
