"""The only HTTP client for addresses that users supply: webhook receivers, files to transcribe, images in messages.

The guard sits where a socket is made, so that it sees the address that is really dialled: each literal, each answer of
the name server, each redirect. What a name means when it is checked and what it means a second later may differ.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver

from voiceapp.errors import VoiceError
from voiceapp.outbound.addresses import Network, Resolver, allows, check_url, refused

dialled: ContextVar[list[str]] = ContextVar("dialled")
"""Addresses that were dialled for the call under way: none when it is on a connection that was kept."""

MAX_RESPONSE_BYTES = 64 * 1024
"""Largest part of a response to `post` that is read."""
MAX_REDIRECTS = 3
CONNECT_S = 3.0
KEEP_S = 2.0
"""Time that a connection is kept for the next call: shorter than usual servers keep it, which is five seconds."""
PIECE_BYTES = 256 * 1024
"""Largest piece of a file that is written at a time."""
A_DAY_S = 86_400.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})

Progress = Callable[[int, int], None]
"""Is told the bytes of a file that are there and those that there will be, 0 where that is unknown: before the first of
them is written and after each piece."""


class FetchFailed(VoiceError):
    """The server could not be reached, or did not respond as it should, in time."""

    code = "InvalidParameter.DataFetch"
    http_status = 400


class TlsInvalid(FetchFailed):
    """The certificate of the server could not be verified."""


class ResponseTooLarge(FetchFailed):
    """The response is longer than it may be."""


class FetchTimeout(FetchFailed):
    """The response did not come in time."""


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    """Status, headers and body of a response, as far as it was read."""

    status: int
    headers: Mapping[str, str]
    """Found by their names in capitals or not."""
    body_start: bytes
    elapsed_ms: int


@dataclass(frozen=True, slots=True)
class Downloaded:
    path: Path
    content_type: str
    size: int


class Outbound:
    """One client, for one event loop. Use it as an asynchronous context manager."""

    def __init__(
        self,
        *,
        allowed_networks: Sequence[Network] = (),
        limit: int = 50,
        limit_per_host: int = 4,
        resolver: AbstractResolver | None = None,
    ) -> None:
        """`allowed_networks` are networks that are not public and may be called; `limit` bounds connections."""
        self._allowed_networks = allowed_networks
        self._limit = limit
        self._limit_per_host = limit_per_host
        self._resolver = resolver
        self._open = AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None
        """A session without connections that were used before."""

    async def __aenter__(self) -> Outbound:
        if self._resolver is None:
            self._resolver = Resolver()
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
    ) -> OutboundResponse:
        """Send a body and see what comes back: a redirect is a response like others, and nothing is decompressed.

        Raises:
            InvalidParameter: if the URL is not one that may be tried.
            AddressNotAllowed: if it leads to a place that this server does not call.
            FetchFailed: if no response came.
        """
        began = time.monotonic()
        async with _asking(url, total_s), await self._posted(url, data=body, headers=headers) as response:
            start = await _at_most(response, MAX_RESPONSE_BYTES)
            return OutboundResponse(
                status=response.status,
                headers=response.headers,
                body_start=start[:keep],
                elapsed_ms=round((time.monotonic() - began) * 1000),
            )

    async def download(
        self, url: str, *, to: Path, max_bytes: int, total_s: float, progress: Progress | None = None
    ) -> Downloaded:
        """Fetch a file as it is, over a few redirects, each guarded like the first. What comes compressed is refused.

        What `progress` raises ends it.

        Raises:
            InvalidParameter: if the URL is not one that may be tried.
            AddressNotAllowed: if it leads to a place that this server does not call.
            FetchFailed: if the file did not come whole.
        """
        async with _asking(url, total_s), self._file(url) as response:
            size = await _behind(response, to, 0, max_bytes, None, progress or _unheard)
            return Downloaded(to, response.content_type, size)

    async def read(self, url: str, *, max_bytes: int, total_s: float) -> bytes:
        """Fetch a small file into memory, as `download` does.

        Raises:
            InvalidParameter: if the URL is not one that may be tried.
            AddressNotAllowed: if it leads to a place that this server does not call.
            FetchFailed: if the file did not come whole.
        """
        async with _asking(url, total_s), self._file(url) as response:
            body = await _at_most(response, max_bytes + 1)
        if len(body) > max_bytes:
            raise ResponseTooLarge(f"The file is larger than {max_bytes / 1_000_000:g} MB.")
        return body

    @asynccontextmanager
    async def _file(
        self,
        url: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        statuses: Container[int] = (200,),
        stalled_s: float | None = None,
        stays_secure: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a file that is not compressed, over a few redirects."""
        for _ in range(MAX_REDIRECTS + 1):
            async with asyncio.timeout(stalled_s):
                response = await self._request("GET", url, headers={"Accept-Encoding": "identity", **headers})
            async with response:
                if response.status in REDIRECTS and "Location" in response.headers:
                    url = _onward(url, response)
                    if stays_secure and not url.startswith("https:"):
                        raise FetchFailed("The file's server redirects from https to http.")
                    continue
                if response.status not in statuses:
                    raise FetchFailed(f"The file's server answered {response.status}.")
                if (coding := response.headers.get("Content-Encoding", "identity").lower()) != "identity":
                    raise FetchFailed(f"The file's server sends it compressed ({coding[:20]}), which is not read.")
                yield response
                return
        raise FetchFailed(f"The file's server redirects more than {MAX_REDIRECTS} times.")

    async def resume(self, url: str, *, to: Path, max_bytes: int, stalled_s: float, progress: Progress) -> Downloaded:
        """Fetch a large file, going on behind what `to` already holds where its server can do that.

        What came stays in `to` when the call fails, and its server's ETag beside it: a file that has changed since then
        comes anew. A server that sends nothing for `stalled_s` has failed, and so has
        one that leads from https to http, where others could change the file.

        Raises:
            InvalidParameter: if the URL is not one that may be tried.
            AddressNotAllowed: if it leads to a place that this server does not call.
            FetchFailed: if the file did not come whole.
        """
        has_bytes = to.stat().st_size if to.is_file() else 0  # noqa: ASYNC240 - one look at one file
        tag = to.with_name(f"{to.name}.etag")
        known = tag.read_text() if has_bytes and tag.is_file() else ""
        headers = {"Range": f"bytes={has_bytes}-"} if has_bytes else {}
        headers |= {"If-Range": known} if known else {}
        opened = self._file(
            url, headers, statuses=(200, 206, 416), stalled_s=stalled_s, stays_secure=url.startswith("https:")
        )
        async with _asking(url, A_DAY_S), opened as response:
            if response.status == 416:  # nothing lies behind what is there
                return Downloaded(to, "", has_bytes)
            has_bytes = has_bytes if response.status == 206 else 0
            etag = response.headers.get("ETag", "")
            tag.write_text("" if etag.startswith("W/") else etag)
            size = await _behind(response, to, has_bytes, max_bytes, stalled_s, progress)
            tag.unlink()
            return Downloaded(to, response.content_type, size)

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

    def _socket(self, info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        if not allows(str(address[0]), self._allowed_networks):
            raise refused(str(address[0]))
        dialled.get([]).append(str(address[0]))
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


@asynccontextmanager
async def _asking(url: str, total_s: float) -> AsyncIterator[None]:
    """Bound a call as a whole, and say in our words what went wrong."""
    try:
        async with asyncio.timeout(total_s):
            yield
    except TimeoutError as late:
        raise FetchTimeout(f"{_host(url)} took too long.") from late
    except aiohttp.ClientConnectorCertificateError as error:
        why = getattr(error.certificate_error, "verify_message", "") or "it is not signed by a known authority"
        raise TlsInvalid(f"The TLS certificate of {_host(url)} could not be verified: {why.rstrip('.')}.") from error
    except (aiohttp.ClientError, OSError, UnicodeError) as error:
        raise FetchFailed(f"{_host(url)} {_trouble(error)}.") from error


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "the host")[:100]


def _onward(url: str, response: aiohttp.ClientResponse) -> str:
    """Return the target of a redirect.

    Raises:
        FetchFailed: if it names no address.
    """
    try:
        return urljoin(url, response.headers["Location"])
    except ValueError:
        raise FetchFailed("The file's server redirects to what is no address.") from None


def _trouble(error: Exception) -> str:
    """Describe a failure that is neither of the certificate nor of the time."""
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        return "could not be talked to over TLS; perhaps it serves http only"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "could not be reached"
    if isinstance(error, aiohttp.ClientResponseError):
        return "did not answer as HTTP has it"
    return "broke off"


async def _at_most(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """The beginning of the body; the rest is not read and the connection not used again."""
    read = bytearray()
    async for piece in response.content.iter_chunked(16 * 1024):
        read += piece
        if len(read) >= max_bytes:
            response.close()
            break
    return bytes(read[:max_bytes])


def _unheard(size: int, whole: int) -> None:
    """For who does not ask how far it is."""


async def _behind(
    response: aiohttp.ClientResponse,
    to: Path,
    has_bytes: int,
    max_bytes: int,
    stalled_s: float | None,
    progress: Progress,
) -> int:
    """Write the body behind the first `has_bytes` of a file; how long that is then.

    Raises:
        ResponseTooLarge: as soon as that is known.
    """
    too_large = ResponseTooLarge(f"The file is larger than {max_bytes / 1_000_000:g} MB.")
    whole = has_bytes + response.content_length if response.content_length else 0
    if whole > max_bytes:
        raise too_large
    size = has_bytes
    with to.open("ab" if has_bytes else "wb") as sink:  # small writes, to the page cache
        progress(size, whole)
        while True:
            async with asyncio.timeout(stalled_s):
                piece = await response.content.read(PIECE_BYTES)
            if not piece:
                return size
            size += len(piece)
            if size > max_bytes:
                raise too_large
            sink.write(piece)
            progress(size, whole)
