"""Variables of earlier versions: who still sets one is told what to set instead."""

from __future__ import annotations

import re
from collections.abc import Iterable

from voiceapp.settings.environment import env

REMOVED = {
    r"UPSTREAM_(\w+_)?VOICE": "1.1.0: set UPSTREAM_CHAT_MODELS or CHAT_BASE_URL to speak a service's replies here",
    r"UPSTREAM_(\w+_)?WARM": "1.1.0: each session dials its own connection, so remove it",
    r"UPSTREAM_WEBHOOK_(URL|ACCOUNT)": "1.1.0: manage webhook endpoints of a service at that service, and remove it",
    r"AOQ_UPSTREAM_(RELAY|FINGERPRINT)": "1.1.0: callers connect to relays of this server, so remove it",
    r"MAX_TASK_STREAMS(_PER_ACCOUNT)?": "1.1.0: tasks are looked at, or told of by webhooks, so remove it",
    r"REVOKE_CLOSES_SESSIONS": "1.1.0: a revoked key always ends its conversations, so remove it",
    r"AOQ_TRANSPORT_HEADER": "1.1.0: x-service-rtc-transport and x-dashscope-rtc-transport are read, so remove it",
}
"""Name → the version that removed it, and what to set instead."""


def removed(names: Iterable[str]) -> list[str]:
    """A sentence about each of these variables that was removed."""
    return [
        f"{name} has had no effect since {about}."
        for name in sorted(names)
        for pattern, about in REMOVED.items()
        if re.fullmatch(pattern, name)
    ]


REMOVED_SETTINGS: list[str] = removed(env.ENVIRON)
