"""STUN servers and TURN relays, through which a caller and this server find each other for WebRTC."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Any

from django.conf import settings

from voiceapp.engines.sound import opus

SPARE_S = 60
"""Credentials outlive the session by this: the last refresh of an allocation must not fail."""


def available() -> bool:
    """Return whether this server talks over WebRTC: it is switched on, and libopus is there."""
    return settings.RTC_ENABLED and opus.available()


def ice_servers(caller_label: str, ttl_s: float) -> list[dict[str, Any]]:
    """Return the servers for RTCPeerConnection; empty on a server with a public address, which needs none.

    TURN credentials are good for `ttl_s` and a minute; show them only to a caller who may talk.
    """
    servers: list[dict[str, Any]] = []
    if settings.ICE_SERVERS:
        servers.append({"urls": list(settings.ICE_SERVERS)})
    if settings.TURN_URLS:
        servers.append({"urls": list(settings.TURN_URLS), **turn_credentials(caller_label, ttl_s)})
    return servers


def turn_credentials(label: str, ttl_s: float) -> dict[str, str]:
    """Name and password by coturn's `use-auth-secret`: the relay needs to know nothing but the common secret."""
    expires_at = int(time.time() + ttl_s) + SPARE_S
    # The relay logs the name: tell callers apart without naming them.
    username = f"{expires_at}:{hashlib.sha256(label.encode()).hexdigest()[:12]}"
    digest = hmac.new(settings.TURN_SECRET.encode(), username.encode(), hashlib.sha1).digest()
    return {"username": username, "credential": base64.b64encode(digest).decode()}
