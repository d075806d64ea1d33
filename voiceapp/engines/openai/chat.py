"""A chat model behind any OpenAI-compatible server: one streamed request for each reply.

Closing the generator closes the connection, which is how such servers are told to stop writing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import aiohttp

from voiceapp.engines.interfaces import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    ChatUsage,
    ToolCallDelta,
)
from voiceapp.engines.openai.client import ServerProvider, read
from voiceapp.engines.openai.sse import MAX_LINE_BYTES, EventStream
from voiceapp.errors import EngineUnavailable

DRAIN_TIMEOUT_S = 0.2

_FINISH_REASONS = {"length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls"}


class OpenAIChat(ServerProvider):
    """A `ChatModel`. One per process."""

    title = "chat server"
    settings = "CHAT"

    def __init__(self, *, path: str = "/chat/completions", **about: Any) -> None:
        """For `about` see `ServerProvider`. Images are sent as they come, by address or as data."""
        super().__init__(**about)
        self._path = path

    def check(self) -> None:
        """See `Provider`: it cannot serve while its server does not answer."""
        if self._server.trouble is not None:
            raise self._server.trouble.with_traceback(None)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The reply of the server in deltas and function calls; it can fail before the first and between two of them.

        Raises:
            EngineUnavailable: if the server cannot serve now.
            EngineTimeout: if the server takes too long.
            EngineRefused: if the server does not accept the request.
        """
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._server.post(self._path, _body(request, self._model), accept="text/event-stream")
            reply = _StreamedReply()
            async with aclosing(_events(response)) as events:
                async for data in events:
                    if data == "[DONE]":
                        break
                    for delta in self._deltas(reply, data):
                        yield delta
            yield reply.last()
            await _drain(response)
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self._server.failure(error) from error
        finally:
            if response is not None:
                response.close()

    def _deltas(self, reply: _StreamedReply, data: str) -> list[ChatDelta]:
        """One event of the stream, read."""
        try:
            event = json.loads(data)
            if not event.get("error"):
                return list(reply.read(event))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise EngineUnavailable(
                f"The {self._server.title} sent something that is not a chat completion."
            ) from error
        raise EngineUnavailable(f"The {self._server.title} stopped with an error: {self._server.message(event)}")


class _StreamedReply:
    """The reply so far; its end is known only when the stream ends."""

    def __init__(self) -> None:
        self._finish_reason: str | None = None
        self._usage: ChatUsage | None = None

    def read(self, event: dict[str, Any]) -> Iterator[ChatDelta]:
        usage = event.get("usage")
        if isinstance(usage, dict):
            self._usage = _usage(usage)
        choices = event.get("choices")
        if not choices:
            return  # the event that carries only the usage
        choice = choices[0]
        # A server that does not stream replies with one whole `message`.
        delta = choice.get("delta") or choice.get("message") or {}
        if reasoning := delta.get("reasoning_content") or delta.get("reasoning"):
            yield ChatDelta(reasoning=str(reasoning))
        if delta.get("content"):
            logprobs = (choice.get("logprobs") or {}).get("content") or ()
            yield ChatDelta(text=str(delta["content"]), logprobs=tuple(logprobs))
        for place, call in enumerate(delta.get("tool_calls") or ()):
            yield ChatDelta(tool_call=_tool_call(call, place))
        if choice.get("finish_reason"):
            self._finish_reason = _FINISH_REASONS.get(str(choice["finish_reason"]), "stop")

    def last(self) -> ChatDelta:
        if self._finish_reason is None:
            raise EngineUnavailable("The chat server broke off in the middle of its reply.")
        return ChatDelta(finish_reason=self._finish_reason, usage=self._usage)


async def _events(response: aiohttp.ClientResponse) -> AsyncGenerator[str, None]:
    """The data of the events in a streamed response, or the whole of one that is not streamed."""
    stream = EventStream()
    if response.content_type == "application/json":
        yield (await read(response, MAX_LINE_BYTES)).decode("utf-8", "replace")
        return
    async for chunk in response.content.iter_any():
        for event in stream.feed(chunk):
            yield event
    for event in stream.finish():
        yield event


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read what follows the end of the response, so that the connection can be used again; not worth a wait."""
    try:
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            await read(response, MAX_LINE_BYTES)
    except (TimeoutError, aiohttp.ClientError):
        return


def _usage(usage: dict[str, Any]) -> ChatUsage:
    read, written = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    return ChatUsage(
        input_tokens=int(usage.get("prompt_tokens") or 0),
        output_tokens=int(usage.get("completion_tokens") or 0),
        cached_tokens=int(read.get("cached_tokens") or 0),
        reasoning_tokens=int(written.get("reasoning_tokens") or 0),
    )


def _tool_call(call: dict[str, Any], place: int) -> ToolCallDelta:
    function = call.get("function") or {}
    index = call.get("index")
    return ToolCallDelta(
        index=index if isinstance(index, int) else place,
        call_id=call.get("id") or "",
        name=function.get("name") or "",
        arguments=function.get("arguments") or "",
    )


def _body(request: ChatRequest, model: str) -> dict[str, Any]:
    optional = {
        "tools": list(request.tools) or None,
        "tool_choice": request.tool_choice if request.tools else None,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
    }
    return {
        **request.extra,
        **{name: value for name, value in optional.items() if value is not None},
        "model": model,
        "messages": [chat_message(message) for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def chat_message(message: ChatMessage) -> dict[str, Any]:
    """A message as OpenAI's interface writes it."""
    wire: dict[str, Any] = {"role": message.role, "content": list(message.parts) or message.content}
    if message.tool_calls:
        wire["content"] = message.content or None
        wire["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire
