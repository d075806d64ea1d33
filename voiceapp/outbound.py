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
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from voiceapp.errors import InvalidParameter, VoiceError

dialled: ContextVar[list[str]] = ContextVar("dialled")
"""Addresses that were dialled for the call under way: none when it is on a connection that was kept."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL_LENGTH = 2048
MAX_ANSWER_BYTES = 64 * 1024
"""What is read of an answer that nobody asked the length of."""
MAX_REDIRECTS = 3
UNWANTED = re.compile(r"[\x00-\x20\x7f\\]")
"""Spaces, control characters and backslashes, on which parsers of addresses disagree."""
CONNECT_S = 3.0
LOOK_UP_S = 3.0
NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
"""Hosts that one program takes for a name, another for an address, and a third for another address: 0177.0.0.1."""
KEEP_S = 2.0
"""How long a connection is kept for the next call: less than usual servers keep it, which is five seconds."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})

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
    """Found by their names in capitals or not."""
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
    if address.version == 6 and address not in GLOBAL_UNICAST:
        return False
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


async def check_receiver(url: str, holes: Sequence[Network] = ()) -> None:
    """Look an address up once, for a clear word at once; what protects is the guard at the time of the call.

    Raises:
        InvalidParameter: if it is no address that may be tried.
        AddressNotAllowed: if it leads inside.
    """
    check_url(url)
    host = URL(url).raw_host  # as it is dialled: names in other scripts are spelled in ASCII
    assert host is not None
    addresses = [host] if _is_literal(host) else await _addresses(host)
    if not all(allows(address, holes) for address in addresses):
        raise _refused(host)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _addresses(name: str) -> list[str]:
    names = Names()
    try:
        return [found["host"] for found in await names.resolve(name)]
    except (OSError, UnicodeError):  # which a time-out is as well
        raise InvalidParameter(f"The host {name[:100]} is not known.", param="url") from None
    finally:
        await names.close()


class Names(aiohttp.AsyncResolver):
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
        self._open = AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None
        """The same without connections that were used before."""

    async def __aenter__(self) -> Outbound:
        if self._resolver is None:
            self._resolver = Names()
            self._open.push_async_callback(self._resolver.close)
        self._session = await self._open.enter_async_context(self._made(keepalive_timeout=KEEP_S))
        self._fresh = await self._open.enter_async_context(self._made(force_close=True))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    def _made(self, **keeping: Any) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            # A connection that is kept was guarded when it was made, and stays where it leads.
            socket_factory=self._socket,
            resolver=self._resolver,
            use_dns_cache=False,
            limit=self._limit,
            limit_per_host=self._limit_per_host,
            happy_eyeballs_delay=None,  # one address after the other: the first that is refused ends the attempt
            **keeping,
        )
        return aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def post(
        self, url: str, *, body: bytes, headers: Mapping[str, str], total_s: float = 5.0, keep: int = 1024
    ) -> Answer:
        """Send a body and see what comes back: redirects are an answer, and nothing is decompressed.

        Raises:
            InvalidParameter, AddressNotAllowed, FetchFailed: as their classes say.
        """
        began = time.monotonic()
        async with self._asking(url, total_s), await self._posted(url, data=body, headers=headers) as response:
            start = await _at_most(response, MAX_ANSWER_BYTES)
            return Answer(
                status=response.status,
                headers=response.headers,
                body_start=start[:keep],
                elapsed_ms=round((time.monotonic() - began) * 1000),
            )

    async def download(self, url: str, *, to: Path, max_bytes: int, total_s: float) -> Downloaded:
        """Fetch a file as it is, over a few redirects, each guarded like the first. What comes compressed is refused.

        Raises:
            InvalidParameter, AddressNotAllowed, FetchFailed: as their classes say.
        """
        async with self._asking(url, total_s):
            for _ in range(MAX_REDIRECTS + 1):
                async with self._request("GET", url, headers={"Accept-Encoding": "identity"}) as response:
                    if response.status in REDIRECTS and "Location" in response.headers:
                        url = urljoin(url, response.headers["Location"])
                        continue
                    if response.status != 200:
                        raise FetchFailed(f"The file's server answered {response.status}.")
                    if (coding := response.headers.get("Content-Encoding", "identity").lower()) != "identity":
                        raise FetchFailed(f"The file's server sends it compressed ({coding[:20]}), which is not read.")
                    size = await _into(response, to, max_bytes)
                    return Downloaded(to, response.content_type, size)
        raise FetchFailed(f"The file's server redirects more than {MAX_REDIRECTS} times.")

    async def _posted(self, url: str, **options: Any) -> aiohttp.ClientResponse:
        """The beginning of an answer. A connection that its server ends as it is used again is no word of the server's.

        What was sent may have arrived all the same: the receiver tells repetitions.
        """
        called: list[str] = []
        dialled.set(called)
        try:
            response: aiohttp.ClientResponse = await self._request("POST", url, **options)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as broken:
            if called or isinstance(broken, aiohttp.ClientConnectorError):
                raise
            response = await self._request("POST", url, session=self._fresh, **options)
        return response

    def _request(self, method: str, url: str, session: aiohttp.ClientSession | None = None, **options: Any) -> Any:
        check_url(url)
        session = session or self._session
        assert session is not None, "use it as a context manager"
        return session.request(
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
        dialled.get([]).append(str(address[0]))
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
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            why = getattr(error.certificate_error, "verify_message", "") or "nobody vouches for it"
            raise TlsInvalid(f"The certificate of {self._host()} proves nothing: {why.rstrip('.')}.") from error
        if isinstance(error, (aiohttp.ClientError, OSError, UnicodeError)):
            raise FetchFailed(f"{self._host()} {_trouble(error)}.") from error

    def _host(self) -> str:
        return (urlsplit(self._url).hostname or "the host")[:100]


def _trouble(error: Exception) -> str:
    """What went wrong with a host, but for its certificate and its time."""
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        return "could not be talked to over TLS; perhaps it serves http only"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "could not be reached"
    if isinstance(error, aiohttp.ClientResponseError):
        return "did not answer as HTTP has it"
    return "broke off"


def _refused(host: str) -> AddressNotAllowed:
    return AddressNotAllowed(
        f"{host[:100]} does not lead to a public address. Whoever runs this server may open networks: "
        "WEBHOOK_ALLOWED_NETWORKS for receivers, FETCH_ALLOWED_NETWORKS for files.",
        param="url",
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
