"""What the tasks of one connection share: the way to its client and back."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from voiceapp.errors import FloodError
from voiceapp.http.refusals import Receive, Send
from voiceapp.protocol.reading import JsonObject
from voiceapp.realtime.transports.interface import Disconnected, json_text

SEND_TIMEOUT_S = 10.0
"""A client who does not read for this long has lost the connection."""
SILENCE_S = 23.0
"""A task whose client sends nothing for this long fails, as the vendor's do."""
TIMED_OUT = "RequestTimeOut"
SILENT = f"No input came for {SILENCE_S:g} seconds: request timeout after {SILENCE_S:g} seconds."


class TaskLine(Protocol):
    """A connection that tasks run on."""

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


class Line:
    """Sends to one client, for as long as it reads."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_open = True

    async def say(self, message: JsonObject) -> None:
        """Send an event.

        Raises:
            FloodError: if the client reads too slowly.
        """
        await self._out({"type": "websocket.send", "text": json_text(message)})

    async def sound(self, data: bytes) -> None:
        """Send audio.

        Raises:
            FloodError: if the client reads too slowly.
        """
        await self._out({"type": "websocket.send", "bytes": data})

    async def close(self, code: int, reason: str) -> None:
        """Close the connection; harmless when it is closed."""
        with suppress(FloodError):
            await self._out({"type": "websocket.close", "code": code, "reason": reason[:100]})
        self._is_open = False

    def lost(self) -> None:
        """The client is gone; what is said from now on is dropped."""
        self._is_open = False

    async def _out(self, message: JsonObject) -> None:
        if not self._is_open:
            return
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._send(message)
        except TimeoutError:
            self._is_open = False
            raise FloodError("The connection is too slow.", code="too_slow") from None
        except OSError:
            self._is_open = False


class SocketLine(Line):
    """A WebSocket as a `TaskLine`: messages in text frames, audio in binary ones."""

    def __init__(self, receive: Receive, send: Send, lost: asyncio.Future[int] | None = None) -> None:
        super().__init__(send)
        self._receive = receive
        self._lost: asyncio.Future[int] = lost or asyncio.get_running_loop().create_future()

    async def gone(self) -> int:
        return await asyncio.shield(self._lost)

    async def receive(self) -> str | bytes:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self.lost()
            raise Disconnected(int(message.get("code") or 1006))
        text: str | None = message.get("text")
        return (message.get("bytes") or b"") if text is None else text
