"""Addresses of users that may be called: public ones, and those in networks that the operator allows."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

import aiohttp
from aiohttp.abc import ResolveResult
from yarl import URL

from voiceapp.errors import InvalidParameter

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL_LENGTH = 2048
LOOK_UP_S = 3.0
UNWANTED = re.compile(r"[\x00-\x20\x7f\\]")
"""Spaces, control characters and backslashes, on which parsers of addresses disagree."""
NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
"""Hosts that one program takes for a name, another for an address, and a third for another address: 0177.0.0.1."""
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""All that was ever handed out of IPv6; the rest leads nowhere, or inside by ways of its own."""
NOT_FOR_THE_PUBLIC: tuple[Network, ...] = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host, formally a public address
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "224.0.0.0/3",
        "2001::/23",
        "2002::/16",
        "3fff::/20",
    )
)
"""Networks that `is_global` of some Python versions lets through, although packets there may stay inside."""


class AddressNotAllowed(InvalidParameter):
    """The address leads to a place that this server does not call on behalf of others."""


def refused(host: str) -> AddressNotAllowed:
    """The error for a host that leads to a place that this server does not call."""
    return AddressNotAllowed(
        f"{host[:100]} does not lead to a public address. The operator of this server can allow networks: "
        "WEBHOOK_ALLOWED_NETWORKS for receivers, FETCH_ALLOWED_NETWORKS for files.",
        param="url",
    )


def allows(text: str, allowed_networks: Iterable[Network] = ()) -> bool:
    """Return whether an address is public, or lies in one of the operator's `allowed_networks`."""
    address: Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in allowed_networks if network.version == address.version):
        return True
    if address.version == 6 and address not in GLOBAL_UNICAST:
        return False
    return address.is_global and not any(
        address in network for network in NOT_FOR_THE_PUBLIC if network.version == address.version
    )


@lru_cache(maxsize=256)
def check_url(url: str) -> SplitResult:
    """The parts of an address that may be tried.

    Raises:
        InvalidParameter: if it is not an http or https address, or holds a login.
    """
    if len(url) > MAX_URL_LENGTH:
        raise InvalidParameter(f"An address may have {MAX_URL_LENGTH} characters.", param="url")
    if UNWANTED.search(url):
        raise InvalidParameter("The address holds spaces, control characters or backslashes.", param="url")
    try:
        parts = urlsplit(url)
        port = parts.port
        URL(url)  # which the client reads it as, and is stricter
    except ValueError:
        raise InvalidParameter("This is not an address.", param="url") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameter("The address must begin with http:// or https:// and name a host.", param="url")
    if parts.username is not None or parts.password is not None:
        raise InvalidParameter("The address must not hold a login.", param="url")
    if port == 0:
        raise InvalidParameter("There is no port 0.", param="url")
    if NUMERIC.fullmatch(parts.hostname) and not _is_literal(parts.hostname):
        raise InvalidParameter("An address of the Internet is written as four numbers from 0 to 255.", param="url")
    return parts


async def check_receiver(url: str, allowed_networks: Sequence[Network] = ()) -> None:
    """Look an address up once, to say at once what is wrong; what protects is the guard at the time of the call.

    Raises:
        InvalidParameter: if it is not an address that may be tried.
        AddressNotAllowed: if it leads to a place that this server does not call.
    """
    check_url(url)
    host = URL(url).raw_host  # as it is dialled: names in other scripts are spelled in ASCII
    assert host is not None
    addresses = [host] if _is_literal(host) else await _addresses(host)
    if not all(allows(address, allowed_networks) for address in addresses):
        raise refused(host)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _addresses(name: str) -> list[str]:
    resolver = Resolver()
    try:
        return [found["host"] for found in await resolver.resolve(name)]
    except (OSError, UnicodeError):  # a timeout is an OSError too
        raise InvalidParameter(f"The host {name[:100]} is not known.", param="url") from None
    finally:
        await resolver.close()


class Resolver(aiohttp.AsyncResolver):
    """Asks the hosts file and the name servers, for one event loop.

    A name that no server answers for holds no thread, and so holds up no other name.
    """

    def __init__(self, servers: Sequence[str] | None = None) -> None:
        """`servers` are asked instead of the system's, as address and port."""
        super().__init__(nameservers=servers, timeout=LOOK_UP_S / 3, tries=3)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        async with asyncio.timeout(LOOK_UP_S):
            found = await super().resolve(host, port, family)
        # To localhost it adds ::1 whatever the hosts file says; there, a receiver in an allowed 127.0.0.0/8 is not.
        is_here = any(one["host"] == "127.0.0.1" for one in found)
        return [one for one in found if not (is_here and one["host"] == "::1")]
