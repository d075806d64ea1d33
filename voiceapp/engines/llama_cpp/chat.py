"""A language model from a GGUF file as a `ChatModel`: our client for OpenAI-compatible servers, and a child process.

What llama.cpp lacks is added here: a conversation is made to fit its context, and a model whose template knows no tools
calls functions by grammar. A process that dies before the first word is replaced by the next, and asked again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from voiceapp.engines.interfaces import (
    Briefing,
    Call,
    ChatDelta,
    ChatMessage,
    ChatRequest,
    ChatUsage,
    Provider,
    ToolCallDelta,
)
from voiceapp.engines.llama_cpp.process import HUNG_S, LlamaOptions, LlamaProcess, RunningModel
from voiceapp.engines.llama_cpp.tool_calls import PlannedCall, ToolPlanner, results_in_words, without_tools
from voiceapp.engines.messages import briefed
from voiceapp.engines.models.context import fitted
from voiceapp.engines.openai.chat import OpenAIChat, chat_message
from voiceapp.engines.openai.client import RemoteServer
from voiceapp.errors import EngineError, EngineTimeout, EngineUnavailable

TITLE = "language model"
ENDS_S = 3.0
"""Time until the end of a broken process is known."""
LONGEST_WAITS = 5
"""A reply may take so many times the longest wait for one of its pieces."""
MAX_JSON_BYTES = 16 * 1024 * 1024
RENAMED = {"repetition_penalty": "repeat_penalty"}
"""Parameters that llama.cpp calls otherwise."""
PASSED_ON = frozenset(
    (
        *("top_k", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias"),
        *("parallel_tool_calls", "stop", "response_format"),
    )
)
SHORT_JSON = r"""
root ::= object
object ::= "{" (member ("," member){0,5})? "}"
member ::= "\"" [A-Za-z] [A-Za-z0-9_ -]{0,23} "\":" value
value ::= text | number | "true" | "false" | "null" | "[" (item ("," item){0,4})? "]" | inner
inner ::= "{" (field ("," field){0,3})? "}"
field ::= "\"" [A-Za-z] [A-Za-z0-9_ -]{0,23} "\":" item
item ::= text | number | "true" | "false" | "null"
text ::= "\"" ([^"\\\x00-\x1F] | "\\" ["\\/bnt]){0,120} "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,8}) ("." [0-9]{1,4})?
"""
"""An object without white space that comes to an end: very small models fill JSON of any shape with more and more."""
NO_SAMPLING: Mapping[str, float] = {}


class LlamaChat(Provider):
    """A `ChatModel`. One per process and file."""

    def __init__(
        self,
        *,
        file: str,
        threads: int,
        context_tokens: int,
        slots: int,
        timeout_s: float = 60.0,
        max_reply_tokens: int = 1024,
        instructions: str = "",
        sampling: Mapping[str, float] = NO_SAMPLING,
        quotes_results: bool = False,
        writes_short_json: bool = False,
        idle_s: float | None = None,
    ) -> None:
        """`max_reply_tokens` ends a reply whose length the caller did not limit. `instructions` stand for those that a
        conversation lacks; `sampling` holds llama.cpp's parameters for free text where the caller gives none. With
        `quotes_results` what functions gave is said as it is: very small models get it wrong in words of their own.
        With `writes_short_json` objects of no given schema are short ones (`SHORT_JSON`).
        After `idle_s` without a call the process ends, and the next call starts it."""
        self._file = Path(file)
        options = LlamaOptions(self._file, threads, context_tokens, slots)
        self._process = LlamaProcess(options, hung_s=max(HUNG_S, timeout_s), idle_s=idle_s)
        self._context_tokens = context_tokens
        self._timeout_s = timeout_s
        self._longest_reply_s = LONGEST_WAITS * timeout_s
        self._max_reply_tokens = max_reply_tokens
        self._instructions = instructions
        self._sampling = sampling
        self._quotes_results = quotes_results
        self._writes_short_json = writes_short_json
        self._planner = ToolPlanner()
        self._connection: _Connection | None = None

    def check(self) -> None:
        if not self._file.is_file():
            raise EngineUnavailable(
                "The language model is not on this server yet.",
                remedy=f"There is no {self._file}. Run `python manage.py fetch_models`.",
            )

    async def warm(self) -> None:
        await self._process.running()

    async def prepare(self, call: Call) -> None:
        """See `Provider`: begin to load the model, for which no caller is refused."""
        with suppress(EngineUnavailable):
            await self.warm()

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        await asyncio.to_thread(self._process.close)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        with self._process.used():
            async with aclosing(self._replied(self._prepared(request))) as deltas:
                async for delta in deltas:
                    yield delta

    async def _replied(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The reply of a process that may die before its first word, and is asked again then."""
        ends_at = time.monotonic() + self._longest_reply_s
        for is_last in (False, True):
            if request.facts.started_at is not None and not self._process.is_ready:
                yield ChatDelta(is_waiting=True)
            model = await self._process.running()
            has_begun = False
            try:
                async with aclosing(self._reply(model, request)) as deltas:
                    async for delta in deltas:
                        has_begun = True
                        yield delta
                        if time.monotonic() > ends_at:
                            raise EngineTimeout("The language model took too long for its reply.")
                return
            except EngineUnavailable as broken:
                if is_last or has_begun or not await _has_ended(model):
                    raise _in_our_words(broken) from broken

    def _prepared(self, request: ChatRequest) -> ChatRequest:
        extra = {RENAMED.get(name, name): value for name, value in request.extra.items() if _is_known(name)}
        if (thinks := request.extra.get("enable_thinking")) is not None:
            extra["chat_template_kwargs"] = {"enable_thinking": thinks}
        if self._writes_short_json and (extra.get("response_format") or {}).get("type") == "json_object":
            del extra["response_format"]
            extra["grammar"] = SHORT_JSON
        elif "response_format" not in extra:
            extra = {**self._sampling, **extra}
            if request.temperature is not None:
                extra.pop("temperature", None)
        if not self._instructions:
            request = briefed(request)
        messages = request.messages
        if self._instructions and not any(message.role == "system" for message in messages):
            messages = (ChatMessage("system", self._instructions), *messages)
        return replace(
            request,
            messages=messages,
            briefing=Briefing(),
            max_tokens=request.max_tokens or self._max_reply_tokens,
            seed=None if request.seed is None else request.seed % 2**32,
            extra=extra,
        )

    async def _reply(self, model: RunningModel, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        connection = await self._connected(model)
        if request.tools and not await connection.knows_tools():
            if self._quotes_results and (words := results_in_words(request.messages)):
                yield ChatDelta(text=words)
                used = ChatUsage(await connection.count(without_tools(request)), await connection.count_text(words))
                yield ChatDelta(usage=used, finish_reason="stop")
                return
            calls = await self._planner.plan(request)
            if calls:
                async with aclosing(self._called(connection, calls)) as deltas:
                    async for delta in deltas:
                        yield delta
                return
            request = without_tools(request)
        request, dropped = await fitted(
            request,
            context_tokens=self._context_tokens,
            reply_tokens=request.max_tokens or self._max_reply_tokens,
            count=connection.count,
        )
        async with aclosing(connection.chat.stream(request)) as deltas:
            async for delta in deltas:
                if delta.usage is not None and dropped:
                    delta = replace(delta, usage=replace(delta.usage, dropped_messages=dropped))
                yield delta

    async def _called(self, connection: _Connection, calls: list[PlannedCall]) -> AsyncGenerator[ChatDelta, None]:
        """The calls, one after the other, their arguments as they are written."""
        total = ChatUsage()
        reason = "tool_calls"
        for index, call in enumerate(calls):
            yield ChatDelta(tool_call=ToolCallDelta(index, call.call_id, call.name))
            async with aclosing(connection.chat.stream(call.request)) as deltas:
                async for delta in deltas:
                    if delta.text:
                        yield ChatDelta(tool_call=ToolCallDelta(index, arguments=delta.text))
                    if delta.usage is not None:
                        total = replace(
                            total,
                            input_tokens=total.input_tokens + delta.usage.input_tokens,
                            output_tokens=total.output_tokens + delta.usage.output_tokens,
                        )
                    reason = "length" if delta.finish_reason == "length" else reason
        yield ChatDelta(usage=total, finish_reason=reason)

    async def _connected(self, model: RunningModel) -> _Connection:
        earlier = self._connection
        if earlier is not None and earlier.model is model:
            return earlier
        self._connection = connection = _Connection(model, self._timeout_s)
        if earlier is not None:
            await earlier.close()
        return connection


class _Connection:
    def __init__(self, model: RunningModel, timeout_s: float) -> None:
        self.model = model
        self._server = RemoteServer(
            title=TITLE,
            settings="",
            base_url=model.address,
            api_key=model.key,
            timeout_s=timeout_s,
            keeps_connections=False,
        )
        self.chat = OpenAIChat(server=self._server)
        self._knows_tools: bool | None = None

    async def close(self) -> None:
        await self._server.close()

    async def knows_tools(self) -> bool:
        if self._knows_tools is None:
            properties = await self._server.ask("/props", None, limit=MAX_JSON_BYTES)
            self._knows_tools = bool((properties.get("chat_template_caps") or {}).get("supports_tools"))
        return self._knows_tools

    async def count(self, request: ChatRequest) -> int:
        """The tokens of a request, by the model's own template and vocabulary."""
        body: dict[str, Any] = {"messages": [chat_message(message) for message in request.messages]}
        if request.tools:
            body["tools"] = list(request.tools)
        prompt = await self._server.ask("/apply-template", body, limit=MAX_JSON_BYTES)
        return await self.count_text(prompt["prompt"])

    async def count_text(self, text: str) -> int:
        counted = {"content": text, "parse_special": True}
        return len((await self._server.ask("/tokenize", counted, limit=MAX_JSON_BYTES))["tokens"])


def _is_known(name: str) -> bool:
    return name in PASSED_ON or name in RENAMED


async def _has_ended(model: RunningModel) -> bool:
    """Return whether the process has ended, which takes a moment to be known."""
    try:
        async with asyncio.timeout(ENDS_S):
            await asyncio.shield(asyncio.wrap_future(model.ended))
    except TimeoutError:
        return False
    return True


def _in_our_words(error: EngineUnavailable) -> EngineError:
    return EngineUnavailable("The language model stopped in the middle of its reply.") if error.retryable else error
