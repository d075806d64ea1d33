"""A connection that tasks run on: their client's messages and audio in, events and sound out."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from voiceapp.errors import FloodError
from voiceapp.http.refusals import Message, Receive, Send
from voiceapp.protocol.wire.reading import JsonObject
from voiceapp.realtime.transports.interface import Disconnected, json_text
from voiceapp.realtime.transports.limits import SLOW_READER_S


class TaskConnection(Protocol):
    """One client's connection, already accepted."""

    async def receive(self) -> str | bytes:
        """The next message of the client, or audio.

        Raises:
            RunTaskError: what came cannot be read; the next call goes on behind it.
            FloodError: the client sends more than is allowed.
            Disconnected: the client is gone.
        """

    async def gone(self) -> int:
        """Return the close code when the client is gone, whatever of theirs is still unread."""

    async def say(self, message: JsonObject) -> None:
        """Send an event.

        Raises:
            FloodError: if the client reads too slowly.
        """

    async def close(self, code: int, reason: str) -> None:
        """Close the connection; harmless when it is closed."""


class SocketConnection:
    """A WebSocket: messages in text frames, audio in binary ones."""

    def __init__(self, receive: Receive, send: Send, lost: asyncio.Future[int] | None = None) -> None:
        """`lost` is the close code when the socket has ended, where the server says so at once."""
        self._receive = receive
        self._send = send
        self._lost: asyncio.Future[int] = lost or asyncio.get_running_loop().create_future()
        self._is_open = True

    async def receive(self) -> str | bytes:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._is_open = False
            raise Disconnected(int(message.get("code") or 1006))
        text: str | None = message.get("text")
        return (message.get("bytes") or b"") if text is None else text

    async def gone(self) -> int:
        return await asyncio.shield(self._lost)

    async def say(self, message: JsonObject) -> None:
        await self._out({"type": "websocket.send", "text": json_text(message)})

    async def sound(self, data: bytes) -> None:
        """Send audio.

        Raises:
            FloodError: if the client reads too slowly.
        """
        await self._out({"type": "websocket.send", "bytes": data})

    async def close(self, code: int, reason: str) -> None:
        with suppress(FloodError):
            await self._out({"type": "websocket.close", "code": code, "reason": reason[:100]})
        self._is_open = False

    async def _out(self, message: Message) -> None:
        if not self._is_open:
            return
        try:
            async with asyncio.timeout(SLOW_READER_S):
                await self._send(message)
        except TimeoutError:
            self._is_open = False
            raise FloodError("The connection is too slow.", code="too_slow") from None
