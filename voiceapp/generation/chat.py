"""One call of a chat model, whichever style it was asked in: checked, charged, answered piece by piece."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from django.conf import settings
from django.utils import timezone

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import charge
from voiceapp.agents.answering import Answering, answering
from voiceapp.agents.preamble import today
from voiceapp.catalogue.cards import ChatCapabilities, ModelCard
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.interfaces import (
    Briefing,
    ChatDelta,
    ChatModel,
    ChatRequest,
    ChatUsage,
    ToolCallDelta,
)
from voiceapp.engines.models.providers import provider_of
from voiceapp.engines.server_tools import MAX_ROUNDS, approved, connections, listed, offered, replies
from voiceapp.errors import EngineUnavailable, InvalidParameter, ModelNotFound
from voiceapp.generation.calls import ChatCall
from voiceapp.generation.images import with_images
from voiceapp.generation.stop_sequences import StopFilter
from voiceapp.protocol.work import ListTools, ReplyToolCall, ToolsListed

Item = TypeVar("Item")
Piece: TypeAlias = ChatDelta | ReplyToolCall | ToolsListed

BYTES_PER_TOKEN = 4
"""Length of a token of English text, until the engine has counted."""
USUAL_OUTPUT_TOKENS = 1_024
"""Tokens set aside for a reply without a limit, where a budget asks for it."""
TOKENS_PER_IMAGE = 1_024
"""Set aside for an image in a message, where a budget asks for it; the engine says how many tokens it was."""


@dataclass(frozen=True, slots=True)
class ChatOutput:
    """New part of one of the replies."""

    index: int
    """Number of the reply."""
    usage: ChatUsage
    """Usage of all replies so far: estimated at first, the engine's own figures in the last piece."""
    own_output_tokens: int
    """Tokens of this reply so far."""
    text: str = ""
    reasoning: str = ""
    tool_call: ToolCallDelta | None = None
    logprobs: tuple[dict[str, Any], ...] = ()
    finish_reason: str | None = None
    """On the last piece of an answer."""
    of_server: ReplyToolCall | ToolsListed | None = None
    """The model calls a tool of an MCP server, or what came of it; or the tools of a server."""


async def answer(
    caller: Caller, call: ChatCall, *, request_id: str, note: Callable[[str], None] = lambda _: None
) -> AsyncGenerator[ChatOutput, None]:
    """The replies in pieces as they come, each reply's last one with its `finish_reason`.

    Before the first piece `note` is told who replies (`ModelCard.origin`). The ledger is written before the very last.
    Closing the generator, or cancelling its caller, stops the engine.

    Raises:
        InvalidParameter: if the engine cannot do what is asked; the message says why.
        ModelNotFound: if the model does not exist.
        AccessDenied: if the key may not use the model.
        Throttled: if a rate, quota or budget is used up.
        FetchFailed: if an image does not come from its address.
        EngineError: if the engine fails, also between pieces.
    """
    card, agent = await _who_answers(caller, call)
    if agent is not None:
        call = _as_agent(call, agent)
    engine: ChatModel = provider_of(card)
    _check(call, card.chat)
    tally = _Tally(call)
    async with charge(
        caller,
        operation="chat",
        model=card.name,
        family="chat",
        request_id=request_id,
        agent=agent.label or agent.name if agent else "",
        input_tokens=tally.most_input_tokens,
        output_tokens=tally.most_output_tokens,
    ) as meter:
        call = await with_images(call)
        streams = [_one(engine, call, card.chat, number) for number in range(call.count)]
        unfinished = call.count
        async with aclosing(together(streams)) as deltas:
            async for index, part in deltas:
                delta, of_server = (part, None) if isinstance(part, ChatDelta) else (ChatDelta(), part)
                if not tally.has_begun or delta.served_by:
                    note(delta.served_by or card.origin)
                usage = tally.add(index, delta)
                meter.used(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
                if delta.finish_reason is not None:
                    unfinished -= 1
                    if not unfinished:
                        await meter.settle()
                yield ChatOutput(
                    index,
                    usage,
                    tally.output_tokens(index),
                    delta.text,
                    delta.reasoning,
                    delta.tool_call,
                    delta.logprobs,
                    delta.finish_reason,
                    of_server,
                )
        if unfinished:
            raise EngineUnavailable("The model broke off in the middle of its answer.")


async def _who_answers(caller: Caller, call: ChatCall) -> tuple[ModelCard, Answering | None]:
    """Find the model of a call, and the agent that answers with it, if the call names one.

    Raises:
        ModelNotFound: if there is neither.
    """
    if (card := catalogue().find(call.model, "chat")) is not None:
        return card, None
    try:
        agent = await answering(call.model, user_id=caller.user_id, is_guest=caller.is_guest, variables=call.variables)
    except ModelNotFound:
        raise ModelNotFound(f"There is no chat model '{call.model[:80]}' on this server.") from None
    return agent.chat or catalogue().default("chat"), agent


def _as_agent(call: ChatCall, agent: Answering) -> ChatCall:
    """The call with what the agent adds to it, and without what it keeps from callers."""
    request, usual, fixed = call.request, agent.opening, agent.fixed
    temperature = None if "temperature" in fixed else request.temperature
    max_tokens = None if "max_tokens" in fixed else request.max_tokens
    keeps = "instructions" in fixed
    return replace(
        call,
        request=replace(
            request,
            messages=tuple(message for message in request.messages if not (keeps and message.role == "system")),
            tools=() if "tools" in fixed else request.tools,
            temperature=usual.get("temperature") if temperature is None else temperature,
            max_tokens=usual.get("max_tokens") if max_tokens is None else max_tokens,
            briefing=Briefing("", agent.instructions, today(settings.LOCAL_TIME_ZONE, timezone.now())),
        ),
    )


def _check(call: ChatCall, capabilities: ChatCapabilities) -> None:
    """Check a call against what its engine can do.

    Raises:
        InvalidParameter: if the engine cannot do what is asked.
    """
    request, at = call.request, call.parameters_at
    if not capabilities.images:
        for number, message in enumerate(request.messages):
            if message.parts:
                param = f"{call.place(number)}.content"
                raise InvalidParameter(
                    f"{param} holds an image, and the model '{call.model[:80]}' does not accept images. Remove the "
                    "image or choose a model with image input.",
                    param=param,
                )
    if call.approvals is None and call.servers:
        _check_unasked(call)
    if request.tool_choice not in (None, "none", "auto"):
        if not capabilities.tools:
            raise InvalidParameter(
                f"{at}tool_choice asks for a call, and {call.model[:80]} is served by an engine that calls no "
                "functions.",
                param=f"{at}tool_choice",
            )
        if not call.servers:
            _check_choice(request, f"{at}tool_choice")
    if (call.response_format or {}).get("type") == "json_schema" and not capabilities.response_format:
        raise InvalidParameter(
            f"{at}{call.format_at}: {call.model[:80]} is served by an engine that follows no schema.",
            param=f"{at}{call.format_at}",
        )


def _check_unasked(call: ChatCall) -> None:
    """Refuse servers whose tools would have to be approved where that cannot be asked for."""
    for server in call.servers:
        label, at = server["server_label"], f"{call.parameters_at}tools"
        if server.get("require_approval", "always") == "always":
            raise InvalidParameter(
                f"{at}: calls of tools cannot be approved in chat. Set require_approval to never, or use /responses.",
                param=at,
            )
        if not connections()[label].server.allow:
            raise InvalidParameter(
                f"{at}: calls of the tools of '{label}' have to be approved, which chat cannot; use /responses.",
                param=at,
            )


def _check_choice(request: ChatRequest, at: str) -> None:
    if not request.tools:
        raise InvalidParameter(f"{at} asks for a call, and there are no tools.", param=at)
    if isinstance(request.tool_choice, dict):
        name = request.tool_choice["function"]["name"]
        if name not in [tool["function"]["name"] for tool in request.tools]:
            raise InvalidParameter(f"{at} names '{name[:80]}', which is none of the tools.", param=at)


async def _one(
    engine: ChatModel, call: ChatCall, capabilities: ChatCapabilities, number: int
) -> AsyncGenerator[Piece, None]:
    """One answer: ended at a stop sequence, and in JSON where that was asked for."""
    request = call.request
    if request.seed is not None and number:
        request = replace(request, seed=request.seed + number)  # else all answers would be the same one
    extra = dict(request.extra)
    if call.stop:
        extra["stop"] = list(call.stop)
    is_wrapped = (call.response_format or {}).get("type") == "json_object" and not capabilities.response_format
    if call.response_format and capabilities.response_format:
        extra["response_format"] = call.response_format
    stopper, is_first, served_by = StopFilter(call.stop), True, ""
    request = replace(request, extra=extra)
    pieces = _with_servers(engine, call, request) if call.servers else engine.stream(request)
    async with aclosing(pieces) as deltas:
        async for delta in deltas:
            if not isinstance(delta, ChatDelta):
                yield delta
                continue
            served_by = delta.served_by or served_by
            text = stopper.feed(delta.text) if delta.text else ""
            ends = stopper.has_stopped or delta.finish_reason is not None
            if ends:
                text += stopper.flush()
            if is_wrapped:
                text, is_first = _in_json(text, is_first=is_first, is_last=ends), is_first and not text and not ends
            if text != delta.text or stopper.has_stopped:
                delta = replace(delta, text=text, finish_reason="stop" if stopper.has_stopped else delta.finish_reason)
            if ends or text or delta.reasoning or delta.tool_call or delta.usage:
                yield replace(delta, served_by=served_by) if served_by else delta
                served_by = ""
            if stopper.has_stopped:
                return  # and stop the engine; one that ended by itself keeps its connection when read to the end


async def _with_servers(engine: ChatModel, call: ChatCall, request: ChatRequest) -> AsyncGenerator[Piece, None]:
    """The reply of a model that may call tools of servers, after the tools of those that were not listed before.

    Raises:
        EngineUnavailable: if a server cannot be reached and the style has no item that would say so.
    """
    items = call.approvals or ()
    known = [item.fields["server_label"] for item in items if item.kind == "mcp_list_tools"]
    labels = list(dict.fromkeys(server["server_label"] for server in call.servers))
    for label, tools in zip(labels, await asyncio.gather(*map(listed, labels)), strict=True):
        if tools is None and call.approvals is None:
            raise EngineUnavailable(f"The MCP server {label} cannot be reached.")
        if label not in known:
            yield ToolsListed(ListTools("", label), tools)
    found = await offered(call.servers, converses=False, is_guest=False)
    if call.approvals is None:
        found = {name: tool for name, tool in found.items() if not tool.is_asked}
    spoken = replies(engine, request, found, approved(items), shows_calls=call.approvals is not None)
    async with aclosing(spoken) as pieces:
        async for piece in pieces:
            yield piece


def _in_json(text: str, *, is_first: bool, is_last: bool) -> str:
    """A piece of an answer as part of `{"answer": "…"}`: what an engine gives that cannot be told to write JSON."""
    if not text and not is_last:
        return ""
    begun = '{"answer": "' if is_first else ""
    return begun + json.dumps(text, ensure_ascii=False)[1:-1] + ('"}' if is_last else "")


class _Tally:
    """Usage of a call so far: estimated by length until the engine has counted."""

    def __init__(self, call: ChatCall) -> None:
        read = sum(len(message.content.encode()) for message in call.request.messages)
        read += len(json.dumps(call.request.tools)) if call.request.tools else 0
        self._input = -(-read // BYTES_PER_TOKEN)
        self._written = [0] * call.count
        self._said: dict[int, ChatUsage] = {}
        self.has_begun = False
        images = sum(part.get("type") != "text" for message in call.request.messages for part in message.parts)
        self.most_input_tokens = self._input + images * TOKENS_PER_IMAGE
        self.most_output_tokens = call.count * (call.request.max_tokens or USUAL_OUTPUT_TOKENS)
        if call.servers:  # each round reads and writes anew
            self.most_input_tokens *= MAX_ROUNDS + 1
            self.most_output_tokens *= MAX_ROUNDS + 1

    def add(self, index: int, delta: ChatDelta) -> ChatUsage:
        """The usage of all answers, with one more piece."""
        self.has_begun = True
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
            dropped_messages=max(usage.dropped_messages for usage in said),
        )

    def output_tokens(self, index: int) -> int:
        """Return the tokens of one reply so far."""
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
        asyncio.create_task(_next(stream), name=f"choice {number}"): number for number, stream in enumerate(streams)
    }
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=waiting.__getitem__):
                number = waiting.pop(task)
                found = task.result()
                if found is not None:
                    waiting[asyncio.create_task(_next(streams[number]), name=f"choice {number}")] = number
                    yield number, found
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for stream in streams:
            await stream.aclose()


async def _next(stream: AsyncGenerator[Item, None]) -> Item | None:
    return await anext(stream, None)
