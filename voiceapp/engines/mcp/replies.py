"""Replies of a language model that calls tools of MCP servers on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from voiceapp.catalogue.mcp_servers import McpServer
from voiceapp.engines.interfaces import ChatDelta, ChatMessage, ChatModel, ChatRequest, ChatUsage, ToolCall
from voiceapp.engines.mcp.connection import McpConnection, connections
from voiceapp.errors import EngineError
from voiceapp.formats import identifier
from voiceapp.protocol.items import Item, McpItem
from voiceapp.protocol.work import ReplyToolCall

MAX_ROUNDS = 5
"""So many times tools may be called for one reply."""
MAX_CALLS = 16
"""So many tools are called at a time; the model is not told of the others."""
WAIT_S = 0.5
"""Time that a reply waits for servers that are being connected."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool that the model may call."""

    connection: McpConnection
    about: dict[str, Any]
    is_asked: bool

    def to_function(self) -> dict[str, Any]:
        about = {"name": self.about["name"], "description": self.about["description"]}
        return {"type": "function", "function": {**about, "parameters": self.about["input_schema"]}}


async def offered(
    given: Iterable[dict[str, Any]],
    of_agent: Sequence[str] | None = None,
    *,
    converses: bool,
    is_guest: bool,
    approves: bool = False,
) -> dict[str, Offered]:
    """Return the tools of the servers that a client names, and those of the agent, else those that are offered in every
    conversation.

    Guests name none, and are offered what the operator calls public. A server that is not there yet offers none; what
    the operator wants asked is asked whatever the client says, and is offered unnamed only to one that `approves`.
    """
    asked = {tool["server_label"]: tool for tool in given if tool["type"] == "mcp"}
    wanted = [
        one
        for label, one in connections().items()
        if label in asked or (converses and _is_offered(one.server, of_agent) and (one.server.public or not is_guest))
    ]
    ready = [one.connect() for one in wanted]
    if ready:
        await asyncio.wait(ready, timeout=WAIT_S)
    found: dict[str, Offered] = {}
    for connection, there in zip(wanted, ready, strict=True):
        if not there.done() or there.exception():
            continue
        label = connection.server.label
        named = asked.get(label)
        for tool in there.result()[1]:
            name, is_asked = tool["name"], bool(connection.server.asks(tool["name"]))
            if named is not None:
                is_asked = is_asked or _asks(named, name)
                is_wanted = name in named.get("allowed_tools", [name])
            else:
                of_its_own = of_agent is None or bool({label, f"{label}/{name}"} & {*of_agent})
                is_wanted = of_its_own and (not is_asked or (approves and not is_guest))
            if is_wanted:
                found.setdefault(name, Offered(connection, tool, is_asked))
    return found


def _is_offered(server: McpServer, of_agent: Sequence[str] | None) -> bool:
    if of_agent is None:
        return server.always
    return any(name.partition("/")[0] == server.label for name in of_agent)


async def listed(label: str) -> list[dict[str, Any]] | None:
    """Return the tools of a server; None where it cannot be asked."""
    try:
        return await connections()[label].tools()
    except EngineError:
        return None


def _asks(named: dict[str, Any], tool: str) -> bool:
    approval = named.get("require_approval", "always")
    return tool not in approval["never"]["tool_names"] if isinstance(approval, dict) else approval == "always"


def approved(history: Iterable[Item]) -> list[McpItem]:
    """Return the calls that the client has approved, and that were not made yet."""
    items = [item for item in history if isinstance(item, McpItem)]
    made = {item.fields.get("approval_request_id") for item in items if item.kind == "mcp_call"}
    allowed = {item.fields["approval_request_id"] for item in items if item.fields.get("approve")}
    return [item for item in items if item.kind == "mcp_approval_request" and item.id in allowed - made]


async def replies(
    chat: ChatModel,
    request: ChatRequest,
    tools: dict[str, Offered],
    pending: list[McpItem],
    response_id: str = "",
    *,
    shows_calls: bool = True,
) -> AsyncGenerator[ChatDelta | ReplyToolCall, None]:
    """The reply in deltas, with the calls of tools and what came of them; functions of the client's are its own to run.

    Beside a call of the client's own, a tool is called only if the client is shown what came of it (`shows_calls`).

    Raises:
        EngineError: if the model fails. A tool that fails is told to the model.
    """
    calls = [
        ReplyToolCall(
            response_id, identifier("call"), item.fields["server_label"], item.fields["name"],
            item.fields["arguments"], approval_request_id=item.id,
        )
        for item in pending
    ]  # fmt: skip
    used = ChatUsage()
    request = replace(request, tools=(*request.tools, *(tool.to_function() for tool in tools.values())))
    for round_ in range(MAX_ROUNDS + 1):
        for call in calls:
            yield ChatDelta(is_waiting=True)
            yield call
            done = await _called(call, tools)
            yield done
            request = replace(request, messages=(*request.messages, *_told(done)))
        begun: dict[int, list[str]] = {}
        has_own = False
        asked = request if round_ < MAX_ROUNDS else replace(request, tool_choice="none")
        async with aclosing(chat.stream(asked)) as deltas:
            async for delta in deltas:
                if (call_ := delta.tool_call) and (call_.index in begun or call_.name in tools):
                    parts = begun.setdefault(call_.index, [call_.call_id or identifier("call"), call_.name, ""])
                    parts[2] += call_.arguments
                    continue
                has_own = has_own or delta.tool_call is not None
                if delta.usage:
                    used = _sum(used, delta.usage)
                    delta = replace(delta, usage=used)
                yield replace(delta, finish_reason=None) if begun else delta
        calls = [
            ReplyToolCall(
                response_id, call_id, tools[name].connection.server.label, name, arguments, tools[name].is_asked
            )
            for call_id, name, arguments in islice(begun.values(), MAX_CALLS)
        ]
        if not calls:
            return
        if has_own or any(call.is_asked for call in calls):
            for call in calls if shows_calls else ():
                yield call if call.is_asked else await _called(call, tools)
            yield ChatDelta(finish_reason="tool_calls" if has_own else "stop")
            return
        if request.tool_choice not in (None, "none"):  # what had to be called has been
            request = replace(request, tool_choice="auto")
    yield ChatDelta(finish_reason="stop")


async def _called(call: ReplyToolCall, tools: dict[str, Offered]) -> ReplyToolCall:
    try:
        tool = tools.get(call.name)
        if tool is None or tool.connection.server.label != call.server_label:
            return replace(call, error="This tool is not there any more.")
        return replace(call, output=await tool.connection.call(call.name, call.arguments))
    except EngineError as error:
        return replace(call, error=error.message)


def _told(call: ReplyToolCall) -> tuple[ChatMessage, ChatMessage]:
    made = ToolCall(call.call_id, call.name, call.arguments)
    output = call.error if call.output is None else call.output
    return ChatMessage("assistant", tool_calls=(made,)), ChatMessage("tool", output or "", tool_call_id=call.call_id)


def _sum(one: ChatUsage, other: ChatUsage) -> ChatUsage:
    counts = (one.input_tokens + other.input_tokens, one.output_tokens + other.output_tokens)
    return replace(other, input_tokens=counts[0], output_tokens=counts[1])
