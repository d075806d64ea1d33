"""The close codes of sessions, and what they mean in words for operators."""

from __future__ import annotations

NORMAL = 1000
ABANDONED = 1006
"""RFC 6455, 7.1.5: the connection was lost, and no close arrived."""
NO_CODE = 1005
"""No code: the connection was closed without one."""
CALLER_LEFT = "The caller left."
"""Close reason of every end that the caller chose; the code is then theirs."""
CONNECTION_LOST = "The connection was lost."

LIFETIME_OVER = 4000
INTERNAL_ERROR = 4011
SERVER_STOPPING = 4012
GOES_ON_ELSEWHERE = 4013
"""Close code of a connection, never of a session: the session goes on over another connection."""
KEY_REVOKED = 4401
ENDED_BY_OPERATOR = 4403
BUDGET_USED_UP = 4402
FLOOD = 4408
TEMPORARY_KEY_OVER = 4410
NO_SEAT = 4429
UNAVAILABLE = 4503

MEANINGS = {
    NORMAL: "finished",
    1001: "caller left: page closed or reloaded",
    1002: "caller broke the WebSocket protocol",
    NO_CODE: "caller left without a code",
    ABANDONED: "connection lost",
    1007: "caller sent text that is not UTF-8",
    1009: "message too large",
    1011: "server error",
    LIFETIME_OVER: "longest duration reached",
    INTERNAL_ERROR: "server error",
    SERVER_STOPPING: "server stopped",
    KEY_REVOKED: "key revoked or signed out",
    ENDED_BY_OPERATOR: "ended by an operator",
    BUDGET_USED_UP: "budget of the key used up",
    FLOOD: "caller sent too much or read too slowly",
    TEMPORARY_KEY_OVER: "temporary key expired, or its key revoked",
    NO_SEAT: "no seat was free when the caller connected",
    UNAVAILABLE: "model not available",
}
"""Meanings by code: RFC 6455, 7.4.1, below 4000; from there on what this server ends sessions with."""


def left_with(code: object) -> tuple[int, str]:
    """Close code and reason of a session whose caller left with this code, or None."""
    found = int(str(code)) if code else ABANDONED
    return found, CONNECTION_LOST if found == ABANDONED else CALLER_LEFT


def in_words(code: int | None, reason: str = "") -> str:
    """Return a close code in words, with the number; the reason stands in for codes that others chose."""
    if code is None:
        return ""
    meaning = MEANINGS.get(code, "")
    if code >= 3000 and reason == CALLER_LEFT:
        meaning = "caller left with a code of its own"  # RFC 6455, 7.4.2: ours mean nothing in a caller's mouth
    if code == ABANDONED and reason not in ("", CALLER_LEFT, CONNECTION_LOST):
        meaning = reason.rstrip(".")
    return f"{meaning or reason.rstrip('.') or 'unknown'} ({code})"
