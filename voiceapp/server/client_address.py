"""Who is calling: the peer, or whom our own proxies saw."""

from __future__ import annotations

from voiceapp.accounts.addresses import address_behind
from voiceapp.answers import Scope


def client_address(scope: Scope, trusted_proxies: int) -> str | None:
    """The address of the client, which limits and logs go by; None without a peer."""
    peer = scope.get("client")
    return address_behind(scope, proxies=trusted_proxies) or str(peer[0]) if peer else None


def forwarded_scheme(scope: Scope) -> str | None:
    """`http` or `https` as the nearest proxy saw it, from X-Forwarded-Proto; for a trusted proxy only."""
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-proto"]
    scheme = ",".join(values).rsplit(",", 1)[-1].strip().lower()
    return scheme if scheme in ("http", "https") else None
