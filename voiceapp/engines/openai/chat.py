"""A chat model behind any OpenAI-compatible server: one streamed request for each answer.

Closing the generator closes the connection, which is how such servers are told to stop writing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp

from voiceapp.engines.interfaces import ChatDelta, ChatMessage, ChatRequest, ChatUsage, ToolCallDelta
from voiceapp.engines.openai.sse import MAX_LINE_BYTES, EventStream
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable

CONNECT_TIMEOUT_S = 10.0
DRAIN_TIMEOUT_S = 0.2
MAX_ERROR_CHARS = 300
MAX_ERROR_BODY_BYTES = 64 * 1024
MAX_CONNECTIONS = 256
"""Answers in progress at once; far above what one process talks to."""

_KEY = re.compile(r"\b(?:sk|pk|rk|key|gsk|hf|xai)[-_][\w*.-]{6,}", re.IGNORECASE)
_FINISH_REASONS = {"length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls"}


class OpenAIChat:
    """A `ChatModel`. One per process; its connections belong to the event loop that asks."""

    def __init__(self, *, base_url: str, api_key: str = "", model: str = "", timeout_s: float = 60.0) -> None:
        """`base_url` is what comes before `/chat/completions`; `timeout_s` bounds each wait for bytes."""
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._api_key = api_key
        self._model = model or "default"
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=min(CONNECT_TIMEOUT_S, timeout_s), sock_read=timeout_s
        )
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Raises EngineUnavailable, EngineTimeout or EngineRefused, before or between deltas."""
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._post(_body(request, self._model))
            if response.status != 200:
                raise await self._refusal(response)
            answer = _Answer()
            async with aclosing(_events(response)) as events:
                async for data in events:
                    if data == "[DONE]":
                        break
                    for delta in self._deltas(answer, data):
                        yield delta
            yield answer.last()
            await _drain(response)
        except TimeoutError as error:
            raise EngineTimeout("The chat server did not answer in time.") from error
        except aiohttp.ClientError as error:
            raise EngineUnavailable(_unreachable(error)) from error
        finally:
            if response is not None:
                response.close()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _post(self, body: dict[str, Any]) -> aiohttp.ClientResponse:
        """Send the request, once more when a kept connection turns out to be closed by the other side."""
        for is_last in (False, True):
            try:
                return await self._session().post(self._url, json=body, headers=self._headers(), allow_redirects=False)
            except aiohttp.ServerDisconnectedError:
                if is_last:
                    raise
        raise AssertionError("the second attempt returns or raises")

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            session = aiohttp.ClientSession(
                timeout=self._timeout, connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS), trust_env=False
            )
            self._sessions[loop] = session
        return session

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "text/event-stream"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        return headers

    def _deltas(self, answer: _Answer, data: str) -> list[ChatDelta]:
        """One event of the stream, read."""
        try:
            event = json.loads(data)
            if not event.get("error"):
                return list(answer.read(event))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise EngineUnavailable("The chat server sent something that is not a chat completion.") from error
        raise EngineUnavailable(f"The chat server stopped with an error: {self._message(event)}")

    async def _refusal(self, response: aiohttp.ClientResponse) -> EngineError:
        """What a status other than 200 means."""
        status = response.status
        if status in (401, 403):
            refusal = EngineUnavailable("The chat server refused its key (CHAT_API_KEY).")
            refusal.retryable = False
            return refusal
        if status == 429:
            return EngineUnavailable("The chat server is busy: it answered 429, too many requests.")
        if status in (408, 504):
            return EngineTimeout("The chat server did not answer in time.")
        if not 400 <= status < 500:
            return EngineUnavailable(f"The chat server failed with status {status}.")
        body = await _read(response, MAX_ERROR_BODY_BYTES)
        try:
            said = self._message(json.loads(body))
        except ValueError:
            said = self._shown(body.decode("utf-8", "replace"))
        return EngineRefused(f"The chat server refused the request: {said}" if said else f"It answered {status}.")

    def _message(self, event: object) -> str:
        """The sentence inside an error object, in any of the usual shapes."""
        error = event.get("error", event) if isinstance(event, dict) else event
        if isinstance(error, dict):
            error = error.get("message") or error.get("detail") or json.dumps(error)
        return self._shown(str(error))

    def _shown(self, text: str) -> str:
        """Text of the server elsewhere, made fit to be shown: one line, cut, without keys."""
        if self._api_key:
            text = text.replace(self._api_key, "***")
        return _KEY.sub("***", " ".join(text.split()))[:MAX_ERROR_CHARS]


class _Answer:
    """What has come of one answer; the end of it is known only when the stream ends."""

    def __init__(self) -> None:
        self._finish_reason: str | None = None
        self._usage: ChatUsage | None = None

    def read(self, event: dict[str, Any]) -> Iterator[ChatDelta]:
        usage = event.get("usage")
        if isinstance(usage, dict):
            self._usage = ChatUsage(
                input_tokens=int(usage.get("prompt_tokens") or 0),
                output_tokens=int(usage.get("completion_tokens") or 0),
            )
        choices = event.get("choices")
        if not choices:
            return  # the event that carries only the usage
        choice = choices[0]
        # A server that does not stream answers with one whole `message`.
        delta = choice.get("delta") or choice.get("message") or {}
        if delta.get("content"):
            yield ChatDelta(text=str(delta["content"]))
        for place, call in enumerate(delta.get("tool_calls") or ()):
            yield ChatDelta(tool_call=_tool_call(call, place))
        if choice.get("finish_reason"):
            self._finish_reason = _FINISH_REASONS.get(str(choice["finish_reason"]), "stop")

    def last(self) -> ChatDelta:
        if self._finish_reason is None:
            raise EngineUnavailable("The chat server broke off in the middle of its answer.")
        return ChatDelta(finish_reason=self._finish_reason, usage=self._usage)


async def _events(response: aiohttp.ClientResponse) -> AsyncGenerator[str, None]:
    """The data of the events in a streamed answer, or the whole of one that is not streamed."""
    stream = EventStream()
    if response.content_type == "application/json":
        yield (await _read(response, MAX_LINE_BYTES)).decode("utf-8", "replace")
        return
    async for chunk in response.content.iter_any():
        for event in stream.feed(chunk):
            yield event
    for event in stream.finish():
        yield event


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, or the first `limit` bytes of it."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) >= limit:
            break
    return bytes(body[:limit])


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read what follows the end of the answer, so that the connection can be used again; not worth a wait."""
    try:
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            await _read(response, MAX_LINE_BYTES)
    except (TimeoutError, aiohttp.ClientError):
        return


def _tool_call(call: dict[str, Any], place: int) -> ToolCallDelta:
    function = call.get("function") or {}
    index = call.get("index")
    return ToolCallDelta(
        index=index if isinstance(index, int) else place,
        call_id=call.get("id") or "",
        name=function.get("name") or "",
        arguments=function.get("arguments") or "",
    )


def _unreachable(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
        return "The chat server cannot be reached (CHAT_BASE_URL)."
    return "The connection to the chat server broke."


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
        "messages": [_message(message) for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _message(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["content"] = message.content or None
        wire["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire
