"""Translation of the items of a conversation to the messages of a chat request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from voiceapp.engines.interfaces import Briefing, ChatMessage, ChatRequest, ToolCall
from voiceapp.protocol.items import FunctionCall, FunctionOutput, Item, McpItem

MAX_MESSAGES = 200


def messages(items: Iterable[Item], instructions: str) -> tuple[ChatMessage, ...]:
    """Instructions first, then what was typed, heard and said; calls of one response share a message.

    Items without words drop out, and so does what of a reply was not heard (`Message.unheard`).
    """
    found: list[ChatMessage] = []
    items = tuple(items)
    about = [item.fields for item in items if isinstance(item, McpItem)]
    refused = {fields["approval_request_id"] for fields in about if fields.get("approve") is False}
    for item in items:
        if isinstance(item, FunctionCall):
            call = ToolCall(item.call_id, item.name, item.arguments)
            if found and found[-1].role == "assistant" and found[-1].tool_calls:
                found[-1] = replace(found[-1], tool_calls=(*found[-1].tool_calls, call))
            else:
                found.append(ChatMessage("assistant", tool_calls=(call,)))
        elif isinstance(item, McpItem):
            found.extend(_of_a_server(item, refused))
        elif isinstance(item, FunctionOutput):
            found.append(ChatMessage("tool", item.output, tool_call_id=item.call_id))
        elif item.text:
            found.append(ChatMessage(item.role.value, item.text))
    recent = found[-MAX_MESSAGES:]
    while recent and recent[0].role == "tool":  # a tool's output is refused without the call before it
        recent.pop(0)
    return (ChatMessage("system", instructions), *recent) if instructions else tuple(recent)


def _of_a_server(item: McpItem, refused: set[str]) -> tuple[ChatMessage, ...]:
    """A call of a server's tool with what came of it; one that was approved stands as a call of its own."""
    if item.kind == "mcp_call":
        output = item.fields.get("output") or (item.fields.get("error") or {}).get("message") or ""
    elif item.id in refused:
        output = "The user does not allow this call."
    else:
        return ()
    call = ToolCall(item.id, item.fields["name"], item.fields["arguments"])
    return ChatMessage("assistant", tool_calls=(call,)), ChatMessage("tool", output, tool_call_id=item.id)


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
