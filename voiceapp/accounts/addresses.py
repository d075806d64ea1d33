"""Internet address of a request, and the addresses that count as one caller."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest


def address_of_request(request: HttpRequest) -> str:
    """The address that the server knows its client by, behind proxies too; empty when it is unknown."""
    return canonical(request.META.get("REMOTE_ADDR") or "")


def address_of_scope(scope: Mapping[str, Any]) -> str:
    """Return the same of an ASGI connection."""
    return canonical((scope.get("client") or ("", 0))[0] or "")


def neighbourhood(address: str) -> str:
    """The addresses that one caller commands: an IPv4 address alone, an IPv6 address with its /64."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.IPv6Network((int(parsed), 64), strict=False))


def canonical(address: str) -> str:
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
