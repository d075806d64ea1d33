"""What the tasks of one connection share: the way to its client."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from voiceapp.errors import FloodError
from voiceapp.http.refusals import Send
from voiceapp.protocol.reading import JsonObject
from voiceapp.realtime.transports.interface import json_text

SEND_TIMEOUT_S = 10.0
"""A client who does not read for this long has lost the connection."""
SILENCE_S = 23.0
"""A task whose client sends nothing for this long fails, as the vendor's do."""
TIMED_OUT = "RequestTimeOut"
SILENT = f"No input came for {SILENCE_S:g} seconds: request timeout after {SILENCE_S:g} seconds."


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
