"""Answers on the wire piece by piece: the response that carries them, and the native frames.

    id:1
    event:result
    :HTTP_STATUS/200
    data:{"output":…,"usage":…,"request_id":"…"}

There is no space behind the colons: older clients cut the names there, and fail on a space.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from django.http import HttpRequest, StreamingHttpResponse

from voiceapp.formats import one_line
from voiceapp.http.error_responses import ErrorResponse, error_response_of

logger = logging.getLogger(__name__)

Item = TypeVar("Item")

EVENTS = {
    "text/event-stream": {
        "schema": {
            "type": "object",
            "description": "Server-sent events.",
            "required": ["data"],
            "properties": {
                "id": {"type": "string"},
                "event": {"type": "string"},
                "data": {"type": "string", "description": "JSON."},
            },
        }
    }
}
"""Description of a stream in the OpenAPI document."""


class StreamedResponse(StreamingHttpResponse):
    """Sends what a generator of bytes gives, and closes the generator when the client goes away.

    Django would put two generators of its own around it, and close only the outer one.
    """

    def __init__(self, content: AsyncGenerator[bytes, None], content_type: str) -> None:
        # A proxy that gathers what it passes on would keep the first words from the reader.
        super().__init__(content, content_type=content_type, headers={"X-Accel-Buffering": "no"})
        self._content = content

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        return self._content


async def begun(pieces: AsyncGenerator[Item, None]) -> AsyncGenerator[Item, None]:
    """Return the pieces once there is a first one: a refusal before it is raised here, and still has a status.

    Raises whatever stands in the way of the first piece.
    """
    first = await anext(pieces)

    async def all_of_them() -> AsyncGenerator[Item, None]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return all_of_them()


def interrupted(request: HttpRequest, error: Exception) -> ErrorResponse:
    """Return the last event of a reply that failed after it began; an unexpected exception is logged whole."""
    refusal = error_response_of(error)
    if refusal.is_fault:
        address = one_line(f"{request.method} {request.path}")
        logger.error("%s broke off (%s)", address, request.request_id, exc_info=error)
    elif refusal.status >= 500:
        logger.warning("%s: %s (%s)", refusal.code, one_line(refusal.message), request.request_id)
    return refusal


def compact(value: Any) -> bytes:
    """JSON in UTF-8 without spaces; half a surrogate pair, which an engine may send, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def frame(number: int, event: str, status: int, data: Any) -> bytes:
    """One frame of the native stream."""
    return b"id:%d\nevent:%s\n:HTTP_STATUS/%d\ndata:%s\n\n" % (number, event.encode(), status, compact(data))


async def native_frames(
    request: HttpRequest, bodies: AsyncGenerator[dict[str, Any], None]
) -> AsyncGenerator[bytes, None]:
    """A frame for every body; if they break off, one that says why."""
    number = 0
    try:
        async with aclosing(bodies):
            async for body in bodies:
                number += 1
                yield frame(number, "result", 200, body)
    except Exception as error:
        refusal = interrupted(request, error)
        told = {"code": refusal.code, "message": refusal.message, "request_id": request.request_id}
        yield frame(number + 1, "error", refusal.status, told)
