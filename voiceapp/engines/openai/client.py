"""Client of a server that speaks OpenAI's interface, or nearly: connections, and what its refusals mean.

One `RemoteServer` for each model; what a model is asked and replies is in a file of its own.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp

from voiceapp.engines.interfaces import Provider
from voiceapp.engines.models.addresses import Addresses
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable, Throttled
from voiceapp.outbound.model_servers import guarded_socket

logger = logging.getLogger(__name__)

PROBE_S = 2.0
"""Longest wait for a server that is only asked whether it is there."""
FRESH_S = 10.0
"""Time for which one response of a server shows that it is there."""
MAX_ERROR_CHARS = 300
MAX_ERROR_BODY_BYTES = 64 * 1024
MAX_RETRY_AFTER_S = 3600
KEEP_ALIVE_S = 120.0
"""Time for which a connection that is not used stays open: longer than most callers think about a reply."""
DNS_S = 300
"""Time for which an address that was looked up is used."""
MAX_CONNECTIONS = 256
"""Responses in progress at once; far above what one process asks for."""

NO_HEADERS: Mapping[str, str] = {}
Body = dict[str, Any] | str | bytes

_KEY = re.compile(r"\b(?:sk|pk|rk|key|gsk|hf|xai)[-_][\w*.-]{6,}", re.IGNORECASE)


class Busy(EngineUnavailable):
    """The server takes no more now: it did nothing, and asking again does no harm."""


class Unreachable(EngineUnavailable):
    """The server heard nothing of the request."""


class RemoteServer:
    """One per process and model; its connections belong to the event loop that asks."""

    probe_path = "/models"

    def __init__(
        self,
        *,
        title: str,
        settings: str,
        base_url: str,
        api_key: str,
        timeout_s: float,
        keeps_connections: bool = True,
        is_guarded: bool = False,
    ) -> None:
        """`title` names it in messages ("chat server"), `settings` is how its settings begin ("CHAT"), empty for one
        that has none; `base_url` is what comes before a path, or several of them with commas between; `timeout_s`
        bounds each wait for bytes. A server on this machine is best asked on a new connection each time. A guarded one
        was not named by the environment, and is connected to only where `guarded_socket` allows it."""
        self.title = title
        self._settings = settings
        self._addresses = Addresses(base_url)
        self._api_key = api_key
        self._keeps_connections = keeps_connections
        self._is_guarded = is_guarded
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=min(self._addresses.connect_s, timeout_s), sock_read=timeout_s
        )
        self.trouble: EngineUnavailable | EngineTimeout | None = None
        """Error of the latest contact; None while the server answers."""
        self._heard_at = -math.inf
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    async def post(
        self,
        path: str,
        body: Body,
        *,
        accept: str = "application/json",
        content_type: str = "application/json",
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> aiohttp.ClientResponse:
        """The response with status 200 or 201, its body unread; the caller closes it. Redirects are not followed.

        A body that is neither text nor bytes goes out as JSON. What breaks on the way is for `failure` to name.

        Raises:
            EngineUnavailable: for the statuses 401, 403 and 429, and all outside 400 to 499.
            EngineTimeout: for the statuses 408 and 504.
            EngineRefused: for any other status.
            TimeoutError: if nothing comes in time.
            aiohttp.ClientError: if the connection fails.
        """
        return await self._good("POST", path, body, {"Accept": accept, "Content-Type": content_type, **headers})

    async def get(self, path: str) -> aiohttp.ClientResponse:
        """Send a GET request; see `post`."""
        return await self._good("GET", path, None, {"Accept": "application/json"})

    async def probe(self) -> None:
        """Find out whether the server answers, unless it did just now; `trouble` says what came of it."""
        if self.trouble is None and time.monotonic() - self._heard_at < FRESH_S:
            return
        try:
            async with asyncio.timeout(PROBE_S):
                response = await self._send("GET", self.probe_path, None, {"Accept": "application/json"})
                try:
                    if response.status in (401, 403) or response.status >= 500:
                        await self._refusal(response)
                    else:  # whether or not it has such a list
                        self._answered()
                finally:
                    response.close()
        except (TimeoutError, aiohttp.ClientError) as error:
            self.failure(error)

    def _answered(self) -> None:
        self._heard_at = time.monotonic()
        if self.trouble is not None:
            logger.info("the %s answers again", self.title)
            self.trouble = None

    async def _good(self, method: str, path: str, body: Body | None, headers: dict[str, str]) -> aiohttp.ClientResponse:
        response = await self._send(method, path, body, headers)
        if response.status not in (200, 201):
            try:
                raise await self._refusal(response)
            finally:
                response.close()
        self._answered()
        return response

    async def ask(
        self,
        path: str,
        body: Body | None,
        *,
        limit: int,
        content_type: str = "application/json",
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> Any:
        """The JSON of a response of at most `limit` bytes; without a body, of a GET. Cancelling closes the connection.

        Raises:
            EngineUnavailable: if the server cannot serve now.
            EngineTimeout: if the server takes too long.
            EngineRefused: if the server does not accept the request.
        """
        try:
            response = await (
                self.get(path) if body is None else self.post(path, body, content_type=content_type, headers=headers)
            )
            try:
                body_bytes = await read(response, limit + 1)
            finally:
                response.close()
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self.failure(error) from error
        if len(body_bytes) > limit:
            raise EngineUnavailable(f"The {self.title} sent more than {limit} bytes.")
        try:
            return json.loads(body_bytes)
        except (ValueError, RecursionError) as error:
            raise EngineUnavailable(f"The {self.title} sent something that is not JSON.") from error

    def failure(self, error: TimeoutError | aiohttp.ClientError) -> EngineError:
        """Return the error for a failed connection."""
        remedy = f"Check {self._settings}_BASE_URL and its server." if self._settings else ""
        if isinstance(error, TimeoutError):
            return self._troubled(EngineTimeout(f"The {self.title} did not answer in time.", remedy=remedy))
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
            return self._troubled(Unreachable(f"The {self.title} cannot be reached.", remedy=remedy))
        return self._troubled(EngineUnavailable(f"The connection to the {self.title} broke.", remedy=remedy))

    def message(self, event: object) -> str:
        """The sentence inside an error object, in any of the usual shapes."""
        error = event.get("error", event) if isinstance(event, dict) else event
        if isinstance(error, dict):
            error = error.get("message") or error.get("detail") or json.dumps(error)
        return self._shown(str(error))

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    def _troubled(self, error: EngineUnavailable | EngineTimeout) -> EngineError:
        """The error, which `trouble` holds from now on and the log tells the operator, once."""
        if self.trouble is None or self.trouble.message != error.message:
            logger.warning(error.for_operators)
        self.trouble = error
        return error

    async def _send(self, method: str, path: str, body: Body | None, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Send the request to one of the addresses; see `Addresses.ask`."""
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        data = None if body is None else _written(body)
        options: dict[str, Any] = {"data": data, "headers": headers, "allow_redirects": False}
        return await self._addresses.ask(
            lambda url: self._session().request(method, url + path, **options), status=lambda response: response.status
        )

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            connector = aiohttp.TCPConnector(
                limit=MAX_CONNECTIONS,
                force_close=not self._keeps_connections,
                keepalive_timeout=KEEP_ALIVE_S if self._keeps_connections else None,
                ttl_dns_cache=DNS_S,
                resolver=aiohttp.ThreadedResolver(),  # the system's: it knows names such as nas.local
                socket_factory=guarded_socket if self._is_guarded else None,
            )
            session = aiohttp.ClientSession(timeout=self._timeout, connector=connector, trust_env=False)
            self._sessions[loop] = session
        return session

    async def _refusal(self, response: aiohttp.ClientResponse) -> EngineError:
        status = response.status
        if status in (401, 403):
            refusal = EngineUnavailable(
                f"The {self.title} refused the key of this server.",
                remedy=f"Check {f'{self._settings}_API_KEY' if self._settings else 'its key'}.",
            )
            refusal.retryable = False
            return self._troubled(refusal)
        retry_after_s = seconds_of(response.headers.get("Retry-After", ""))
        if status == 429 or (status == 503 and retry_after_s is not None):
            said = "429, too many requests" if status == 429 else "503, and when to ask again"
            busy = Busy(f"The {self.title} is busy: it answered {said}.")
            if status == 429:
                busy.code, busy.http_status = Throttled.code, Throttled.http_status
            busy.retry_after_s = busy.retry_after_s if retry_after_s is None else retry_after_s
            return busy
        if status in (408, 504):
            return self._troubled(EngineTimeout(f"The {self.title} did not answer in time."))
        if not 400 <= status < 500:
            return self._troubled(EngineUnavailable(f"The {self.title} failed with status {status}."))
        body = await read(response, MAX_ERROR_BODY_BYTES)
        try:
            found = json.loads(body)
            said = self.message(found)
        except (ValueError, RecursionError):
            found, said = None, self._shown(body.decode("utf-8", "replace"))
        refused = self._declined(
            found, f"The {self.title} refused the request: {said}" if said else f"It answered {status}."
        )
        refused.status_elsewhere = status
        error = found.get("error", found) if isinstance(found, dict) else None
        refused.parameter_elsewhere = str(error.get("param") or "") if isinstance(error, dict) else ""
        return refused

    def _declined(self, found: object, message: str) -> EngineRefused:
        """A refusal of the request itself; `found` is the JSON of its body, if it is any."""
        return EngineRefused(message)

    def _shown(self, text: str) -> str:
        """Text of the other server, made fit to be shown: one line, cut, without keys."""
        if self._api_key:
            text = text.replace(self._api_key, "***")
        return _KEY.sub("***", " ".join(text.split()))[:MAX_ERROR_CHARS]


async def read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, or the first `limit` bytes of it."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def seconds_of(text: str) -> int | None:
    """Return the seconds of a Retry-After (RFC 9110, 10.2.3); None for a date, for clocks differ."""
    return min(int(text), MAX_RETRY_AFTER_S) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _written(body: Body) -> bytes:
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()


class ServerProvider(Provider):
    """A provider whose model runs on a server with OpenAI's interface."""

    title = ""
    """Name of the server in messages, such as "chat server"."""
    settings = ""
    """Prefix of the server's settings, such as "CHAT"."""
    any_model = "default"
    """Name that asks the server for the model of its own choice."""

    def __init__(
        self,
        *,
        base_url: str = "",
        api_key: str = "",
        model: str = "",
        timeout_s: float = 60.0,
        server: RemoteServer | None = None,
        is_guarded: bool = False,
    ) -> None:
        """`base_url` is what comes before the operation's path; `timeout_s` bounds each wait for bytes. A `server`
        takes the place of its address, key and timeout. For `is_guarded` see there."""
        self._server = server or RemoteServer(
            title=self.title,
            settings="" if is_guarded else self.settings,
            base_url=base_url,
            api_key=api_key,
            timeout_s=timeout_s,
            is_guarded=is_guarded,
        )
        self._model = model or self.any_model

    @property
    def trouble(self) -> EngineError | None:
        return self._server.trouble

    async def probe(self) -> None:
        await self._server.probe()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._server.close()
