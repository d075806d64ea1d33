"""One call of a chat model, whichever style it was asked in: checked, charged, answered piece by piece."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.metering import charge
from voiceapp.engines.catalogue import catalogue
from voiceapp.engines.interfaces import (
    ChatCapabilities,
    ChatDelta,
    ChatModel,
    ChatRequest,
    ChatUsage,
    ToolCallDelta,
)
from voiceapp.errors import EngineUnavailable, InvalidParameter
from voiceapp.generation.stopping import StopFilter
from voiceapp.generation.wishes import Wish

Item = TypeVar("Item")

BYTES_PER_TOKEN = 4
"""Of English text, while the engine has not said how many tokens it were."""
USUAL_OUTPUT_TOKENS = 1_024
"""Set aside for an answer whose length nobody limited, where a budget asks for it."""
NO_CAPABILITIES = ChatCapabilities()


@dataclass(frozen=True, slots=True)
class Piece:
    """What is new of one of the answers."""

    index: int
    """Of the answer."""
    usage: ChatUsage
    """Of all answers so far: estimated at first, and the engine's own figures in the last piece."""
    own_output_tokens: int
    """Of this answer so far."""
    text: str = ""
    reasoning: str = ""
    tool_call: ToolCallDelta | None = None
    logprobs: tuple[dict[str, Any], ...] = ()
    finish_reason: str | None = None
    """On the last piece of an answer."""


def check(wish: Wish) -> None:
    """What can be said before anything is charged; of a wish without messages, what can be said of its parameters.

    Raises:
        InvalidParameter: if the engine cannot do what is asked; the message says why.
        ModelNotFound: if there is no such model.
    """
    engine: ChatModel = catalogue().provider(catalogue().get(wish.model, "chat"))
    _check(wish, getattr(engine, "capabilities", NO_CAPABILITIES))


async def answer(caller: Caller, wish: Wish, *, request_id: str) -> AsyncGenerator[Piece, None]:
    """The answers in pieces as they come, each answer's last one with its `finish_reason`.

    The ledger is written before the very last. Closing the generator, or cancelling who waits for it, stops the engine.

    Raises:
        InvalidParameter: if the engine cannot do what is asked; the message says why.
        ModelNotFound, AccessDenied, Throttled, EngineError: as their classes say, also between pieces.
    """
    card = catalogue().get(wish.model, "chat")
    engine: ChatModel = catalogue().provider(card)
    capabilities: ChatCapabilities = getattr(engine, "capabilities", NO_CAPABILITIES)
    _check(wish, capabilities)
    tally = _Tally(wish)
    async with charge(
        caller,
        operation="chat",
        model=card.name,
        family="chat",
        reserve_tokens=tally.most_tokens,
        request_id=request_id,
    ) as meter:
        streams = [_one(engine, wish, capabilities, number) for number in range(wish.count)]
        unfinished = wish.count
        async with aclosing(together(streams)) as deltas:
            async for index, delta in deltas:
                usage = tally.add(index, delta)
                meter.used(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
                if delta.finish_reason is not None:
                    unfinished -= 1
                    if not unfinished:
                        await meter.settle()
                yield Piece(
                    index,
                    usage,
                    tally.output_tokens(index),
                    delta.text,
                    delta.reasoning,
                    delta.tool_call,
                    delta.logprobs,
                    delta.finish_reason,
                )
        if unfinished:
            raise EngineUnavailable("The model broke off in the middle of its answer.")


def _check(wish: Wish, capabilities: ChatCapabilities) -> None:
    """
    Raises:
        InvalidParameter: if the engine cannot do what is asked.
    """
    request, at = wish.request, wish.parameters_at
    if not capabilities.images:
        for number, message in enumerate(request.messages):
            if message.parts:
                param = f"{wish.messages_at}.{number}.content"
                raise InvalidParameter(
                    f"{param} holds an image, and {wish.model[:80]} is served by an engine without eyes: it reads "
                    "text only.",
                    param=param,
                )
    if request.tool_choice not in (None, "none", "auto"):
        if not capabilities.tools:
            raise InvalidParameter(
                f"{at}tool_choice asks for a call, and {wish.model[:80]} is served by an engine that calls no "
                "functions.",
                param=f"{at}tool_choice",
            )
        _check_choice(request, f"{at}tool_choice")
    if (wish.response_format or {}).get("type") == "json_schema" and not capabilities.response_format:
        raise InvalidParameter(
            f"{at}response_format: {wish.model[:80]} is served by an engine that follows no schema.",
            param=f"{at}response_format",
        )


def _check_choice(request: ChatRequest, at: str) -> None:
    if not request.tools:
        raise InvalidParameter(f"{at} asks for a call, and there are no tools.", param=at)
    if isinstance(request.tool_choice, dict):
        name = request.tool_choice["function"]["name"]
        if name not in [tool["function"]["name"] for tool in request.tools]:
            raise InvalidParameter(f"{at} names '{name[:80]}', which is none of the tools.", param=at)


async def _one(
    engine: ChatModel, wish: Wish, capabilities: ChatCapabilities, number: int
) -> AsyncGenerator[ChatDelta, None]:
    """One answer: ended at a stop sequence, and in JSON where that was asked for."""
    request = wish.request
    if request.seed is not None and number:
        request = replace(request, seed=request.seed + number)  # else all answers would be the same one
    extra = dict(request.extra)
    if wish.stop:
        extra["stop"] = list(wish.stop)
    is_wrapped = (wish.response_format or {}).get("type") == "json_object" and not capabilities.response_format
    if wish.response_format and capabilities.response_format:
        extra["response_format"] = wish.response_format
    stopper, is_first = StopFilter(wish.stop), True
    async with aclosing(engine.stream(replace(request, extra=extra))) as deltas:
        async for delta in deltas:
            text = stopper.feed(delta.text) if delta.text else ""
            ends = stopper.has_stopped or delta.finish_reason is not None
            if ends:
                text += stopper.flush()
            if is_wrapped:
                text, is_first = _in_json(text, is_first=is_first, is_last=ends), is_first and not text and not ends
            if text != delta.text or stopper.has_stopped:
                delta = replace(delta, text=text, finish_reason="stop" if stopper.has_stopped else delta.finish_reason)
            if ends or text or delta.reasoning or delta.tool_call or delta.usage:
                yield delta
            if stopper.has_stopped:
                return  # and stop the engine; one that ended by itself keeps its connection when read to the end


def _in_json(text: str, *, is_first: bool, is_last: bool) -> str:
    """A piece of an answer as part of `{"answer": "…"}`: what an engine gives that cannot be told to write JSON."""
    if not text and not is_last:
        return ""
    begun = '{"answer": "' if is_first else ""
    return begun + json.dumps(text, ensure_ascii=False)[1:-1] + ('"}' if is_last else "")


class _Tally:
    """What a call has used so far: estimated by length until the engine says so."""

    def __init__(self, wish: Wish) -> None:
        read = sum(len(message.content.encode()) for message in wish.request.messages)
        read += len(json.dumps(wish.request.tools)) if wish.request.tools else 0
        self._input = -(-read // BYTES_PER_TOKEN)
        self._written = [0] * wish.count
        self._said: dict[int, ChatUsage] = {}
        self.most_tokens = self._input + wish.count * (wish.request.max_tokens or USUAL_OUTPUT_TOKENS)

    def add(self, index: int, delta: ChatDelta) -> ChatUsage:
        """The usage of all answers, with one more piece."""
        written = delta.text + delta.reasoning
        if delta.tool_call is not None:
            written += delta.tool_call.name + delta.tool_call.arguments
        self._written[index] += len(written.encode("utf-8", "replace"))
        if delta.usage is not None:
            self._said[index] = delta.usage
        said = self._said.values()
        output_tokens = sum(map(self.output_tokens, range(len(self._written))))
        if not said:
            return ChatUsage(self._input, output_tokens)
        return ChatUsage(
            # The messages were read once, however many answers they got.
            input_tokens=max(usage.input_tokens for usage in said) or self._input,
            output_tokens=output_tokens,
            cached_tokens=max(usage.cached_tokens for usage in said),
            reasoning_tokens=sum(usage.reasoning_tokens for usage in said),
        )

    def output_tokens(self, index: int) -> int:
        """Of one answer so far."""
        said = self._said.get(index)
        return -(-self._written[index] // BYTES_PER_TOKEN) if said is None else said.output_tokens


async def together(streams: Sequence[AsyncGenerator[Item, None]]) -> AsyncGenerator[tuple[int, Item], None]:
    """The items of all streams as they come, each with its stream's number; closes all when closed."""
    if len(streams) == 1:
        async with aclosing(streams[0]) as only:
            async for item in only:
                yield 0, item
        return
    waiting: dict[asyncio.Task[Item | None], int] = {
        asyncio.create_task(_next(stream)): number for number, stream in enumerate(streams)
    }
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=waiting.__getitem__):
                number = waiting.pop(task)
                found = task.result()
                if found is not None:
                    waiting[asyncio.create_task(_next(streams[number]))] = number
                    yield number, found
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for stream in streams:
            await stream.aclose()


async def _next(stream: AsyncGenerator[Item, None]) -> Item | None:
    return await anext(stream, None)
