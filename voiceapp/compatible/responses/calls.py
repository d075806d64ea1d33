"""Translation of a body of `/responses` to the call of a chat model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from voiceapp.agents.answering import read_prompt
from voiceapp.compatible.responses.approvals import read_approvals
from voiceapp.compatible.responses.schemas import FunctionTool, InputItem, ResponseBody, TextFormat
from voiceapp.engines.interfaces import ChatMessage, ToolCall
from voiceapp.engines.messages import approval_requests, told_of
from voiceapp.errors import InvalidParameter
from voiceapp.generation.calls import ChatCall, chat_call
from voiceapp.generation.messages import chat_message
from voiceapp.generation.schemas import (
    ChatMessageBody,
    ChosenFunction,
    ChosenTool,
    Function,
    McpTool,
    MessagePart,
    ResponseFormat,
    Sampling,
    Tool,
    ToolChoice,
)
from voiceapp.protocol.items import McpItem

LOGPROBS = "message.output_text.logprobs"
NEED_STORAGE = {
    "previous_response_id": "responses are not stored here. Send the whole conversation in input.",
    "conversation": "conversations are not stored here. Send the whole conversation in input.",
    "background": "a response is given in the request that asks for it. Leave it out, or ask with stream.",
    "store": "responses are not stored here, and cannot be retrieved later. Leave it out, or send false.",
}
"""Fields that would need what is not kept, and what to say of each."""

Placed = tuple[str, ChatMessage]
"""A message, and where it stands in the body."""


def call_of(body: ResponseBody) -> ChatCall:
    """The call that a request asks for.

    Raises:
        InvalidParameter: if it needs something stored, or an item, a tool or the format cannot be read.
    """
    for name, reason in NEED_STORAGE.items():
        if getattr(body, name) not in (None, False):
            raise InvalidParameter(f"{name}: {reason}", param=name)
    model, variables = read_prompt(body.prompt, "prompt") if body.prompt else (body.model, {})
    if not model:
        raise InvalidParameter("model is required.", param="model")
    items = [InputItem(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    of_servers = read_approvals(items)
    placed = list(_together(_placed(body.instructions, items, of_servers)))
    if not placed:
        raise InvalidParameter("input holds no message.", param="input")
    messages = tuple(message for _, message in placed)
    call = chat_call(model, messages, _sampling(body), messages_at="input", parameters_at="")
    return replace(
        call,
        variables=variables,
        format_at="text.format",
        places=tuple(place for place, _ in placed),
        approvals=tuple(of_servers.values()),
    )


def _placed(
    instructions: str | None, items: Sequence[InputItem], of_servers: Mapping[int, McpItem]
) -> Iterator[Placed]:
    if instructions and items:
        yield "instructions", ChatMessage("system", instructions)
    asked = approval_requests(of_servers.values())
    for number, item in enumerate(items):
        place = f"input.{number}"
        kind = item.type or "message"
        if kind == "message":
            yield place, _message(item, place)
        elif kind == "function_call":
            yield place, _function_call(item, place)
        elif kind == "function_call_output":
            yield place, _function_output(item, place)
        elif number in of_servers:
            for message in told_of(of_servers[number], asked):
                yield place, message
        elif kind == "item_reference":
            raise InvalidParameter(f"{place}: items are not stored here. Send the item itself.", param=place)
        elif kind != "reasoning":
            raise InvalidParameter(
                f"{place}.type: '{kind[:80]}' is not read here; message, function_call and function_call_output are, "
                "and the items of MCP servers.",
                param=f"{place}.type",
            )


def _together(placed: Iterator[Placed]) -> Iterator[Placed]:
    """The same with calls of functions joined to what the assistant said just before: one message, as chat has it."""
    waiting: Placed | None = None
    for place, message in placed:
        if waiting is not None:
            at, before = waiting
            if message.role == before.role == "assistant" and message.tool_calls:
                waiting = at, replace(before, tool_calls=(*before.tool_calls, *message.tool_calls))
                continue
            yield waiting
        waiting = place, message
    if waiting is not None:
        yield waiting


def _message(item: InputItem, place: str) -> ChatMessage:
    if item.role is None:
        raise InvalidParameter(f"{place}.role is required.", param=f"{place}.role")
    return chat_message(ChatMessageBody(role=item.role, content=item.content), place)


def _function_call(item: InputItem, place: str) -> ChatMessage:
    call_id, name = _required(item.call_id, f"{place}.call_id"), _required(item.name, f"{place}.name")
    return ChatMessage("assistant", tool_calls=(ToolCall(call_id, name, item.arguments or ""),))


def _function_output(item: InputItem, place: str) -> ChatMessage:
    call_id = _required(item.call_id, f"{place}.call_id")
    output: str | list[MessagePart] = _required(item.output, f"{place}.output")
    return chat_message(ChatMessageBody(role="tool", content=output, tool_call_id=call_id), place)


def _required(value: Any, place: str) -> Any:
    if value is None:
        raise InvalidParameter(f"{place} is required.", param=place)
    return value


def _sampling(body: ResponseBody) -> Sampling:
    """The parameters by the names that chat has for them."""
    return Sampling(
        temperature=body.temperature,
        top_p=body.top_p,
        max_tokens=body.max_output_tokens,
        logprobs=LOGPROBS in (body.include or ()) or body.top_logprobs is not None or None,
        top_logprobs=body.top_logprobs,
        tools=[_tool(tool, f"tools.{number}") for number, tool in enumerate(body.tools)] if body.tools else None,
        tool_choice=_choice(body),
        parallel_tool_calls=body.parallel_tool_calls,
        response_format=None if body.text is None or body.text.format is None else _format(body.text.format),
        reasoning_effort=None if body.reasoning is None else body.reasoning.effort,
    )


def _tool(tool: FunctionTool, place: str) -> Tool:
    if tool.type == "mcp":
        return Tool.model_validate(tool.model_dump(include={"type", *McpTool.model_fields}))
    if tool.type != "function":
        raise InvalidParameter(
            f"{place}.type: tools of the type '{tool.type[:80]}' are not run here; function is, and mcp for servers "
            "that the operator lists.",
            param=f"{place}.type",
        )
    _required(tool.name, f"{place}.name")
    shape = tool.model_dump(exclude={"type", *McpTool.model_fields}, exclude_none=True)
    return Tool(function=Function.model_validate(shape))


def _choice(body: ResponseBody) -> ToolChoice | None:
    choice = body.tool_choice
    if choice is None or isinstance(choice, str):
        return choice
    return ChosenTool(function=ChosenFunction(name=choice.name))


def _format(asked: TextFormat) -> ResponseFormat:
    kind: Literal["text", "json_object", "json_schema"] = asked.type
    if kind != "json_schema":
        return ResponseFormat(type=kind)
    shape = {
        "name": asked.name or "answer",
        "schema": _required(asked.json_schema, "text.format.schema"),
        "strict": asked.strict,
        "description": asked.description,
    }
    return ResponseFormat(type=kind, json_schema={name: value for name, value in shape.items() if value is not None})
