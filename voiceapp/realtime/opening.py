"""A caller's wishes, as every door hands them to the model."""

from __future__ import annotations

import functools
from zoneinfo import available_timezones

from django.conf import settings

from voiceapp.engines.interfaces import Call


def call_of(session_id: str, model: str, time_zone: str) -> Call:
    """The conversation as its model must know it; an unknown `time_zone` becomes this server's own."""
    return Call(
        session_id=session_id,
        model=model,
        time_zone=time_zone if time_zone in _time_zones() else settings.LOCAL_TIME_ZONE,
        # Clients of this family send 24 kHz without saying so.
        input_rate_hz=24_000 if model.startswith("gpt-") else 16_000,
    )


@functools.cache
def _time_zones() -> frozenset[str]:
    """Names that a client may give. Looking them up reads hundreds of files: too long for every handshake."""
    return frozenset(available_timezones())
