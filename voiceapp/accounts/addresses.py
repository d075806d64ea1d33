"""Internet address of a request, and the addresses that count as one caller."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest


def caller_address(peer: str, forwarded_for: str, *, proxies: int) -> str:
    """The address behind `proxies` proxies of ours; each appended to X-Forwarded-For the peer that it saw.

    Entries further left were written by the caller and prove nothing. With no proxies, or fewer entries than proxies,
    or an entry that is no address, it is the peer's own. An empty string means unknown.
    """
    entries = [entry.strip() for entry in forwarded_for.split(",")]
    if proxies < 1 or len(entries) < proxies:
        return _canonical(peer)
    return _canonical(entries[-proxies]) or _canonical(peer)


def address_of_request(request: HttpRequest) -> str:
    return caller_address(
        request.META.get("REMOTE_ADDR") or "", request.META.get("HTTP_X_FORWARDED_FOR", ""), proxies=_proxies()
    )


def address_of_scope(scope: Mapping[str, Any]) -> str:
    """Return the address that an ASGI connection came from, by the proxy settings."""
    return address_behind(scope, proxies=_proxies())


def address_behind(scope: Mapping[str, Any], *, proxies: int) -> str:
    """Return the address that an ASGI connection came from, behind so many proxies of ours."""
    peer = (scope.get("client") or ("", 0))[0] or ""
    forwarded = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"x-forwarded-for"]
    return caller_address(peer, ",".join(forwarded), proxies=proxies)


def neighbourhood(address: str) -> str:
    """The addresses that one caller commands: an IPv4 address alone, an IPv6 address with its /64."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.IPv6Network((int(parsed), 64), strict=False))


def _proxies() -> int:
    return int(settings.TRUSTED_PROXY_COUNT) if settings.TRUST_PROXY else 0


def _canonical(address: str) -> str:
    """One spelling per address: an IPv4 address mapped into IPv6 is the IPv4 address; zone and port are dropped.

    Some proxies write the port too. Empty when it is no address.
    """
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
