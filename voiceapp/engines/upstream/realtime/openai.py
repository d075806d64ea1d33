"""WebSockets to a realtime service of OpenAI's family: what passes is translated, and reads as our own dialect here."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import aiohttp

from voiceapp.engines.interfaces import Call
from voiceapp.engines.upstream.realtime.connection import LOST, Dialler, LineLost, ServiceLine, wire_of
from voiceapp.engines.upstream.realtime.wire_audio import WireConverter
from voiceapp.errors import EngineTimeout, FloodError, InvalidParameter
from voiceapp.formats import identifier, one_line
from voiceapp.protocol import events as ev
from voiceapp.protocol.forwarded.replay import MAX_EVENT_ID
from voiceapp.protocol.openai_realtime.client import OpenAIService
from voiceapp.protocol.reading import JsonObject
from voiceapp.protocol.session import FINISH_S

logger = logging.getLogger(__name__)

BEGIN_S = 15.0
"""How long the first word of the service may take."""
STATUSES = {
    "invalid_api_key": 401,
    "model_not_found": 404,
    "invalid_model": 404,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "server_error": 503,
    "internal_error": 503,
    "overloaded_error": 503,
    "service_unavailable_error": 503,
}
"""By code, or else type, of an error in the place of a session: the status of a handshake that is refused for the same
reason."""
MOST_SAID = 100
"""What a line may have to say by itself that nobody has read yet."""


class OpenAILine(ServiceLine):
    """One session; `send` and `receive` have our events."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, key: str, service: OpenAIService, name: str) -> None:
        """`name` is that of the session here, for logs."""
        super().__init__(socket, key)
        self._name = name
        self._service = service
        self._came: deque[str] = deque()
        """What was received and not taken: of one message of the service's, or what the line says by itself."""
        self._receiving: asyncio.Task[str] | None = None
        """The next message of the service's, waited for by whoever receives next."""
        self._said: asyncio.Future[None] | None = None
        """Done when the line says something by itself while somebody waits."""
        self._end: asyncio.TimerHandle | None = None
        """Of the longest wait after the caller has wanted the session to end."""
        self._is_begun = False
        """The service has taken the first settings, or was heard to refuse them."""
        self._to_service = WireConverter(service.source, service.source, is_stream=True)
        self._to_caller = WireConverter(service.sink, service.sink, is_stream=True)

    async def first(self) -> JsonObject:
        """The first event, as the service says it, which is received again.

        Raises:
            LineLost: the connection is closed.
        """
        while (wire := wire_of(await super().receive())) is None:
            pass
        self._is_begun = wire["type"] == ev.ErrorEvent.type  # which whoever dials logs
        self._take(wire)
        return wire

    async def send(self, text: str) -> None:
        """See `ServiceLine`."""
        wire = json.loads(text)
        if (event_id := wire.pop("event_id", None)) and isinstance(event_id, str):
            wire["event_id"] = event_id[:MAX_EVENT_ID]
        try:
            found = self._with_sound(wire)
        except InvalidParameter as refused:
            found = []
            self._service.own.append(_error_about(wire, refused))
        for theirs in found:
            await super().send(json.dumps(theirs, separators=(",", ":")))
        if self._service.own and len(self._came) >= MOST_SAID:
            raise FloodError("Too many events were refused before the refusals were read.", code="too_many_refused")
        self._say()
        if wire["type"] == ev.SessionFinish.type and self._end is None:
            self._end = asyncio.get_running_loop().call_later(FINISH_S, self._finish)

    async def receive(self) -> str:
        """See `ServiceLine`."""
        while not self._came:
            if self._receiving is None:
                self._receiving = asyncio.create_task(super().receive(), name=f"session {self._name}: next message")
            self._said = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._receiving, self._said), return_when=asyncio.FIRST_COMPLETED)
            if self._receiving.done():
                received, self._receiving = self._receiving, None
                if received.cancelled():  # closed meanwhile
                    raise LineLost(LOST)
                if (wire := wire_of(received.result())) is not None:
                    self._take(wire)
        return self._came.popleft()

    async def close(self) -> None:
        """See `ServiceLine`."""
        if self._end is not None:
            self._end.cancel()
        await super().close()
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.gather(self._receiving, return_exceptions=True)

    def _say(self) -> None:
        """Have `receive` return what is to be said without a word of the service's."""
        self._came.extend(json.dumps(each, separators=(",", ":")) for each in self._service.own)
        self._service.own.clear()
        if self._came and self._said is not None and not self._said.done():
            self._said.set_result(None)

    def _finish(self) -> None:
        self._service.give_up()
        self._say()

    def _take(self, theirs: JsonObject) -> None:
        if theirs["type"] == ev.SessionUpdated.type:
            self._is_begun = True
        elif theirs["type"] == ev.ErrorEvent.type and not self._is_begun:
            self._is_begun = True
            logger.warning("session %s: the service did not take the settings: %s", self._name, _reason(theirs))
        found = [heard for ours in self._service.hear(theirs) for heard in self._with_reply(ours)]
        self._came.extend(json.dumps(each, separators=(",", ":")) for each in found)
        self._say()

    # ── Audio ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _with_sound(self, wire: JsonObject) -> list[JsonObject]:
        """What is to be sent for an event of ours.

        Raises:
            InvalidParameter: if its audio cannot be read.
        """
        kind = wire["type"]
        service = self._service
        if (service.config.input_format, service.source) != self._to_service.formats:
            self._to_service = WireConverter(service.config.input_format, service.source, is_stream=True)
        if kind == ev.AudioAppend.type:
            return service.say({**wire, "audio": _converted(self._to_service, wire["audio"])})
        found = service.say(self._with_recordings(wire))
        is_committed = any(theirs["type"] == ev.AudioCommit.type for theirs in found)
        if is_committed and (rest := self._to_service.flush()):
            found.insert(0, {"type": ev.AudioAppend.type, "audio": base64.b64encode(rest).decode("ascii")})
        return found

    def _with_recordings(self, wire: JsonObject) -> JsonObject:
        """An event of ours, the audio of its items in the service's format."""
        if wire["type"] == ev.ItemCreate.type:
            return {**wire, "item": self._with_recording(wire.get("item"), "item")}
        response = wire.get("response")
        items = response.get("input") if isinstance(response, dict) else None
        if wire["type"] != ev.ResponseCreate.type or not isinstance(response, dict) or not isinstance(items, list):
            return wire
        found = [self._with_recording(item, f"response.input[{index}]") for index, item in enumerate(items)]
        return {**wire, "response": {**response, "input": found}}

    def _with_recording(self, item: Any, at: str) -> Any:
        parts = item.get("content") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(parts, list):
            return item
        content = [self._in_their_format(part, f"{at}.content[{index}].audio") for index, part in enumerate(parts)]
        return {**item, "content": content}

    def _in_their_format(self, part: Any, param: str) -> Any:
        if not isinstance(part, dict) or part.get("type") != "input_audio" or not isinstance(part.get("audio"), str):
            return part
        whole = WireConverter(self._service.config.input_format, self._service.source)
        try:
            return {**part, "audio": _converted(whole, part["audio"], is_whole=True)}
        except InvalidParameter as refused:
            raise InvalidParameter(refused.message, param=param) from None

    def _with_reply(self, ours: JsonObject) -> list[JsonObject]:
        """An event for the caller, with its audio in the caller's format."""
        service = self._service
        if (service.sink, service.config.output_format) != self._to_caller.formats:
            self._to_caller = WireConverter(service.sink, service.config.output_format, is_stream=True)
        if ours["type"] == ev.AudioDelta.type and isinstance(ours.get("delta"), str):
            service.sounded(ours.get("item_id"), len(ours["delta"]) * 3 // 4)
            try:
                delta = _converted(self._to_caller, ours["delta"])
            except InvalidParameter:
                return []
            return [{**ours, "delta": delta}] if delta else []
        if ours["type"] == ev.AudioDone.type and (rest := self._to_caller.flush()):
            delta = base64.b64encode(rest).decode("ascii")
            return [{**ours, "type": ev.AudioDelta.type, "event_id": identifier("event"), "delta": delta}, ours]
        return [ours]


class OpenAIDialler(Dialler):
    """Dials one model of such a service."""

    path = "/realtime"
    dialect: Mapping[str, str] = MappingProxyType({})

    def __init__(self, *, is_beta: bool, transcription_model: str, **about: Any) -> None:
        """See `Dialler`; `transcription_model` is the service's, empty for the one that a caller names."""
        super().__init__(**about)
        self._is_beta = is_beta
        if is_beta:
            self.dialect = {"OpenAI-Beta": "realtime=v1"}
        self._transcription_model = transcription_model

    async def dial(self, call: Call) -> ServiceLine:
        """See `Dialler`. Some of these services accept whoever dials, and refuse in the first event."""
        line = await super().dial(call)
        assert isinstance(line, OpenAILine)
        try:
            async with asyncio.timeout(BEGIN_S):
                first = await line.first()
            if first["type"] == ev.ErrorEvent.type:
                reason = _reason(first)
                logger.warning("session %s: the service of %s refused it: %s", call.session_id, self._settings, reason)
                raise self._refusal(_status(first), 1)
        except TimeoutError:
            await line.close()
            raise EngineTimeout("The service that runs this model did not begin the session in time.") from None
        except LineLost as lost:
            raise lost.failure from None
        except BaseException:
            await line.close()
            raise
        return line

    def _query(self, call: Call) -> dict[str, str]:
        if call.listens_only:  # hosted services take no model beside it: the settings name what transcribes
            return {"intent": "transcription"}
        return {"model": self._model or call.model}

    def _line_over(self, socket: aiohttp.ClientWebSocketResponse, call: Call) -> ServiceLine:
        service = OpenAIService(
            is_beta=self._is_beta,
            listens_only=call.listens_only,
            transcription_model=self._transcription_model,
            input_rate_hz=call.input_rate_hz,
        )
        return OpenAILine(socket, self._api_key, service, call.session_id)


def _converted(converter: WireConverter, audio: str, *, is_whole: bool = False) -> str:
    """Base64 of audio in the other format.

    Raises:
        InvalidParameter: if it cannot be read.
    """
    if converter.passes(len(audio) * 3 // 4 - audio[-2:].count("=")):
        return audio
    try:
        data = base64.b64decode(audio, validate=True)
    except ValueError:  # not base64, or not even ASCII
        raise InvalidParameter("audio must be base64.", param="audio") from None
    found = converter.convert(data)
    return base64.b64encode(found + converter.flush() if is_whole else found).decode("ascii")


def _status(refused: JsonObject) -> int:
    error = refused.get("error")
    names = (error.get("code"), error.get("type")) if isinstance(error, dict) else ()
    return next((STATUSES[name] for name in names if isinstance(name, str) and name in STATUSES), 400)


def _reason(refused: JsonObject) -> str:
    """What an error event of the service's says, for the log."""
    error = refused.get("error")
    if not isinstance(error, dict):
        return "no reason given"
    return one_line(f"{error.get('code') or error.get('type')}: {error.get('message')}", 200)


def _error_about(wire: JsonObject, refused: InvalidParameter) -> JsonObject:
    return ev.ErrorEvent(
        event_id=identifier("event"),
        code="invalid_value",
        message=refused.message,
        param=refused.param,
        about=wire.get("event_id"),
    ).to_wire()
