"""Requests of operators to conversations that are open, in whichever process. One look for all, every second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.utils import timezone

from voiceapp.event_loops import per_loop
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.models import OperatorRequest, RealtimeSession
from voiceapp.realtime.records.listening import OperatorListener

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
MOST_SHOWN = 1000
"""Characters of the latest words of one side."""
GOOD_FOR = timedelta(minutes=1)
"""Age at which a request lapses: its conversation had ended before it was taken."""


class LiveWords:
    """The latest words of both sides of a conversation, and the quality of its network."""

    def __init__(self, quality: Callable[[], str]) -> None:
        self._caller = self._reply = ""
        self._quality = quality

    def add(self, event: ev.ServerEvent) -> None:
        match event:
            case ev.TranscriptionDelta():
                self._caller = event.text + event.stash
            case ev.TranscriptionCompleted():
                self._caller = event.transcript
            case ev.ResponseCreated():
                self._reply = ""
            case ev.AudioTranscriptDelta() | ev.TextDelta():
                self._reply += event.delta

    @property
    def shown(self) -> dict[str, str]:
        words = {"caller": self._caller[-MOST_SHOWN:], "reply": self._reply[-MOST_SHOWN:]}
        return {**words, "quality": self._quality()}


class RequestWatch:
    """Hands requests to the conversations of this event loop, and tells operators what is said in those that they look
    at; runs only while there are any."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[asyncio.Queue[OperatorRequest | OperatorListener], LiveWords]] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def of(self, session_id: str, words: LiveWords) -> Iterator[asyncio.Queue[OperatorRequest | OperatorListener]]:
        """Requests to one conversation, until the end of the block."""
        queue: asyncio.Queue[OperatorRequest | OperatorListener] = asyncio.Queue()
        self._open[session_id] = queue, words
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="operators' requests")
        try:
            yield queue
        finally:
            del self._open[session_id]
            if not self._open and self._looking is not None:
                self._looking.cancel()

    def listener(self, session_id: str) -> OperatorListener | None:
        """Return a listener that may ask to hear a conversation; None where this process does not hold it."""
        held = self._open.get(session_id)
        return OperatorListener(held[0]) if held else None

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                recent = OperatorRequest.objects.filter(asked_at__gte=timezone.now() - GOOD_FOR)
                async for request in recent.filter(taken_at__isnull=True).order_by("pk"):
                    if held := self._open.get(request.session_id):
                        mine = OperatorRequest.objects.filter(pk=request.pk, taken_at__isnull=True)
                        if await mine.aupdate(taken_at=timezone.now()):
                            held[0].put_nowait(request)
                if settings.TRANSCRIPT_DAYS:
                    await self._tell()
            except DatabaseFailure as error:
                logger.warning("requests of operators could not be looked up: %s", error)

    async def _tell(self) -> None:
        """Write the words of conversations that an operator looks at, where they have changed."""
        watched = RealtimeSession.objects.filter(watched_until__gte=timezone.now(), ended_at=None)
        async for session_id, known in watched.values_list("pk", "live_words"):
            if (held := self._open.get(session_id)) and held[1].shown != known:
                mine = RealtimeSession.objects.filter(pk=session_id, ended_at=None)
                await mine.aupdate(live_words=held[1].shown)


request_watch = per_loop(RequestWatch)
"""The watch of the running event loop: one in a server process."""
