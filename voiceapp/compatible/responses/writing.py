"""The answer to `/responses`: whole, or as typed events."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from django.http import HttpRequest

from voiceapp.compatible.responses.items import OutputItems
from voiceapp.compatible.responses.schemas import FunctionTool, ResponseBody
from voiceapp.engines.interfaces import ChatUsage
from voiceapp.generation.chat import ChatOutput
from voiceapp.generation.schemas import McpTool
from voiceapp.generation.stream import compact, interrupted
from voiceapp.http.error_responses import ErrorResponse

Json = dict[str, Any]

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Reason of an incomplete response, by the engine's finish reason."""
RATE_LIMIT, FAULT = "rate_limit_exceeded", "server_error"
"""The two codes of failed responses, of those that OpenAI's libraries know, that happen here."""


class ResponseWriter:
    def __init__(self, body: ResponseBody, request: HttpRequest) -> None:
        self._request = request
        self._output = OutputItems(request.request_id)
        self._created_at = int(time.time())
        self._echo = _echo(body)
        self._ending = "stop"
        self._usage: ChatUsage | None = None

    async def whole(self, pieces: AsyncGenerator[ChatOutput, None]) -> bytes:
        """The response in one object.

        Raises whatever stops the pieces.
        """
        async with aclosing(pieces):
            async for piece in pieces:
                for _ in self._add(piece):
                    pass
        for _ in self._output.end(self._status):
            pass
        return compact(self._response(self._status))

    async def events(self, pieces: AsyncGenerator[ChatOutput, None]) -> AsyncGenerator[bytes, None]:
        """The response as events; if it breaks off, the last is `response.failed`, which says why."""
        number = 0
        async with aclosing(self._told(pieces)) as told:
            async for event in told:
                yield b"event: %s\ndata: %s\n\n" % (
                    event["type"].encode(),
                    compact({**event, "sequence_number": number}),
                )
                number += 1

    async def _told(self, pieces: AsyncGenerator[ChatOutput, None]) -> AsyncGenerator[Json, None]:
        yield self._about("created", "in_progress")
        yield self._about("in_progress", "in_progress")
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    for event in self._add(piece):
                        yield event
        except Exception as error:
            refusal = interrupted(self._request, error)
            yield self._about("failed", "failed", refusal)
            return
        for event in self._output.end(self._status):
            yield event
        yield self._about(self._status, self._status)

    def _add(self, piece: ChatOutput) -> Iterator[Json]:
        self._usage = piece.usage
        self._ending = piece.finish_reason or self._ending
        return self._output.add(piece)

    @property
    def _status(self) -> str:
        return "incomplete" if self._ending in INCOMPLETE else "completed"

    def _about(self, what: str, status: str, refusal: ErrorResponse | None = None) -> Json:
        return {"type": f"response.{what}", "response": self._response(status, refusal)}

    def _response(self, status: str, refusal: ErrorResponse | None = None) -> Json:
        is_over = status != "in_progress"
        reason = INCOMPLETE.get(self._ending) if status == "incomplete" else None
        return {
            "id": f"resp_{self._request.request_id}",
            "object": "response",
            "created_at": self._created_at,
            "status": status,
            "error": None if refusal is None else _error(refusal),
            "incomplete_details": None if reason is None else {"reason": reason},
            **self._echo,
            "output": self._output.items,
            "usage": _usage(self._usage) if is_over and self._usage is not None else None,
        }


def _echo(body: ResponseBody) -> Json:
    """Return the fields of the request that a response repeats."""
    shape = {"type": "text"}
    if body.text is not None and body.text.format is not None:
        shape = body.text.format.model_dump(by_alias=True, exclude_none=True)
    choice = body.tool_choice
    return {
        "background": False,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": body.metadata or {},
        "model": body.model,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": None if body.reasoning is None else body.reasoning.effort, "summary": None},
        "store": False,
        "temperature": body.temperature,
        "text": {"format": shape},
        "tool_choice": choice.model_dump() if choice is not None and not isinstance(choice, str) else choice or "auto",
        "tools": [_tool(tool) for tool in body.tools or ()],
        "top_logprobs": body.top_logprobs or 0,
        "top_p": body.top_p,
        "truncation": body.truncation or "auto",
    }


def _tool(tool: FunctionTool) -> Json:
    if tool.type == "mcp":
        return tool.model_dump(exclude_none=True)
    return tool.model_dump(exclude=set(McpTool.model_fields))


def _error(refusal: ErrorResponse) -> Json:
    return {"code": RATE_LIMIT if refusal.status == 429 else FAULT, "message": refusal.message}


def _usage(usage: ChatUsage) -> Json:
    dropped = {"dropped_messages": usage.dropped_messages} if usage.dropped_messages else {}
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0, **dropped},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
