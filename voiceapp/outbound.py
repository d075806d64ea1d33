"""The only client that follows an address which a user gave: webhook receivers, files to transcribe.

The guard sits where a socket is made, so that it sees the address that is really dialled: each literal, each answer of
the name server, each redirect. What a name means when it is checked and what it means a second later may differ.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver

from voiceapp.errors import InvalidParameter, VoiceError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL_LENGTH = 2048
MAX_ANSWER_BYTES = 64 * 1024
"""What is read of an answer that nobody asked the length of."""
MAX_REDIRECTS = 3
UNWANTED = re.compile(r"[\x00-\x20\x7f\\]")
"""Spaces, control characters and backslashes, on which parsers of addresses disagree."""
CONNECT_S = 3.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})

NOT_FOR_THE_PUBLIC: tuple[Network, ...] = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host, formally a public address
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "224.0.0.0/3",
        "::/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/9",  # link-local and the old site-local addresses
        "ff00::/8",
    )
)
"""What `is_global` of some Python versions lets through, although packets sent there may stay inside."""


class AddressNotAllowed(InvalidParameter):
    """The address leads to a place that this server does not call on behalf of others."""


class FetchFailed(VoiceError):
    """The other side could not be reached, or did not answer as it should, in time."""

    code = "InvalidParameter.DataFetch"
    http_status = 400


class TlsInvalid(FetchFailed):
    """The other side's certificate does not prove who it is."""


class ResponseTooLarge(FetchFailed):
    """The other side sends more than is taken."""


class FetchTimeout(FetchFailed):
    """The other side took too long."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body_start: bytes
    elapsed_ms: int


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A file that was fetched."""

    path: Path
    content_type: str
    size: int
    """Bytes."""


def allows(text: str, holes: Iterable[Network] = ()) -> bool:
    """Whether an address is public, or lies in one of the `holes` that an operator has opened."""
    address: Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in holes if network.version == address.version):
        return True
    return address.is_global and not any(
        address in network for network in NOT_FOR_THE_PUBLIC if network.version == address.version
    )


@lru_cache(maxsize=256)
def check_url(url: str) -> SplitResult:
    """The parts of an address that may be tried.

    Raises:
        InvalidParameter: if it is no http or https address, or holds a login.
    """
    if len(url) > MAX_URL_LENGTH:
        raise InvalidParameter(f"An address may have {MAX_URL_LENGTH} characters.", param="url")
    if UNWANTED.search(url):
        raise InvalidParameter("The address holds spaces, control characters or backslashes.", param="url")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidParameter("This is not an address.", param="url") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameter("The address must begin with http:// or https:// and name a host.", param="url")
    if parts.username is not None or parts.password is not None:
        raise InvalidParameter("The address must not hold a login.", param="url")
    if port == 0:
        raise InvalidParameter("There is no port 0.", param="url")
    return parts


async def check_receiver(url: str, holes: Sequence[Network] = ()) -> None:
    """Look an address up once, for a clear word at once; what protects is the guard at the time of the call.

    Raises:
        InvalidParameter: if it is no address that may be tried.
        AddressNotAllowed: if it leads inside.
    """
    parts = check_url(url)
    assert parts.hostname is not None
    looking_up = asyncio.get_running_loop().getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    try:
        found = await asyncio.wait_for(looking_up, CONNECT_S)
    except (OSError, UnicodeError):  # which a time-out is as well
        raise InvalidParameter(f"The host {parts.hostname[:100]} is not known.", param="url") from None
    if not all(allows(str(entry[4][0]), holes) for entry in found):
        raise _refused(parts.hostname)


class Outbound:
    """One client, for one event loop. Use it as an asynchronous context manager."""

    def __init__(
        self,
        *,
        holes: Sequence[Network] = (),
        limit: int = 50,
        limit_per_host: int = 4,
        resolver: AbstractResolver | None = None,
    ) -> None:
        """`holes` are networks that are no public ones and may be called; `limit` bounds connections."""
        self._holes = holes
        self._limit = limit
        self._limit_per_host = limit_per_host
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Outbound:
        connector = aiohttp.TCPConnector(
            # A connection that is kept was guarded when it was made, and stays where it leads.
            socket_factory=self._socket,
            resolver=self._resolver,
            use_dns_cache=False,
            limit=self._limit,
            limit_per_host=self._limit_per_host,
            happy_eyeballs_delay=None,  # one address after the other: the first that is refused ends the attempt
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def post(
        self, url: str, *, body: bytes, headers: Mapping[str, str], total_s: float = 5.0, keep: int = 1024
    ) -> Answer:
        """Send a body and see what comes back: redirects are an answer, and nothing is decompressed.

        Raises:
            InvalidParameter, AddressNotAllowed, FetchFailed: as their classes say.
        """
        began = time.monotonic()
        async with self._asking(url, total_s), self._request("POST", url, data=body, headers=headers) as response:
            start = await _at_most(response, MAX_ANSWER_BYTES)
            return Answer(
                status=response.status,
                headers=dict(response.headers),
                body_start=start[:keep],
                elapsed_ms=round((time.monotonic() - began) * 1000),
            )

    async def download(self, url: str, *, to: Path, max_bytes: int, total_s: float) -> Downloaded:
        """Fetch a file, over a few redirects, each guarded like the first.

        Raises:
            InvalidParameter, AddressNotAllowed, FetchFailed: as their classes say.
        """
        async with self._asking(url, total_s):
            for _ in range(MAX_REDIRECTS + 1):
                async with self._request("GET", url) as response:
                    if response.status in REDIRECTS and "Location" in response.headers:
                        url = urljoin(url, response.headers["Location"])
                        continue
                    if response.status != 200:
                        raise FetchFailed(f"The file's server answered {response.status}.")
                    size = await _into(response, to, max_bytes)
                    return Downloaded(to, response.content_type, size)
        raise FetchFailed(f"The file's server redirects more than {MAX_REDIRECTS} times.")

    def _request(self, method: str, url: str, **options: Any) -> Any:
        check_url(url)
        assert self._session is not None, "use it as a context manager"
        return self._session.request(
            method,
            url,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            **options,
        )

    def _asking(self, url: str, total_s: float) -> _Asking:
        return _Asking(url, total_s)

    def _socket(self, info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        if not allows(str(address[0]), self._holes):
            raise _refused(str(address[0]))
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


class _Asking:
    """Bounds a call as a whole, and says in our words what went wrong."""

    def __init__(self, url: str, total_s: float) -> None:
        self._url = url
        self._timeout = asyncio.timeout(total_s)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            raise FetchTimeout(f"{self._host()} took too long.") from late
        if isinstance(error, TimeoutError):
            raise FetchTimeout(f"{self._host()} took too long.") from error
        if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError, ssl.CertificateError)):
            raise TlsInvalid(f"The certificate of {self._host()} could not be verified.") from error
        if isinstance(error, (aiohttp.ClientError, OSError, UnicodeError)):
            raise FetchFailed(f"{self._host()} could not be reached, or broke off.") from error

    def _host(self) -> str:
        return (urlsplit(self._url).hostname or "the host")[:100]


def _refused(host: str) -> AddressNotAllowed:
    return AddressNotAllowed(
        f"{host[:100]} does not lead to a public address; an operator may open networks for it.", param="url"
    )


async def _at_most(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """The beginning of the body; the rest is not read and the connection not used again."""
    read = bytearray()
    async for piece in response.content.iter_chunked(16 * 1024):
        read += piece
        if len(read) >= max_bytes:
            response.close()
            break
    return bytes(read[:max_bytes])


async def _into(response: aiohttp.ClientResponse, to: Path, max_bytes: int) -> int:
    """Write the body to a file as it comes; how long it is.

    Raises:
        ResponseTooLarge: as soon as that is known.
    """
    too_large = ResponseTooLarge(f"The file is larger than {max_bytes / 1_000_000:g} MB.")
    if (response.content_length or 0) > max_bytes:
        raise too_large
    size = 0
    with to.open("wb") as sink:  # small writes, to the page cache
        async for piece in response.content.iter_chunked(64 * 1024):
            size += len(piece)
            if size > max_bytes:
                raise too_large
            sink.write(piece)
    return size
