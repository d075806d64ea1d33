"""Translation of the items of a conversation to the messages of a chat request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from voiceapp.engines.interfaces import Briefing, ChatMessage, ChatRequest, ToolCall
from voiceapp.protocol.items import FunctionCall, FunctionOutput, Item, McpItem

MAX_MESSAGES = 200


def messages(items: Iterable[Item], instructions: str) -> tuple[ChatMessage, ...]:
    """Instructions first, then what was typed, heard and said; calls of one response share a message.

    Items without words drop out, and so does what of a reply was not heard (`Message.unheard`).
    """
    found: list[ChatMessage] = []
    items = tuple(items)
    asked = approval_requests(items)
    for item in items:
        if isinstance(item, FunctionCall):
            call = ToolCall(item.call_id, item.name, item.arguments)
            if found and found[-1].role == "assistant" and found[-1].tool_calls:
                found[-1] = replace(found[-1], tool_calls=(*found[-1].tool_calls, call))
            else:
                found.append(ChatMessage("assistant", tool_calls=(call,)))
        elif isinstance(item, McpItem):
            found.extend(told_of(item, asked))
        elif isinstance(item, FunctionOutput):
            found.append(ChatMessage("tool", item.output, tool_call_id=item.call_id))
        elif item.text:
            found.append(ChatMessage(item.role.value, item.text))
    recent = found[-MAX_MESSAGES:]
    while recent and recent[0].role == "tool":  # a tool's output is refused without the call before it
        recent.pop(0)
    return (ChatMessage("system", instructions), *recent) if instructions else tuple(recent)


def approval_requests(items: Iterable[Item]) -> dict[str, McpItem]:
    """Return the requests to approve a call, by their id."""
    return {item.id: item for item in items if isinstance(item, McpItem) and item.kind == "mcp_approval_request"}


def told_of(item: McpItem, asked: Mapping[str, McpItem]) -> tuple[ChatMessage, ...]:
    """A call of a server's tool with what came of it, or that the client refuses what was `asked`."""
    if item.kind == "mcp_call":
        called, output = item, item.fields.get("output") or _words(item.fields.get("error"))
    elif item.fields.get("approve") is False and item.fields["approval_request_id"] in asked:
        called, output = asked[item.fields["approval_request_id"]], "The user does not allow this call."
    else:
        return ()
    call = ToolCall(called.id, called.fields["name"], called.fields["arguments"])
    return ChatMessage("assistant", tool_calls=(call,)), ChatMessage("tool", output, tool_call_id=called.id)


def _words(error: Any) -> str:
    """Message of a tool's error, in the form of sessions or of `/responses`."""
    said = error.get("message", error.get("content")) if isinstance(error, dict) else error
    return said if isinstance(said, str) else json.dumps(said or "", ensure_ascii=False)


def briefed(request: ChatRequest) -> ChatRequest:
    """The request with its briefing around the caller's instructions, in one message before all others."""
    briefing, messages = request.briefing, list(request.messages)
    own = messages.pop(0).content if messages and messages[0].role == "system" else ""
    spoken = briefing.spoken if request.facts.speaks else ""
    system = "\n\n".join(filter(None, (spoken, briefing.instructions, own, briefing.facts)))
    system_messages = [ChatMessage("system", system)] if system else []
    return replace(request, messages=(*system_messages, *messages), briefing=Briefing())


_MARKUP = re.compile(r"\[([^\[\]]*)\]\([^)]{0,2000}\)|[*_`#>|~]+")


def speakable(text: str) -> str:
    """`text` without the markup that language models like and that cannot be pronounced."""
    return _MARKUP.sub(lambda match: match.group(1) or "", text)
