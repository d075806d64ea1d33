"""A WebSocket as a transport: one JSON event per text frame."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from voiceapp.errors import FloodError
from voiceapp.http.refusals import Receive, Send
from voiceapp.protocol.audio import Meter
from voiceapp.protocol.wire.dialects import OWN, Dialect
from voiceapp.protocol.wire.events import ClientEvent, EventError, ServerEvent
from voiceapp.realtime.transports.interface import Disconnected, texts_of
from voiceapp.realtime.transports.limits import MESSAGES_PER_S, SLOW_READER_S

CLOSE_TIMEOUT_S = 1.0
CLOSE_REASON_LENGTH = 100
"""Characters; a close frame has room for 123 bytes."""


class WebSocketTransport:
    """An accepted ASGI WebSocket as a `Transport`."""

    def __init__(self, receive: Receive, send: Send, dialect: Dialect = OWN) -> None:
        self._dialect = dialect
        self._receive = receive
        self._send = send
        self._now = asyncio.get_running_loop().time
        self._meter = Meter(rate_per_s=MESSAGES_PER_S)
        self._is_open = True
        self._is_slow = False

    async def receive(self) -> ClientEvent:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._is_open = False
                raise Disconnected(message.get("code") or 1006)
            if not self._meter.accept(1, self._now()):
                raise FloodError(f"More than {MESSAGES_PER_S} messages a second.", code="too_many_messages")
            text = message.get("text")
            if text is None:
                raise EventError("Send JSON text frames: binary frames are not understood.", code="invalid_frame")
            if (event := self._dialect.read(text)) is not None:
                return event

    async def send(self, event: ServerEvent) -> None:
        if not self._is_open or self._is_slow:
            return
        try:
            async with asyncio.timeout(SLOW_READER_S):
                for text in texts_of(event, self._dialect):
                    await self._send({"type": "websocket.send", "text": text})
        except TimeoutError:
            self._is_slow = True  # a second wait would end no better
            raise FloodError("The connection is too slow for this conversation.", code="too_slow") from None

    def cut_playout(self) -> None:
        """The client plays by itself, and learns of it by the session's events."""

    async def close(self, code: int, reason: str) -> None:
        if not self._is_open:
            return
        self._is_open = False
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._send(
                    {"type": "websocket.close", "code": _sendable(code), "reason": reason[:CLOSE_REASON_LENGTH]}
                )


def _sendable(code: int) -> int:
    """Codes such as 1005 and 1006 may not stand in a close frame (RFC 6455, 7.4.1)."""
    return code if code == 1000 or 3000 <= code <= 4999 else 1000
