"""Chat completions: the same answers as the native style's, in OpenAI's words, whole or as `data:` chunks."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from django.http import HttpRequest

from voiceapp.compatible.schemas import CompletionBody
from voiceapp.engines.interfaces import ChatUsage
from voiceapp.generation.accumulator import Accumulator
from voiceapp.generation.calls import ChatCall, chat_call
from voiceapp.generation.chat import ChatOutput
from voiceapp.generation.messages import chat_messages
from voiceapp.generation.stream import compact, interrupted
from voiceapp.http.error_responses import error_body


def call_of(body: CompletionBody) -> ChatCall:
    """The call that a request asks for.

    Raises:
        InvalidParameter: if a message cannot be read.
    """
    messages = chat_messages(body.messages, at="messages")
    return chat_call(body.model, messages, body, messages_at="messages", parameters_at="")


class CompatibleResponse:
    """Writes the completion, or the chunks, of one call."""

    def __init__(self, body: CompletionBody, request: HttpRequest) -> None:
        self._request = request
        self._envelope = {
            "id": f"chatcmpl-{request.request_id}",
            "created": int(time.time()),
            "model": body.model,
        }
        self._count = body.n or 1
        self._has_usage = body.stream_options is not None and bool(body.stream_options.include_usage)

    async def completion(self, pieces: AsyncGenerator[ChatOutput, None]) -> bytes:
        """The whole answer.

        Raises whatever stops the pieces.
        """
        answers = [Accumulator(number) for number in range(self._count)]
        async with aclosing(pieces):
            async for piece in pieces:
                answers[piece.index].add(piece)
        return compact(
            {
                **self._envelope,
                "object": "chat.completion",
                "choices": [_choice(answer) for answer in answers],
                "usage": _usage(piece.usage),
            }
        )

    async def chunks(self, pieces: AsyncGenerator[ChatOutput, None]) -> AsyncGenerator[bytes, None]:
        """The answer as events, ended by `[DONE]`; if it breaks off, the last event says why."""
        begun: set[int] = set()
        called: set[tuple[int, int]] = set()
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    delta = _delta(piece, is_first=piece.index not in begun)
                    begun.add(piece.index)
                    if piece.tool_call is not None:
                        place = (piece.index, piece.tool_call.index)
                        delta["tool_calls"] = [_fragment(piece, is_first=place not in called)]
                        called.add(place)
                    yield self._chunk([_delta_choice(piece, delta)])
            if self._has_usage:
                yield self._chunk([], _usage(piece.usage))
        except Exception as error:
            refusal = interrupted(self._request, error)
            yield _event(compact(error_body(self._request.path_info, refusal, self._request.request_id)))
        else:
            yield _event(b"[DONE]")

    def _chunk(self, choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> bytes:
        chunk = {**self._envelope, "object": "chat.completion.chunk", "choices": choices}
        return _event(compact(chunk | ({"usage": usage} if self._has_usage else {})))


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def _choice(answer: Accumulator) -> dict[str, Any]:
    # A message that only calls functions has no content, not an empty one.
    content = answer.text or None if answer.tool_calls else answer.text
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message["tool_calls"] = [{key: call[key] for key in ("id", "type", "function")} for call in answer.tool_calls]
    return {
        "index": answer.index,
        "message": message,
        "logprobs": {"content": answer.logprobs} if answer.logprobs else None,
        "finish_reason": answer.finish_reason,
    }


def _delta(piece: ChatOutput, *, is_first: bool) -> dict[str, Any]:
    delta: dict[str, Any] = {"role": "assistant", "content": piece.text} if is_first else {}
    if piece.text:
        delta["content"] = piece.text
    if piece.reasoning:
        delta["reasoning_content"] = piece.reasoning
    return delta


def _fragment(piece: ChatOutput, *, is_first: bool) -> dict[str, Any]:
    call = piece.tool_call
    assert call is not None
    if not is_first:
        return {"index": call.index, "function": {"arguments": call.arguments}}
    function = {"name": call.name, "arguments": call.arguments}
    return {"index": call.index, "id": call.call_id, "type": "function", "function": function}


def _delta_choice(piece: ChatOutput, delta: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": piece.index,
        "delta": delta,
        "logprobs": {"content": list(piece.logprobs)} if piece.logprobs else None,
        "finish_reason": piece.finish_reason,
    }


def _usage(usage: ChatUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens}
        | ({"dropped_messages": usage.dropped_messages} if usage.dropped_messages else {}),
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
