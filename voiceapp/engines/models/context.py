"""Makes a conversation fit into a model's context: the oldest exchanges are left out, each whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from voiceapp.engines.interfaces import ChatMessage, ChatRequest
from voiceapp.errors import EngineRefused

Count = Callable[[ChatRequest], Awaitable[int]]

MARKUP_BYTES = 32
"""Around each message, in the template of the model; generous."""
LEAST_REPLY_TOKENS = 16
MOST_TOKEN_BYTES = 32
"""Average length of a token; a longer text is certainly too long, and is not counted, which would take seconds."""


async def fitted(
    request: ChatRequest, *, context_tokens: int, reply_tokens: int, count: Count
) -> tuple[ChatRequest, int]:
    """The request with as much of the conversation as leaves room for the reply, and how many messages were left out.

    `count` gives the exact tokens of a request. What is certainly short enough is not counted, since a token has a byte
    at least.

    Raises:
        EngineRefused: if the last exchange alone is too long.
    """
    room = context_tokens - min(reply_tokens, context_tokens // 2)
    if _bytes(request.messages) + len(str(request.tools)) <= room:
        return request, 0
    messages = request.messages
    excess_bytes = _bytes(messages) - context_tokens * MOST_TOKEN_BYTES
    if excess_bytes > 0:
        messages = _without_oldest(messages, excess_bytes)
        if _bytes(messages) > context_tokens * MOST_TOKEN_BYTES:
            raise EngineRefused(
                f"The conversation is too long: the model reads {context_tokens} tokens, its reply included."
            )
    dropped = len(request.messages) - len(messages)
    request = replace(request, messages=messages)
    while (tokens := await count(request)) > room:
        excess = 1 - room / tokens
        shorter = _without_oldest(messages, round(excess * _bytes(messages)))
        if len(shorter) == len(messages):
            if tokens + LEAST_REPLY_TOKENS <= context_tokens:
                break  # a short reply is better than none
            raise EngineRefused(
                f"The conversation has {tokens} tokens; the model reads {context_tokens}, its reply included."
            )
        dropped += len(messages) - len(shorter)
        messages = shorter
        request = replace(request, messages=messages)
    return request, dropped


def _without_oldest(messages: Sequence[ChatMessage], excess_bytes: int) -> tuple[ChatMessage, ...]:
    """Without the first exchange, and further ones until `excess_bytes` are gone; never without the last."""
    instructions = [message for message in messages if message.role == "system"]
    exchanges: list[list[ChatMessage]] = []
    for message in messages:
        if message.role == "system":
            continue
        if message.role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    gone = 0
    while len(exchanges) > 1 and (gone == 0 or gone < excess_bytes):
        gone += _bytes(exchanges.pop(0))
    return (*instructions, *(message for exchange in exchanges for message in exchange))


def _bytes(messages: Sequence[ChatMessage]) -> int:
    texts = [
        message.content + "".join(call.name + call.arguments for call in message.tool_calls) for message in messages
    ]
    return sum(len(text.encode()) + MARKUP_BYTES for text in texts)
