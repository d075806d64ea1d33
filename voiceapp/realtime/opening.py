"""What every door does alike when a conversation begins: a caller's wishes, and what may end it."""

from __future__ import annotations

import functools
from zoneinfo import available_timezones

from django.conf import settings

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.limits import Admission
from voiceapp.drain import drain_event
from voiceapp.engines.interfaces import Call
from voiceapp.realtime import bridge
from voiceapp.realtime.watch import revocation_watch, standing_of

GOODBYE_S = 2.0
"""How long before the stopping server's patience ends a conversation ends itself."""


def call_of(session_id: str, model: str, time_zone: str) -> Call:
    """The conversation as its model must know it; an unknown `time_zone` becomes this server's own."""
    return Call(
        session_id=session_id,
        model=model,
        time_zone=time_zone if time_zone in _time_zones() else settings.LOCAL_TIME_ZONE,
        # Clients of this family send 24 kHz without saying so.
        input_rate_hz=24_000 if model.startswith("gpt-") else 16_000,
    )


def limits_of(admission: Admission, caller: Caller, session_key: str = "") -> bridge.Limits:
    """What may end the conversation; `session_key` is that of their login where they came with one."""
    standing = standing_of(caller, session_key)
    return bridge.Limits(
        lifetime_s=admission.lifetime_s,
        drain_s=max(0.0, settings.DRAIN_S - GOODBYE_S),
        stopping=drain_event().wait_begun,
        revoked=lambda: revocation_watch().wait(standing),
        has_key=caller.key_id is not None,
    )


@functools.cache
def _time_zones() -> frozenset[str]:
    """Names that a client may give. Looking them up reads hundreds of files: too long for every handshake."""
    return frozenset(available_timezones())
