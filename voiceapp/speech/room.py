"""Requests of speech that a process answers at once: each holds a recording or a voice for as long as it lasts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import ParamSpec, TypeVar

from django.conf import settings

from voiceapp.errors import Throttled
from voiceapp.event_loops import per_loop

Given = ParamSpec("Given")
Piece = TypeVar("Piece")


class SpeechRoom:
    """Counts the requests in progress. Belongs to one event loop."""

    def __init__(self) -> None:
        self._taken = 0

    async def hold(self, pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[Piece, None]:
        """The pieces, with a place taken from the first until the last, or until this is closed.

        Raises:
            Throttled: if all MAX_SPEECH_REQUESTS places are taken; nothing was done.
        """
        if self._taken >= settings.MAX_SPEECH_REQUESTS:
            raise Throttled(
                "The server transcribes and speaks as much as it can at once. Try again in a moment.",
                code="Throttling.Concurrency",
            )
        self._taken += 1
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        finally:
            self._taken -= 1


speech_room = per_loop(SpeechRoom)


def in_room(work: Callable[Given, AsyncGenerator[Piece, None]]) -> Callable[Given, AsyncGenerator[Piece, None]]:
    """`work` for a caller who waits: refused where there is no room for one more."""
    return lambda *args, **kwargs: speech_room().hold(work(*args, **kwargs))
