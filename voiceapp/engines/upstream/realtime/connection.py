"""WebSockets to another service: dialled with our key, its refusals and its ends in words for our callers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

import aiohttp

from voiceapp.engines.interfaces import Call
from voiceapp.engines.models.addresses import Addresses
from voiceapp.engines.openai.client import seconds_of
from voiceapp.engines.upstream.realtime.openai import OpenAICodec, reason_of, status_of
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable, FloodError
from voiceapp.protocol.forwarded.reading import wire_of, written
from voiceapp.protocol.openai_realtime.client import OpenAIService
from voiceapp.protocol.session import FINISH_S
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import JsonObject

logger = logging.getLogger(__name__)

NATIVE = "native"
PATH = "/api-ws/v1/realtime"
OPENAI_PATH = "/realtime"
OLDER_DIALECT = {"OpenAI-Beta": "realtime=v1"}
"""Header for this server's dialect, also where the name of the model would mean another one."""
FIRST_S = 15.0
"""Longest wait for the first event."""
MOST_TOLD = 100
"""Events without a word of the service that wait to be received."""
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
"""Reasons by close code, for which the service would end the next session as well."""


class ServiceFull(EngineUnavailable):
    """The service takes no more sessions now."""

    code = "Throttling.Concurrency"
    http_status = 429


class ModelNotThere(EngineRefused):
    code = "ModelNotFound"
    http_status = 404


class ServiceLost(Exception):
    """The service ended the connection, or it broke."""

    told = "The connection to the service that runs this model was lost"

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    @property
    def failure(self) -> EngineError:
        """Sentence for a caller whose conversation ends by it."""
        why = REFUSED_FOR_GOOD.get(self.code, "ended the conversation")
        error = EngineUnavailable(f"The service that runs this model {why}.", remedy=f"Its close code was {self.code}.")
        error.retryable = self.code not in REFUSED_FOR_GOOD
        return error


class ServiceSilent(ServiceLost):
    """The service owed an event, and sent none."""

    told = "The service that runs this model did not answer in time"

    def __init__(self) -> None:
        super().__init__(0)

    @property
    def failure(self) -> EngineError:
        return EngineTimeout(f"{self.told}.")


class Codec(Protocol):
    """The dialect of a service, where it is not this server's: events of ours in its words, and its events as ours."""

    told: list[JsonObject]
    """Events for the caller that need no word of the service, to be taken by the owner."""

    def say(self, wire: JsonObject) -> list[JsonObject]:
        """An event of ours as the service reads it."""

    def hear(self, wire: JsonObject) -> list[JsonObject]:
        """An event of the service as ours."""

    def give_up(self) -> None:
        """End the session without what is still under way."""


class ServiceConnection:
    """One session with the service. Events are read and written once, in this server's dialect; messages with audio may
    pass as texts."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, key: str, codec: Codec | None = None) -> None:
        self._socket = socket
        self._key = key
        self._codec = codec
        self._now = asyncio.get_running_loop().time
        self._came: deque[JsonObject] = deque()
        """Translated events that were not taken yet."""
        self._waiting: asyncio.Timeout | None = None
        """Timeout of `receive` while it waits for the service; moved forward when the codec has events to tell."""
        self._gives_up_at: float | None = None
        """Longest wait after the caller has asked for the end."""

    async def send(self, event: str | JsonObject) -> None:
        """Send an event of ours; waits while the service reads slowly.

        Raises:
            ServiceLost: the connection is closed, or the service has stopped reading.
            FloodError: events were refused here faster than the refusals are received.
        """
        if self._codec is None:
            await self._write(event if isinstance(event, str) else written(event))
            return
        wire: JsonObject = json.loads(event) if isinstance(event, str) else event
        for theirs in self._codec.say(wire):
            await self._write(written(theirs))
        if self._codec.told and len(self._came) >= MOST_TOLD:
            raise FloodError("Too many events were refused before the refusals were read.", code="too_many_refused")
        self._take_told(self._codec)
        if wire["type"] == ev.SessionFinish.type and self._gives_up_at is None:
            self._gives_up_at = self._now() + FINISH_S
        if self._waiting is not None and not self._waiting.expired() and (self._came or self._gives_up_at):
            self._waiting.reschedule(0)

    async def receive(self, until: float | None = None) -> str | JsonObject:
        """The next event, without our key: its text as it came, or its fields where it was translated. Can be cancelled
        without losing one.

        Raises:
            ServiceLost: the connection is closed.
            TimeoutError: none came until then, by the clock of the event loop.
        """
        if self._codec is None:
            if until is None:
                return await self._read()
            async with asyncio.timeout_at(until):
                return await self._read()
        while not self._came:
            await self._translate_next(self._codec, until)
        return self._came.popleft()

    async def first(self) -> JsonObject:
        """The first event of a translated session as the service says it; it is received again.

        Raises:
            ServiceLost: the connection is closed.
        """
        assert self._codec is not None
        while (wire := wire_of(await self._read())) is None:
            pass
        self._came.extend(self._codec.hear(wire))
        self._take_told(self._codec)
        return wire

    async def close(self) -> None:
        """Close the connection; harmless when it is closed already."""
        with suppress(ConnectionError, aiohttp.ClientError, TimeoutError):
            async with asyncio.timeout(2 * CLOSE_S):  # the goodbye, too, waits for a service that does not read
                await self._socket.close()

    async def _translate_next(self, codec: Codec, until: float | None) -> None:
        """Wait for the next message of the service, or for something to tell without one."""
        ends = [at for at in (until, self._gives_up_at) if at is not None]
        try:
            async with asyncio.timeout_at(min(ends, default=None)) as self._waiting:
                text = await self._read()
        except TimeoutError:
            if self._gives_up_at is not None and self._now() >= self._gives_up_at:
                self._gives_up_at = None
                codec.give_up()
                self._take_told(codec)
            elif not self._came and until is not None and self._now() >= until:
                raise
        else:
            if (wire := wire_of(text)) is not None:
                self._came.extend(codec.hear(wire))
                self._take_told(codec)
        finally:
            self._waiting = None

    def _take_told(self, codec: Codec) -> None:
        self._came.extend(codec.told)
        codec.told.clear()

    async def _write(self, text: str) -> None:
        try:
            async with asyncio.timeout(SEND_S):
                await self._socket.send_str(text)
        except TimeoutError:
            await self.close()  # `receive` notices
            raise ServiceLost(LOST) from None
        except (ConnectionError, aiohttp.ClientError):
            raise ServiceLost(self._socket.close_code or LOST) from None

    async def _read(self) -> str:
        """The next text."""
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                text: str = message.data
                return text.replace(self._key, "***") if self._key and self._key in text else text
            if message.type is aiohttp.WSMsgType.PING:
                with suppress(ConnectionError, aiohttp.ClientError):  # the next look finds it closed
                    await self._socket.pong(message.data)
            elif message.type not in (aiohttp.WSMsgType.PONG, aiohttp.WSMsgType.BINARY):
                raise ServiceLost(self._socket.close_code or LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A realtime model at a service, and how it is reached."""

    base_url: str
    """Address before `/api/v1`, or before `/realtime` with OpenAI's dialect; several with commas between."""
    ws_url: str = ""
    """The same for WebSockets, where they have an address of their own."""
    api_key: str = field(repr=False)
    name: str
    """The name that the service knows; empty for the caller's own spelling."""
    dialect: str = NATIVE
    """One of `catalogue.servers.DIALECTS`."""
    transcription_model: str = ""
    """The service's; empty for the one that a caller names."""
    timeout_s: float = 15.0
    """Timeout of the exchange of an offer, in which the service gathers its candidates."""
    settings: str = "UPSTREAM"
    """Prefix of its settings."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers of each request."""


class Dialler:
    """Dials one model of a service. Connections belong to the event loop that dials."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model
        self._settings = model.settings
        self._is_native = model.dialect == NATIVE
        self._addresses = Addresses(model.ws_url or model.base_url)
        self._path = PATH if self._is_native else OPENAI_PATH
        self._headers = {**(OLDER_DIALECT if self._is_native else {}), **model.headers}
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    async def dial(self, call: Call) -> ServiceConnection:
        """An open connection for a conversation. Some services accept every handshake, and refuse in the first event.

        Raises:
            EngineUnavailable: the service cannot be reached, is busy or refuses our key.
            EngineTimeout: it takes too long.
            EngineRefused: it does not have the model, or does not accept the session.
        """
        socket = await self._connected(self._query(call))
        if self._is_native:
            return ServiceConnection(socket, self._model.api_key)
        connection = ServiceConnection(socket, self._model.api_key, self._codec(call))
        await self._require_begun(connection, call)
        return connection

    async def join(self, call_id: str) -> ServiceConnection:
        """A connection that has joined a call of the service, in its own dialect. Raises what `dial` raises."""
        return ServiceConnection(await self._connected({"call_id": call_id}), self._model.api_key)

    async def _connected(self, query: Mapping[str, str]) -> aiohttp.ClientWebSocketResponse:
        headers = dict(self._headers)
        if key := self._model.api_key:
            headers["Authorization"] = f"Bearer {key}"
        try:
            async with asyncio.timeout(DIAL_S):
                return await self._addresses.ask(
                    lambda url: self._session().ws_connect(
                        f"{url}{self._path}?{urlencode(query)}",
                        headers=headers,
                        heartbeat=HEARTBEAT_S,
                        autoping=False,  # aiohttp's own answer to a ping raises where the connection is lost meanwhile
                        timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
                        max_msg_size=MAX_MESSAGE_BYTES,
                    )
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

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _require_begun(self, connection: ServiceConnection, call: Call) -> None:
        """Wait for the first event; close the connection if it is a refusal."""
        try:
            async with asyncio.timeout(FIRST_S):
                first = await connection.first()
            if first["type"] == ev.ErrorEvent.type:
                reason = reason_of(first)
                logger.warning("session %s: the service of %s refused it: %s", call.session_id, self._settings, reason)
                raise self._refusal(status_of(first), 1)
        except TimeoutError:
            await connection.close()
            raise EngineTimeout("The service that runs this model did not begin the session in time.") from None
        except ServiceLost as lost:
            raise lost.failure from None
        except BaseException:
            await connection.close()
            raise

    def _query(self, call: Call) -> dict[str, str]:
        model = self._model.name or call.model
        if self._is_native:
            query = {"model": model, "time_zone": call.time_zone}
            return query | {"intent": "transcription"} if call.listens_only else query
        # Hosted services take no model beside the intent: the settings name what transcribes.
        return {"intent": "transcription"} if call.listens_only else {"model": model}

    def _codec(self, call: Call) -> OpenAICodec:
        service = OpenAIService(
            listens_only=call.listens_only,
            transcription_model=self._model.transcription_model,
            input_rate_hz=call.input_rate_hz,
        )
        return OpenAICodec(service, call.session_id)

    @property
    def _advice(self) -> str:
        return f"Check {self._settings}_BASE_URL and its server."

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            connector = aiohttp.TCPConnector(limit=0, resolver=aiohttp.ThreadedResolver())
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=connector,
                middlewares=(_without_redirects,),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._addresses.connect_s),
                trust_env=False,
            )
        return session

    def _refusal(self, status: int, retry_after_s: int) -> EngineError:
        """Return the error of a refused handshake for a caller."""
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
                "The service that runs this model does not have it.",
                remedy=f"Check {self._settings}_REALTIME_MODEL.",
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
