"""Sound and transcripts as they stream: events, and bare bytes."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from django.http import HttpRequest

from voiceapp.generation.stream import compact, interrupted
from voiceapp.http.error_responses import error_body
from voiceapp.speech.subtitles import brief
from voiceapp.speech.transcription import Segment, Transcript


async def transcript_events(
    request: HttpRequest, pieces: AsyncGenerator[Segment | Transcript, None]
) -> AsyncGenerator[bytes, None]:
    """`transcript.text.delta` for every stretch, `transcript.text.done` with the whole."""
    between = ""
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Transcript):
                    yield event({"type": "transcript.text.done", **brief(piece)})
                else:
                    yield event({"type": "transcript.text.delta", "delta": between + piece.text})
                    between = " "
    except Exception as error:
        yield _failure(request, error)


async def speech_events(
    request: HttpRequest, sound: AsyncGenerator[bytes, None], characters: int
) -> AsyncGenerator[bytes, None]:
    """`speech.audio.delta` with sound in base64, `speech.audio.done` at the end."""
    try:
        async with aclosing(sound):
            async for piece in sound:
                if piece:
                    yield event({"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode()})
        # Speech is counted in characters here; clients want the field.
        usage = {"input_tokens": characters, "output_tokens": 0, "total_tokens": characters}
        yield event({"type": "speech.audio.done", "usage": usage})
    except Exception as error:
        yield _failure(request, error)


async def whole_or_nothing(request: HttpRequest, sound: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The bytes of the file; if they break off, so does the connection, or half a file would look like a whole one.

    Raises what broke them off.
    """
    async with aclosing(sound):
        try:
            async for piece in sound:
                yield piece
        except Exception as error:
            interrupted(request, error)
            raise


def event(data: dict[str, Any]) -> bytes:
    return b"data: " + compact(data) + b"\n\n"


def _failure(request: HttpRequest, error: Exception) -> bytes:
    return event(error_body(request.path_info, interrupted(request, error), request.request_id))
