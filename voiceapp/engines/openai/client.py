"""Talking to a server elsewhere that speaks OpenAI's interface, or nearly: connections, and what its refusals mean.

One `Server` for each model; what a model is asked and answers is in a file of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp

from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable

CONNECT_TIMEOUT_S = 10.0
MAX_ERROR_CHARS = 300
MAX_ERROR_BODY_BYTES = 64 * 1024
MAX_CONNECTIONS = 256
"""Answers in progress at once; far above what one process asks for."""

NO_HEADERS: Mapping[str, str] = {}
Body = dict[str, Any] | str | bytes

_KEY = re.compile(r"\b(?:sk|pk|rk|key|gsk|hf|xai)[-_][\w*.-]{6,}", re.IGNORECASE)


class Busy(EngineUnavailable):
    """The server takes no more now: it did nothing, and asking again does no harm."""


class Unreachable(EngineUnavailable):
    """The server heard nothing of the request."""


class Server:
    """One per process and model; its connections belong to the event loop that asks."""

    def __init__(self, *, title: str, settings: str, base_url: str, api_key: str, timeout_s: float) -> None:
        """`title` names it in messages ("chat server"), `settings` is how its settings begin ("CHAT"); `base_url` is
        what comes before a path; `timeout_s` bounds each wait for bytes."""
        self.title = title
        self._settings = settings
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=min(CONNECT_TIMEOUT_S, timeout_s), sock_read=timeout_s
        )
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
        """The answer with status 200, its body unread; the caller closes it. Redirects are not followed.

        A body that is neither text nor bytes goes out as JSON.

        Raises:
            EngineUnavailable, EngineTimeout, EngineRefused: for any other status.
            TimeoutError, aiohttp.ClientError: for `failure`.
        """
        return await self._good("POST", path, body, {"Accept": accept, "Content-Type": content_type, **headers})

    async def get(self, path: str) -> aiohttp.ClientResponse:
        """As `post`, without a body."""
        return await self._good("GET", path, None, {"Accept": "application/json"})

    async def _good(self, method: str, path: str, body: Body | None, headers: dict[str, str]) -> aiohttp.ClientResponse:
        response = await self._send(method, path, body, headers)
        if response.status != 200:
            try:
                raise await self._refusal(response)
            finally:
                response.close()
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
        """The JSON of an answer of at most `limit` bytes; without a body, of a GET. Cancelling closes the connection.

        Raises EngineUnavailable, EngineTimeout or EngineRefused.
        """
        try:
            if body is None:
                response = await self.get(path)
            else:
                response = await self.post(path, body, content_type=content_type, headers=headers)
            try:
                answer = await read(response, limit + 1)
            finally:
                response.close()
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self.failure(error) from error
        if len(answer) > limit:
            raise EngineUnavailable(f"The {self.title} answered with more than {limit} bytes.")
        try:
            return json.loads(answer)
        except ValueError as error:
            raise EngineUnavailable(f"The {self.title} answered with something that is not JSON.") from error

    def failure(self, error: TimeoutError | aiohttp.ClientError) -> EngineError:
        """What it means that the connection failed."""
        if isinstance(error, TimeoutError):
            return EngineTimeout(f"The {self.title} did not answer in time.")
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
            return Unreachable(f"The {self.title} cannot be reached ({self._settings}_BASE_URL).")
        return EngineUnavailable(f"The connection to the {self.title} broke.")

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

    async def _send(self, method: str, path: str, body: Body | None, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Send the request, once more when a kept connection turns out to be closed by the other side."""
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        url = self._base_url + path
        data = None if body is None else _written(body)
        for is_last in (False, True):
            try:
                return await self._session().request(method, url, data=data, headers=headers, allow_redirects=False)
            except aiohttp.ServerDisconnectedError:
                if is_last:
                    raise
        raise AssertionError("the second attempt returns or raises")

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            connector = aiohttp.TCPConnector(
                limit=MAX_CONNECTIONS,
                resolver=aiohttp.ThreadedResolver(),  # the system's: it knows names such as nas.local
            )
            session = aiohttp.ClientSession(timeout=self._timeout, connector=connector, trust_env=False)
            self._sessions[loop] = session
        return session

    async def _refusal(self, response: aiohttp.ClientResponse) -> EngineError:
        """What a status other than 200 means."""
        status = response.status
        if status in (401, 403):
            refusal = EngineUnavailable(f"The {self.title} refused its key ({self._settings}_API_KEY).")
            refusal.retryable = False
            return refusal
        if status == 429:
            return Busy(f"The {self.title} is busy: it answered 429, too many requests.")
        if status in (408, 504):
            return EngineTimeout(f"The {self.title} did not answer in time.")
        if not 400 <= status < 500:
            return EngineUnavailable(f"The {self.title} failed with status {status}.")
        body = await read(response, MAX_ERROR_BODY_BYTES)
        try:
            said = self.message(json.loads(body))
        except ValueError:
            said = self._shown(body.decode("utf-8", "replace"))
        return EngineRefused(f"The {self.title} refused the request: {said}" if said else f"It answered {status}.")

    def _shown(self, text: str) -> str:
        """Text of the server elsewhere, made fit to be shown: one line, cut, without keys."""
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


def _written(body: Body) -> bytes:
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()
