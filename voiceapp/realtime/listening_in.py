"""Listening in: an operator hears an open conversation as it goes on, once its caller was told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone

from voiceapp.database.thread import run_in_db_thread, run_in_records_thread
from voiceapp.formats import duration
from voiceapp.http.live import HEADERS
from voiceapp.realtime.lifetime.operator_requests import request_watch
from voiceapp.realtime.lifetime.processes import own_name
from voiceapp.realtime.models import RealtimeSession
from voiceapp.realtime.records.listening import OperatorListener, listening

LISTEN_IN = "realtime.listen_realtimesession"
TOLD_S = 5.0
"""Time that a conversation has to tell its caller."""
UNTOLD = "Its caller cannot be told aloud, so it cannot be listened to; or it ended just now."
ENOUGH = "As many operators listen in already as MAX_LISTENERS allows: {}."

Log = Callable[[RealtimeSession, str], object]

_noting: set[asyncio.Task[None]] = set()
"""Tasks that wait for the end of a listener, to note it in the audit."""


async def listened(request: HttpRequest, find: Callable[[], RealtimeSession | None], log: Log) -> HttpResponseBase:
    """Stream the sound of the conversation that `find` finds, as `BothSides.take` has it; `log` writes into the audit.

    Raises:
        PermissionDenied: if the user may not listen in.
        Http404: if there is no such conversation, or no operator listens in here.
    """
    user = await request.auser()
    if not (user.is_staff and await user.ahas_perm(LISTEN_IN)):
        raise PermissionDenied
    row = await run_in_db_thread(find)
    if row is None or not settings.MAX_LISTENERS:
        raise Http404
    listener = request_watch().listener(row.pk)
    if listener is None or len(listening()) >= settings.MAX_LISTENERS:
        return _refused(_why_not(row) if listener is None else ENOUGH.format(settings.MAX_LISTENERS))
    await run_in_db_thread(log, row, "Asked to listen in.")  # what cannot be noted is not heard
    listener.ask()
    noting = asyncio.create_task(_note_end(listener, row, log, timezone.now()), name=f"operator in {row.pk}")
    _noting.add(noting)
    noting.add_done_callback(_noting.discard)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(TOLD_S):
                await listener.decided.wait()
    finally:
        if not listener.decided.is_set():
            listener.end()
    if listener.over.is_set():
        return _refused(UNTOLD)
    return StreamingHttpResponse(listener.read(), content_type="application/octet-stream", headers=HEADERS)


async def _note_end(listener: OperatorListener, row: RealtimeSession, log: Log, begun: datetime) -> None:
    await listener.over.wait()
    listened_for = duration((timezone.now() - begun).total_seconds())
    await run_in_records_thread(log, row, f"Listened in for {listened_for}.")


def _why_not(row: RealtimeSession) -> str:
    """Return why an operator cannot hear a conversation in this process."""
    if row.ended_at is not None:
        return "This conversation is over."
    if not row.served_by:
        return "Another service holds its sound, so it cannot be listened to here."
    return (
        f"The process {row.served_by} holds this conversation, and {own_name()} answers here. It is heard only through "
        "the process that holds it: try again, or open this page at the address of that process."
    )


def _refused(why: str) -> HttpResponse:
    return HttpResponse(why, status=409, content_type="text/plain; charset=utf-8")
