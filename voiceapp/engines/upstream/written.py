"""A reply that a service elsewhere writes, as a chat model of this server's would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from voiceapp.engines.interfaces import ChatDelta, ChatRequest
from voiceapp.errors import EngineError

MAX_CHARACTERS = 100_000
"""Of one reply, its function calls included; it ends there."""
CALL_CHARACTERS = 100
"""What a function call counts besides its arguments."""


class WrittenReply:
    """A `ChatModel` with one reply: what is pushed."""

    def __init__(self) -> None:
        self._text = ""
        self._rest: list[ChatDelta] = []
        """What follows the text."""
        self._failure: EngineError | None = None
        self._characters = 0
        self._changed = asyncio.Event()
        self.is_open = True
        """More of it may come."""

    def push(self, delta: ChatDelta) -> None:
        """Take more of the reply; one that is too long ends."""
        if not self.is_open:
            return
        self._characters += len(delta.text)
        if delta.tool_call is not None:
            self._characters += len(delta.tool_call.arguments) + CALL_CHARACTERS
        if self._characters > MAX_CHARACTERS:
            delta = ChatDelta(finish_reason="length")
        if delta.text and not self._rest:
            self._text += delta.text
        else:
            self._rest.append(delta)
        self.is_open = delta.finish_reason is None
        self._changed.set()

    def fail(self, failure: EngineError) -> None:
        """End the reply with an error."""
        self._failure, self.is_open = failure, False
        self._changed.set()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """See `ChatModel`.

        Raises:
            EngineError: what the service gave up with.
        """
        while True:
            await self._changed.wait()
            self._changed.clear()
            text, self._text = self._text, ""
            rest, self._rest = self._rest, []
            if text:
                yield ChatDelta(text=text)
            for delta in rest:
                yield delta
                if delta.finish_reason is not None:
                    return
            if self._failure is not None:
                raise self._failure
