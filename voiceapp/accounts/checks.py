"""System checks: settings of accounts and limits that contradict themselves."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

AT_LEAST_ONE = (
    "MAX_SESSIONS",
    "MAX_SESSIONS_PER_ACCOUNT",
    "SESSION_LIFETIME_S",
    "GUEST_SESSIONS_PER_ADDRESS",
    "GUEST_SESSIONS_PER_HOUR",
    "GUEST_SESSION_S",
    "GUEST_SESSIONS_TOTAL",
)


@register(Tags.security)
def check_who_may_talk(**_: Any) -> list[CheckMessage]:
    """`PUBLIC_PAGE` names one of its three ways, and guests leave room for others."""
    found: list[CheckMessage] = []
    if settings.PUBLIC_PAGE not in ("off", "login", "guest"):
        found.append(
            Error(
                f"PUBLIC_PAGE is {settings.PUBLIC_PAGE!r}, which means nothing.",
                hint="Set it to off, login (signed-in people) or guest (everybody, within the guest limits).",
                id="voiceapp.accounts.E001",
            )
        )
    if settings.PUBLIC_PAGE == "guest" and settings.GUEST_SESSIONS_TOTAL >= settings.MAX_SESSIONS:
        found.append(
            Warning(
                "Guests can take every seat: GUEST_SESSIONS_TOTAL is not below MAX_SESSIONS.",
                hint="Lower GUEST_SESSIONS_TOTAL, or raise MAX_SESSIONS.",
                id="voiceapp.accounts.W001",
            )
        )
    return found


@register(Tags.compatibility)
def check_limits(**_: Any) -> list[CheckMessage]:
    """Every limit lets at least one conversation begin and last."""
    found: list[CheckMessage] = [
        Error(
            f"{name} is {getattr(settings, name)}: nobody could talk.",
            hint="Set it to 1 or more. PUBLIC_PAGE=login is how to keep guests out.",
            id="voiceapp.accounts.E002",
        )
        for name in AT_LEAST_ONE
        if getattr(settings, name) < 1
    ]
    if settings.TRANSCRIPT_DAYS < 0:
        found.append(
            Error(
                f"TRANSCRIPT_DAYS is {settings.TRANSCRIPT_DAYS}, a number of days that cannot be.",
                hint="Set it to 0 to keep no words at all.",
                id="voiceapp.accounts.E003",
            )
        )
    if settings.TRUST_PROXY and settings.TRUSTED_PROXY_COUNT < 1:
        found.append(
            Error(
                "TRUST_PROXY is on, but TRUSTED_PROXY_COUNT says that there is no proxy.",
                hint="Set TRUSTED_PROXY_COUNT to how many proxies of yours a request passes, or TRUST_PROXY=0.",
                id="voiceapp.accounts.E004",
            )
        )
    return found
