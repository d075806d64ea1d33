"""WebSockets to a service elsewhere: dialled with our key, its refusals and its ends in words for our callers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, Protocol
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

import aiohttp

from voiceapp.engines.interfaces import Call
from voiceapp.engines.openai.client import seconds_of
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable

logger = logging.getLogger(__name__)

PATH = "/api-ws/v1/realtime"
DIALECT = {"OpenAI-Beta": "realtime=v1"}
"""Ours, also where the name of the model would mean another one."""
DIAL_S = 10.0
HEARTBEAT_S = 30.0
"""Between pings. A caller who reads nothing holds the service's answer to one up for 10 s at most."""
SEND_S = 10.0
"""A service that does not read for so long has lost the session."""
CLOSE_S = 1.0
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
LOST = 1006

REFUSED_FOR_GOOD = {
    1008: "did not accept what it was sent",
    4401: "does not accept the key of this server any more",
    4402: "has no budget left for this server",
    4408: "was sent too much at once",
    4410: "does not accept the key of this server any more",
}
"""By close code: why the service ended a session that another one could not go on with."""


class ServiceFull(EngineUnavailable):
    """The service elsewhere takes no more sessions now."""

    code = "Throttling.Concurrency"
    http_status = 429


class ModelNotThere(EngineRefused):
    """The service elsewhere does not have the model."""

    code = "ModelNotFound"
    http_status = 404


class LineLost(Exception):
    """The service ended the connection, or it broke."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    @property
    def failure(self) -> EngineUnavailable:
        """What to tell a caller whose conversation ends by it."""
        why = REFUSED_FOR_GOOD.get(self.code, "ended the conversation")
        error = EngineUnavailable(f"The service that runs this model {why}.", remedy=f"Its close code was {self.code}.")
        error.retryable = self.code not in REFUSED_FOR_GOOD
        return error


class EventLine(Protocol):
    """One session with the service; `send` and `receive` have our events."""

    async def send(self, text: str) -> None:
        """Send a message; waits while the service reads slowly.

        Raises:
            LineLost: the connection is closed, or the service has stopped reading.
        """

    async def receive(self) -> str:
        """The next message, without our key; what is not text is left out. Can be cancelled without losing one.

        Raises:
            LineLost: the connection is closed.
        """

    async def close(self) -> None:
        """Close the connection; harmless when it is closed already."""


class ServiceLine:
    """An `EventLine` over a connection of its own."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, key: str) -> None:
        self._socket = socket
        self._key = key

    async def send(self, text: str) -> None:
        """See `EventLine`.

        Raises:
            LineLost: the connection is closed, or the service has stopped reading.
        """
        try:
            async with asyncio.timeout(SEND_S):
                await self._socket.send_str(text)
        except TimeoutError:
            await self.close()  # whoever receives notices
            raise LineLost(LOST) from None
        except (ConnectionError, aiohttp.ClientError):
            raise LineLost(self._socket.close_code or LOST) from None

    async def receive(self) -> str:
        """See `EventLine`."""
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                text: str = message.data
                return text.replace(self._key, "***") if self._key and self._key in text else text
            if message.type is aiohttp.WSMsgType.PING:
                with suppress(ConnectionError, aiohttp.ClientError):  # the next look finds it closed
                    await self._socket.pong(message.data)
            elif message.type not in (aiohttp.WSMsgType.PONG, aiohttp.WSMsgType.BINARY):
                raise LineLost(self._socket.close_code or LOST)

    async def close(self) -> None:
        """Close the connection; harmless when it is closed already."""
        with suppress(ConnectionError, aiohttp.ClientError, TimeoutError):
            async with asyncio.timeout(2 * CLOSE_S):  # the goodbye, too, waits for a service that does not read
                await self._socket.close()


class Dialler:
    """Dials one model of a service. Connections belong to the event loop that dials."""

    path = PATH
    dialect: Mapping[str, str] = DIALECT
    """Headers that say in which words the session is held."""

    def __init__(self, *, ws_url: str, api_key: str, model: str, settings: str, headers: Mapping[str, str]) -> None:
        """`ws_url` is what comes before `/api-ws/v1/realtime`; `model` is the service's name, empty for the
        caller's own spelling; `settings` is how the names of its settings begin, and `headers` are further ones."""
        self._url = f"{ws_url.rstrip('/')}{self.path}"
        self._api_key = api_key
        self._headers = dict(headers)
        self._model = model
        self._settings = settings
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    async def dial(self, call: Call) -> ServiceLine:
        """An open line for a conversation.

        Raises:
            EngineUnavailable: the service cannot be reached, is busy or refuses our key.
            EngineTimeout: it takes too long.
            EngineRefused: it does not have the model, or does not accept the session.
        """
        headers = {**self.dialect, **self._headers}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        try:
            async with asyncio.timeout(DIAL_S):
                socket = await self._session().ws_connect(
                    f"{self._url}?{urlencode(self._query(call))}",
                    headers=headers,
                    heartbeat=HEARTBEAT_S,
                    autoping=False,  # aiohttp's own answer to a ping raises where the connection is lost meanwhile
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
                    max_msg_size=MAX_MESSAGE_BYTES,
                )
        except aiohttp.WSServerHandshakeError as refused:
            raise self._refusal(refused.status, _retry_after_s(refused)) from None
        except TimeoutError:
            raise EngineTimeout(
                "The service that runs this model did not answer in time.", remedy=self._advice
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            logger.warning("the service of %s cannot be reached: %s", self._settings, type(error).__name__)
            raise EngineUnavailable(
                "The service that runs this model cannot be reached.", remedy=self._advice
            ) from None
        return self._line_over(socket, call)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    def _query(self, call: Call) -> dict[str, str]:
        query = {"model": self._model or call.model, "time_zone": call.time_zone}
        return query | {"intent": "transcription"} if call.listens_only else query

    def _line_over(self, socket: aiohttp.ClientWebSocketResponse, call: Call) -> ServiceLine:
        return ServiceLine(socket, self._api_key)

    @property
    def _advice(self) -> str:
        return f"Check {self._settings}_BASE_URL and its server."

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            connector = aiohttp.TCPConnector(limit=0, resolver=aiohttp.ThreadedResolver())
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=connector, middlewares=(_without_redirects,), trust_env=False
            )
        return session

    def _refusal(self, status: int, retry_after_s: int) -> EngineError:
        """What a refused handshake means to a caller."""
        if status in (401, 403):
            refused = EngineUnavailable(
                "The service that runs this model refused the key of this server.",
                remedy=f"Check {self._settings}_API_KEY.",
            )
            refused.retryable = False
            logger.warning(refused.for_operators)
            return refused
        if status == 404:
            return ModelNotThere(
                "The service that runs this model does not have it.", remedy=f"Check {self._settings}_REALTIME_MODEL."
            )
        if status in (408, 504):
            return EngineTimeout("The service that runs this model did not answer in time.")
        if status != 429 and 400 <= status < 500:
            return EngineRefused(f"The service that runs this model refused the session with status {status}.")
        if status == 429:
            busy: EngineError = ServiceFull("The service that runs this model takes no more sessions now.")
        else:
            busy = EngineUnavailable(f"The service that runs this model failed with status {status}.")
        busy.retry_after_s = retry_after_s
        return busy


async def _without_redirects(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Refuse a redirect, which may lead into the operator's network and would be followed with the headers."""
    response = await handler(request)
    if 300 <= response.status < 400:
        response.close()
        raise aiohttp.WSServerHandshakeError(
            response.request_info, response.history, status=response.status, headers=response.headers
        )
    return response


def _retry_after_s(refused: aiohttp.WSServerHandshakeError) -> int:
    given = refused.headers.get("Retry-After", "") if refused.headers else ""
    seconds = seconds_of(given)
    return 1 if seconds is None else seconds


def wire_of(text: str) -> dict[str, Any] | None:
    """The JSON object in a message; None where there is none, or a number in it is out of range."""
    try:
        wire = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_writable)
    except (ValueError, RecursionError):
        return None
    return wire if isinstance(wire, dict) and isinstance(wire.get("type"), str) else None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _refuse(digits)


def _writable(digits: str) -> int:
    """A number that can be reckoned with as a `float`, too."""
    _finite(digits)
    return int(digits)
