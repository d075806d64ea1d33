"""Requests of operators to conversations that are open, in whichever process. One look for all, every second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import Error as DatabaseFailure
from django.utils import timezone

from voiceapp.event_loops import per_loop
from voiceapp.realtime.models import OperatorRequest

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
GOOD_FOR = timedelta(minutes=1)
"""Age at which a request lapses: its conversation had ended before it was taken."""


class RequestWatch:
    """Hands requests to the conversations of this event loop; runs only while there are any."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Queue[OperatorRequest]] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def of(self, session_id: str) -> Iterator[asyncio.Queue[OperatorRequest]]:
        """Requests to one conversation, until the end of the block."""
        queue = self._open[session_id] = asyncio.Queue()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="operators' requests")
        try:
            yield queue
        finally:
            del self._open[session_id]
            if not self._open and self._looking is not None:
                self._looking.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                recent = OperatorRequest.objects.filter(asked_at__gte=timezone.now() - GOOD_FOR)
                async for request in recent.filter(taken_at__isnull=True).order_by("pk"):
                    if queue := self._open.get(request.session_id):
                        mine = OperatorRequest.objects.filter(pk=request.pk, taken_at__isnull=True)
                        if await mine.aupdate(taken_at=timezone.now()):
                            queue.put_nowait(request)
            except DatabaseFailure as error:
                logger.warning("requests of operators could not be looked up: %s", error)


request_watch = per_loop(RequestWatch)
"""The watch of the running event loop: one in a server process."""
