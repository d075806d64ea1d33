"""A small honest chat engine: it does what the last message of the user says, word for word.

`say: a|b` answers in these pieces; `break: a|b` fails after them; `call: name {…}` calls a function; `think: a` thinks
before it says "Well."; `see` tells how many images it was shown; `hold: a` answers and then waits to be closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from voiceapp.engines.interfaces import ChatDelta, ChatRequest, ChatUsage, Provider, ToolCallDelta
from voiceapp.errors import EngineUnavailable

INPUT_TOKENS = 7


class Obedient(Provider):
    """A `ChatModel`."""

    def __init__(self, *, says_usage: bool = True) -> None:
        self.asked: list[ChatRequest] = []
        self.closed = 0
        """How many answers ended, one way or another."""
        self._says_usage = says_usage

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        self.asked.append(request)
        try:
            async for delta in self._answer(request):
                yield delta
        finally:
            self.closed += 1

    async def _answer(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        asked = [message for message in request.messages if message.role == "user"][-1]
        how, _, what = asked.content.partition(": ")
        reason, pieces = "stop", what.split("|")
        if how == "call":
            name, _, arguments = what.partition(" ")
            pieces, reason = [], "tool_calls"
            yield ChatDelta(tool_call=ToolCallDelta(0, "call_1", name, ""))
            for part in (arguments[:5], arguments[5:]):
                yield ChatDelta(tool_call=ToolCallDelta(0, arguments=part))
        elif how == "think":
            yield ChatDelta(reasoning=what)
            pieces = ["Well."]
        elif how == "see":
            pieces = [f"{sum(part['type'] == 'image_url' for part in asked.parts)} images"]
        elif how == "fail":
            raise EngineUnavailable("It is out of order.")
        for number, piece in enumerate(pieces, start=1):
            is_over = request.max_tokens is not None and number > request.max_tokens
            if is_over:
                reason = "length"
                break
            probable = ({"token": piece, "logprob": -0.5},) if request.extra.get("logprobs") else ()
            yield ChatDelta(text=piece, logprobs=probable)
        if how == "break":
            raise EngineUnavailable("It stopped in the middle.")
        if how == "bug":
            raise ZeroDivisionError("a secret internal")
        if how == "hold":
            await asyncio.Event().wait()
        usage = ChatUsage(INPUT_TOKENS, len(pieces), cached_tokens=2) if self._says_usage else None
        yield ChatDelta(finish_reason=reason, usage=usage)
