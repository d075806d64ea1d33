"""System checks: settings of accounts and limits that contradict themselves."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register

from voiceapp.accounts.ledger import UNITS, prices_of
from voiceapp.accounts.rates import Rate
from voiceapp.catalogue.lookup import catalogue

FAMILIES = frozenset({"chat", "embedding", "rerank", "asr", "tts", "image", "video", "realtime"})

AT_LEAST_ONE = (
    "MAX_SESSIONS",
    "MAX_SESSIONS_PER_ACCOUNT",
    "SESSION_LIFETIME_S",
    "GUEST_SESSIONS_PER_ADDRESS",
    "GUEST_SESSIONS_PER_HOUR",
    "GUEST_SESSION_S",
    "GUEST_SESSIONS_TOTAL",
    "MAX_PENDING_OFFERS",
    "MAX_PENDING_OFFERS_PER_ACCOUNT",
    "MAX_PENDING_OFFERS_PER_ADDRESS",
)


@register(Tags.security)
def check_who_may_talk(**_: Any) -> Iterator[CheckMessage]:
    """`PUBLIC_PAGE` names one of its three ways, and guests leave room for others."""
    if settings.PUBLIC_PAGE not in ("off", "login", "guest"):
        yield Error(
            f"PUBLIC_PAGE is {settings.PUBLIC_PAGE!r}, which means nothing.",
            hint="Set it to off, login (signed-in people) or guest (everybody, within the guest limits).",
            id="voiceapp.accounts.E001",
        )
    if settings.PUBLIC_PAGE == "guest" and settings.GUEST_SESSIONS_TOTAL >= settings.MAX_SESSIONS:
        yield Warning(
            "Guests can take every seat: GUEST_SESSIONS_TOTAL is not below MAX_SESSIONS.",
            hint="Lower GUEST_SESSIONS_TOTAL, or raise MAX_SESSIONS.",
            id="voiceapp.accounts.W001",
        )


@register(Tags.compatibility)
def check_limits(**_: Any) -> Iterator[CheckMessage]:
    """Every limit lets at least one conversation begin and last."""
    for name in AT_LEAST_ONE:
        if getattr(settings, name) < 1:
            yield Error(
                f"{name} is {getattr(settings, name)}: no session could begin.",
                hint="Set it to 1 or more. PUBLIC_PAGE=login is how to keep guests out.",
                id="voiceapp.accounts.E002",
            )
    if settings.TRANSCRIPT_DAYS < 0:
        yield Error(
            f"TRANSCRIPT_DAYS is {settings.TRANSCRIPT_DAYS}, a number of days that cannot be.",
            hint="Set it to 0 to keep no words at all.",
            id="voiceapp.accounts.E003",
        )
    if settings.TRUST_PROXY and settings.TRUSTED_PROXY_COUNT < 1:
        yield Error(
            "TRUST_PROXY is on, but TRUSTED_PROXY_COUNT says that there is no proxy.",
            hint="Set TRUSTED_PROXY_COUNT to how many proxies of yours a request passes, or TRUST_PROXY=0.",
            id="voiceapp.accounts.E004",
        )


@register(Tags.compatibility)
def check_who_pays(**_: Any) -> Iterator[CheckMessage]:
    """Rates and `QUOTA_ENFORCED` have known values, and Redis can be reached."""
    for operation, text in settings.RATE_LIMITS.items():
        try:
            Rate.parse(text)
        except ValueError:
            yield Error(
                f"RATE_LIMITS allows {operation} {text!r}, which means nothing.",
                hint=f"Write {operation}=20/1 for twenty calls in any second, or {operation}=off.",
                id="voiceapp.accounts.E005",
            )
    if settings.QUOTA_ENFORCED not in ("elsewhere", "always", "never"):
        yield Error(
            f"QUOTA_ENFORCED is {settings.QUOTA_ENFORCED!r}, which means nothing.",
            hint="Set it to elsewhere (models that another server runs), always or never.",
            id="voiceapp.accounts.E006",
        )
    if settings.REDIS_URL and not settings.REDIS_URL.startswith(("redis://", "rediss://", "unix://")):
        yield Error(
            "REDIS_URL is no address of a Redis server: every request would fail.",
            hint="Write it whole, such as redis://127.0.0.1:6379/0.",
            id="voiceapp.accounts.E011",
        )
    if settings.REDIS_URL and importlib.util.find_spec("redis") is None:
        yield Error(
            "REDIS_URL is set, but the package that talks to Redis is not installed.",
            hint="Run pip install -r requirements-redis.txt, or build with EXTRAS=redis.",
            id="voiceapp.accounts.E007",
        )


@register(Tags.compatibility)
def check_prices(**_: Any) -> Iterator[CheckMessage]:
    """Prices are whole nano-dollars, of units that are counted, of models that exist."""
    for name, prices in settings.LEDGER_PRICES.items():
        if name not in FAMILIES and not catalogue().has_card(name):
            yield Error(
                f"LEDGER_PRICES names {name!r}, which is neither a model nor a family of models.",
                hint=f"Write the name of a model, or one of {', '.join(sorted(FAMILIES))}.",
                id="voiceapp.accounts.E008",
            )
        for unit, price in prices.items():
            if unit not in UNITS:
                yield Error(
                    f"LEDGER_PRICES has a price for {unit!r} of {name}, which is not counted.",
                    hint=f"The units are {', '.join(UNITS)}.",
                    id="voiceapp.accounts.E009",
                )
            if not isinstance(price, int) or isinstance(price, bool) or price < 0:
                yield Error(
                    f"LEDGER_PRICES has {price!r} for {unit} of {name}, which is not a price.",
                    hint="Write whole nano-dollars: 1000000000 is a dollar.",
                    id="voiceapp.accounts.E010",
                )
    for card in catalogue().of_services():
        prices = prices_of(card.name, "realtime") if card.forwards_offers or card.forwards_calls else {}
        if prices and "conversations" not in prices:
            yield Info(
                f"Calls that are passed on to {card.name!r} cost nothing, so no budget holds them back: what they "
                "use is not known here, and LEDGER_PRICES has no price for one of them.",
                hint='Add "conversations" to the prices of realtime, or set the media of the service to bridged.',
                id="voiceapp.accounts.I012",
            )
