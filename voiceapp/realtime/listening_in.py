"""Listening in: an operator hears an open conversation as it goes on, once its caller was told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial

from django.conf import settings
from django.contrib.auth import get_user
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
LOOKS_AGAIN_S = 5.0
"""Time between looks whether an operator may still listen."""
TOLD_S = 5.0
"""Time that a conversation has to tell its caller."""
UNTOLD = "Its caller cannot be told aloud, so it cannot be listened to; or it ended just now."
ENOUGH = "As many operators listen in already as MAX_LISTENERS allows: {}."

Log = Callable[[RealtimeSession, str], object]

_attending: set[asyncio.Task[None]] = set()
"""Tasks that wait for the ends of listeners."""


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
    listening().add(listener)  # before others can look
    try:
        await run_in_db_thread(log, row, "Asked to listen in.")  # what cannot be noted is not heard
        listener.ask()
        attending = asyncio.create_task(
            _attend(listener, partial(_may_listen, request, find), partial(log, row), timezone.now()),
            name=f"operator in {row.pk}",
        )
        _attending.add(attending)
        attending.add_done_callback(_attending.discard)
        with suppress(TimeoutError):
            async with asyncio.timeout(TOLD_S):
                await listener.decided.wait()
    finally:
        if not listener.decided.is_set():
            listener.end()
    if listener.over.is_set():
        return _refused(UNTOLD)
    return StreamingHttpResponse(listener.read(), content_type="application/octet-stream", headers=HEADERS)


def _may_listen(request: HttpRequest, find: Callable[[], RealtimeSession | None]) -> bool:
    """Return whether the user is still signed in, and may still listen to this conversation."""
    request.session = type(request.session)(request.session.session_key)  # as it is stored now
    request.user = user = get_user(request)
    return user.is_staff and user.has_perm(LISTEN_IN) and find() is not None


async def _attend(
    listener: OperatorListener, may_listen: Callable[[], bool], log: Callable[[str], object], begun: datetime
) -> None:
    """Wait for the end of a listener, end one who may no longer listen, and note it in the audit."""
    try:
        while not listener.over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOKS_AGAIN_S):
                    await listener.over.wait()
            if not (listener.over.is_set() or await run_in_db_thread(may_listen)):
                listener.end()
    finally:
        listener.end()
        listened_for = duration((timezone.now() - begun).total_seconds())
        await run_in_records_thread(log, f"Listened in for {listened_for}.")


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
