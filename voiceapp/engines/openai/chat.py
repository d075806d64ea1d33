"""A chat model behind any OpenAI-compatible server: one streamed request for each reply.

Closing the generator closes the connection, which is how such servers are told to stop writing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import aiohttp

from voiceapp.engines.interfaces import (
    Call,
    ChatDelta,
    ChatMessage,
    ChatRequest,
    ChatUsage,
    ToolCallDelta,
)
from voiceapp.engines.messages import briefed
from voiceapp.engines.openai.client import Busy, ServerProvider, Unreachable, read
from voiceapp.engines.openai.lessons import Lessons
from voiceapp.engines.openai.sse import MAX_LINE_BYTES, EventStream
from voiceapp.errors import EngineError, EngineRefused, EngineUnavailable

logger = logging.getLogger(__name__)

DRAIN_TIMEOUT_S = 0.2
AGAIN_S = 0.2
"""Pause before a server that failed is asked once more."""
MOST_LESSONS = 3
"""Refusals of one request that the server is asked again after."""
IDLE_S = 600.0
"""Time without a reply after which a server of one's own may have unloaded its model."""
LOADING_S = 120.0
"""Longest wait for a model that is loaded."""

_FINISH_REASONS = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
_NEAR = re.compile(
    r"https?://(?:localhost|[^/.:]+|[^/:]+\.(?:local|lan|internal)|127\.[\d.]+|10\.[\d.]+|192\.168\.[\d.]+"
    r"|172\.(?:1[6-9]|2\d|3[01])\.[\d.]+|\[::1\])(?:[:/]|$)"
)
"""Addresses on this machine or its network."""


class OpenAIChat(ServerProvider):
    """A `ChatModel`. One per process."""

    title = "chat server"
    settings = "CHAT"

    def __init__(self, *, path: str = "/chat/completions", context_tokens: int = 0, **about: Any) -> None:
        """For `about` see `ServerProvider`, for `context_tokens` `Lessons`. Images are sent as they come, by address or
        as data."""
        super().__init__(**about)
        self._path = path
        self._lessons = Lessons(context_tokens)
        self._may_load = bool(_NEAR.match(about.get("base_url", "")))
        self._wrote_at = -math.inf
        self._warming: asyncio.Task[None] | None = None

    def check(self) -> None:
        """See `Provider`: it cannot serve while its server does not answer."""
        if self._server.trouble is not None:
            raise self._server.trouble.with_traceback(None)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        request = briefed(request)
        if self._is_cold and request.facts.started_at is not None:
            yield ChatDelta(is_waiting=True)
        has_written, attempts, lessons = False, 0, 0
        while True:
            fitting, dropped = await self._lessons.fitted(request)
            body = self._lessons.applied(_body(fitting, self._model))
            try:
                async with aclosing(self._reply(body)) as deltas:
                    async for delta in deltas:
                        self._wrote_at = time.monotonic()
                        has_written = has_written or delta.has_words
                        if delta.usage is not None and dropped:
                            delta = replace(delta, usage=replace(delta.usage, dropped_messages=dropped))
                        yield delta
                return
            except EngineRefused as refused:
                lessons += 1
                if lessons > MOST_LESSONS or not self._lessons.learn(refused, fitting, body):
                    raise
            except EngineError as error:
                attempts += 1
                wait_s = _again_after_s(error)
                if has_written or attempts > 1 or wait_s is None:
                    raise
                await asyncio.sleep(wait_s)

    async def prepare(self, call: Call) -> None:
        """See `Provider`: have the model loaded, and a connection open for the first reply."""
        await self.warm()
        await self.probe()

    async def warm(self) -> None:
        """Have a server of one's own load its model, which may take a minute: this returns at once."""
        if self._is_cold and (self._warming is None or self._warming.done()):
            self._warming = asyncio.create_task(self._load(), name=f"load {self._model}")

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        if self._warming is not None:
            self._warming.cancel()
        await super().close()

    @property
    def _is_cold(self) -> bool:
        """The server may have to load the model first."""
        return self._may_load and time.monotonic() - self._wrote_at > IDLE_S

    async def _load(self) -> None:
        hello = ChatRequest((ChatMessage("user", "Hello"),), max_tokens=1)
        try:
            async with asyncio.timeout(LOADING_S), aclosing(self.stream(hello)) as deltas:
                async for _ in deltas:
                    pass
        except (TimeoutError, EngineError) as error:
            logger.warning("the %s did not load its model: %s", self.title, error)

    async def _reply(self, body: dict[str, Any]) -> AsyncGenerator[ChatDelta, None]:
        """One request and the response to it."""
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._server.post(self._path, body, accept="text/event-stream")
            reply = _StreamedReply()
            async with aclosing(_events(response)) as events:
                async for data in events:
                    if data == "[DONE]":
                        break
                    for delta in self._deltas(reply, data):
                        yield delta
            for delta in reply.last():
                yield delta
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
        self._tags = ThinkTags()

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
            text, thought = self._tags.feed(str(delta["content"]))
            if thought:
                yield ChatDelta(reasoning=thought)
            if text:
                yield ChatDelta(text=text, logprobs=tuple(logprobs))
        for place, call in enumerate(delta.get("tool_calls") or ()):
            yield ChatDelta(tool_call=_tool_call(call, place))
        if choice.get("finish_reason"):
            self._finish_reason = _FINISH_REASONS.get(str(choice["finish_reason"]), "stop")

    def last(self) -> Iterator[ChatDelta]:
        if self._finish_reason is None:
            raise EngineUnavailable("The chat server broke off in the middle of its reply.")
        if held := self._tags.flush():
            yield ChatDelta(text=held)
        yield ChatDelta(finish_reason=self._finish_reason, usage=self._usage)


class ThinkTags:
    """Tells the thoughts that a model writes between `<think>` and `</think>` at the start of its text from its reply,
    however the tags are divided among deltas."""

    OPEN, CLOSE, SPACE = "<think>", "</think>", " "

    def __init__(self) -> None:
        self._awaited = self.OPEN
        """Beginnings that may come next; empty when the reply has begun."""
        self._held = ""

    def feed(self, text: str) -> tuple[str, str]:
        """Take more text, and return its shares of the reply and of the thoughts."""
        text, thought, self._held = self._held + text, "", ""
        if self._awaited == self.OPEN:
            begun = text.lstrip()
            if self.OPEN.startswith(begun) and begun != self.OPEN:
                self._held = text
                return "", ""
            self._awaited = self.CLOSE if begun.startswith(self.OPEN) else ""
            text = begun.removeprefix(self.OPEN) if self._awaited else text
        if self._awaited == self.CLOSE:
            thought, close, reply = text.partition(self.CLOSE)
            if not close:
                held = next((n for n in range(len(self.CLOSE), 0, -1) if text.endswith(self.CLOSE[:n])), 0)
                self._held = text[len(text) - held :]
                return "", text[: len(text) - held]
            self._awaited, text = self.SPACE, reply
        if self._awaited == self.SPACE:
            text = text.lstrip()
            self._awaited = "" if text else self.SPACE
        return text, thought

    def flush(self) -> str:
        """The text has ended: what was held back of the reply."""
        return self._held if self._awaited == self.OPEN else ""


def _again_after_s(error: EngineError) -> float | None:
    """Pause before the server is asked once more; None where that would not help, or come too late."""
    if not isinstance(error, EngineUnavailable) or isinstance(error, Unreachable) or not error.retryable:
        return None
    if error.retry_after_s > 1:
        return None
    return float(error.retry_after_s) if isinstance(error, Busy) else AGAIN_S


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
