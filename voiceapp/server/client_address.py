"""Who is calling: the peer's address, or what our own proxies wrote about it."""

from __future__ import annotations

import ipaddress

from voiceapp.answers import Scope


def client_address(scope: Scope, trusted_proxies: int) -> str | None:
    """The address of the client, which limits and logs go by.

    `trusted_proxies` counts from the right of X-Forwarded-For: what stands further left the client wrote itself. With
    too few entries, or one that is no address, somebody went around the proxies and the peer's address is the truth.
    """
    peer = scope.get("client")
    forwarded = _forwarded_for(scope) if trusted_proxies else []
    if len(forwarded) >= trusted_proxies > 0:
        address = _address(forwarded[-trusted_proxies])
        if address is not None:
            return address
    return _address(peer[0]) or str(peer[0]) if peer else None


def forwarded_scheme(scope: Scope) -> str | None:
    """`http` or `https` as the nearest proxy saw it, from X-Forwarded-Proto; for a trusted proxy only."""
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-proto"]
    scheme = ",".join(values).rsplit(",", 1)[-1].strip().lower()
    return scheme if scheme in ("http", "https") else None


def _forwarded_for(scope: Scope) -> list[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return [entry.strip() for value in values for entry in value.split(",")]


def _address(text: str) -> str | None:
    """An address without port, zone or IPv4 mapping; None when it is none. Some proxies append the port."""
    if text.startswith("["):
        text = text[1:].split("]", 1)[0]
    elif text.count(":") == 1:
        text = text.split(":", 1)[0]
    try:
        address = ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(address)
