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
from voiceapp.engines.upstream.line import Dialler, LineLost, ServiceLine, wire_of
from voiceapp.engines.upstream.sound import WireConverter
from voiceapp.errors import EngineTimeout, InvalidParameter
from voiceapp.formats import identifier
from voiceapp.protocol import events as ev
from voiceapp.protocol.openai_realtime.service import OpenAIService
from voiceapp.protocol.reading import JsonObject

logger = logging.getLogger(__name__)

BEGIN_S = 15.0
"""How long the first word of the service may take."""
STATUSES = {
    "invalid_api_key": 401,
    "model_not_found": 404,
    "invalid_model": 404,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
}
"""By code of an error in the place of a session: the status of a handshake that is refused for the same reason."""


class OpenAILine(ServiceLine):
    """One session; `send` and `receive` have our events."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, key: str, service: OpenAIService) -> None:
        super().__init__(socket, key)
        self._service = service
        self._came: deque[str] = deque()
        """What was received and not taken: of one message of the service's, or what the line says by itself."""
        self._waiting: asyncio.Timeout | None = None
        self._is_updated = False
        self._to_service = WireConverter(service.source, service.source)
        self._to_caller = WireConverter(service.sink, service.sink)

    async def first(self) -> JsonObject:
        """The first event, as the service says it, which is received again.

        Raises:
            LineLost: the connection is closed.
        """
        while (wire := wire_of(await super().receive())) is None:
            pass
        self._take(wire)
        return wire

    async def send(self, text: str) -> None:
        """See `ServiceLine`."""
        wire = json.loads(text)
        try:
            found = self._with_sound(wire)
        except InvalidParameter as refused:
            self._say(_error_about(wire, refused))
            return
        for theirs in found:
            await super().send(json.dumps(theirs, separators=(",", ":")))
        while self._service.own:
            self._say(self._service.own.pop(0))

    async def receive(self) -> str:
        """See `ServiceLine`."""
        while not self._came:
            try:
                async with asyncio.timeout(None) as self._waiting:
                    text = await super().receive()
            except TimeoutError:  # the line has something to say by itself
                continue
            finally:
                self._waiting = None
            if (wire := wire_of(text)) is not None:
                self._take(wire)
        return self._came.popleft()

    def _say(self, ours: JsonObject) -> None:
        """Have `receive` return this."""
        self._came.append(json.dumps(ours))
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    def _take(self, theirs: JsonObject) -> None:
        if theirs["type"] == ev.SessionUpdated.type:
            self._is_updated = True
        elif theirs["type"] == ev.ErrorEvent.type and not self._is_updated:
            logger.warning("the service of a realtime model did not take the first settings: %s", theirs.get("error"))
        found = [heard for ours in self._service.hear(theirs) for heard in self._with_reply(ours)]
        self._came.extend(json.dumps(each, separators=(",", ":")) for each in (*found, *self._service.own))
        self._service.own.clear()

    # ── Audio ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _with_sound(self, wire: JsonObject) -> list[JsonObject]:
        """What is to be sent for an event of ours.

        Raises:
            InvalidParameter: if its audio cannot be read.
        """
        kind = wire["type"]
        service = self._service
        if (service.config.input_format, service.source) != self._to_service.formats:
            self._to_service = WireConverter(service.config.input_format, service.source)
        if kind == ev.AudioAppend.type:
            return [{**wire, "audio": _converted(self._to_service, wire["audio"])}]
        found = service.say(wire)
        if kind == ev.AudioCommit.type and (rest := self._to_service.flush()):
            found.insert(0, {"type": ev.AudioAppend.type, "audio": base64.b64encode(rest).decode("ascii")})
        return [self._with_recording(theirs) for theirs in found] if kind == ev.ItemCreate.type else found

    def _with_recording(self, theirs: JsonObject) -> JsonObject:
        """An item with its audio in the service's format."""
        item = theirs.get("item")
        parts = item.get("content") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(parts, list):
            return theirs
        content = []
        for part in parts:
            if isinstance(part, dict) and part.get("type") == "input_audio" and isinstance(part.get("audio"), str):
                whole = WireConverter(self._service.config.input_format, self._service.source)
                part = {**part, "audio": _converted(whole, part["audio"], is_whole=True)}
            content.append(part)
        return {**theirs, "item": {**item, "content": content}}

    def _with_reply(self, ours: JsonObject) -> list[JsonObject]:
        """An event for the caller, with its audio in the caller's format."""
        service = self._service
        if (service.sink, service.config.output_format) != self._to_caller.formats:
            self._to_caller = WireConverter(service.sink, service.config.output_format)
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
                error = first.get("error")
                code = str(error.get("code")) if isinstance(error, dict) else ""
                raise self._refusal(STATUSES.get(code, 400), 1)
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
        query = {"model": self._model or call.model}
        return query | {"intent": "transcription"} if call.listens_only else query

    def _line_over(self, socket: aiohttp.ClientWebSocketResponse, call: Call) -> ServiceLine:
        service = OpenAIService(
            is_beta=self._is_beta,
            listens_only=call.listens_only,
            transcription_model=self._transcription_model,
            input_rate_hz=call.input_rate_hz,
        )
        return OpenAILine(socket, self._api_key, service)


def _converted(converter: WireConverter, audio: str, *, is_whole: bool = False) -> str:
    """Base64 of audio in the other format.

    Raises:
        InvalidParameter: if it cannot be read.
    """
    if not converter.is_needed:
        return audio
    try:
        data = base64.b64decode(audio, validate=True)
    except ValueError:  # not base64, or not even ASCII
        raise InvalidParameter("audio must be base64.", param="audio") from None
    found = converter.convert(data)
    return base64.b64encode(found + converter.flush() if is_whole else found).decode("ascii")


def _error_about(wire: JsonObject, refused: InvalidParameter) -> JsonObject:
    return ev.ErrorEvent(
        event_id=identifier("event"),
        code="invalid_value",
        message=refused.message,
        param=refused.param,
        about=wire.get("event_id"),
    ).to_wire()
