"""Where tasks stand, pushed to an operator's page while somebody looks at it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from voiceapp.accounts.bookkeeper import on_the_books
from voiceapp.tasks.models import FINAL, Task

MAX_TASKS = 200
"""Of one page."""
MAX_STREAMS = 20
"""In one process: pages that are open and look at work in progress."""
LOOK_EVERY_S = 1.0
COMMENT_EVERY = 15
"""Looks without news after which a comment keeps proxies from thinking the connection dead."""
LONGEST_S = 3600.0

Cells = Mapping[str, str]
_open = 0


async def follow(request: HttpRequest, cells: Callable[[Task], Cells]) -> HttpResponseBase:
    """Server-sent events: at first and at each change, the cells of each task named in `ids`, by primary key.

    Raises:
        PermissionDenied: if this is nobody who may look at tasks.
    """
    user = await request.auser()
    if not (user.is_active and user.is_staff and await user.ahas_perm("tasks.view_task")):
        raise PermissionDenied
    ids = [int(text) for text in request.GET.get("ids", "").split(",") if text.isascii() and text.isdecimal()]
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if _open >= MAX_STREAMS:
        return StreamingHttpResponse(status=503, headers=headers)
    return StreamingHttpResponse(
        _events(ids[:MAX_TASKS], cells), content_type="text/event-stream; charset=utf-8", headers=headers
    )


async def _events(ids: Sequence[int], cells: Callable[[Task], Cells]) -> AsyncIterator[bytes]:
    global _open
    _open += 1
    try:
        told: dict[int, Cells] = {}
        quiet = 0
        for _ in range(round(LONGEST_S / LOOK_EVERY_S)):
            rows: list[Task] = await on_the_books(lambda: list(Task.objects.filter(pk__in=ids)))
            news = {row.pk: shown for row in rows if told.get(row.pk) != (shown := cells(row))}
            told |= news
            quiet = 0 if news else quiet + 1
            if news:
                yield f"data: {json.dumps(news)}\n\n".encode()
            elif quiet % COMMENT_EVERY == 0:
                yield b": still there\n\n"
            if all(row.status in FINAL for row in rows):
                break
            await asyncio.sleep(LOOK_EVERY_S)
        yield b"event: over\ndata: {}\n\n"
    finally:
        _open -= 1
