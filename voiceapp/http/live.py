"""Pages of operators that move: a stream says that something changed, and the page fetches itself anew.

What changed is not in the stream: the page's own view decides what its reader may see.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from voiceapp.database.thread import DatabaseUnavailable, run_in_db_thread
from voiceapp.drain import drain_event

MAX_PAGES = 20
"""Pages that one process tells of changes; further ones stand still until they are loaded again."""
LOOK_EVERY_S = 1.0
COMMENT = b": still there\n\n"
COMMENT_EVERY_S = 15.0
"""Silence after which proxies begin to think a connection dead."""
LONGEST_S = 3600.0
"""Browsers connect again by themselves, and are asked anew who they are."""
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_open: set[int] = set()


async def changes(request: HttpRequest, permission: str, state: Callable[[], Any]) -> HttpResponseBase:
    """Stream an event whenever `state`, which reads the database, returns something else than before.

    Raises:
        PermissionDenied: if the user lacks the permission to look at what it reads.
    """
    user = await request.auser()
    if not (user.is_staff and await user.ahas_perm(permission)):
        raise PermissionDenied
    if len(_open) >= MAX_PAGES:
        return StreamingHttpResponse(status=503, headers=HEADERS)
    return StreamingHttpResponse(_changes(state), content_type="text/event-stream; charset=utf-8", headers=HEADERS)


async def _changes(state: Callable[[], Any]) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    until, said = clock() + LONGEST_S, clock()
    mark = object()
    _open.add(id(mark))
    try:
        known = await run_in_db_thread(state)
        yield b": open\n\n"
        while clock() < until and not drain_event().begun:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await drain_event().wait_begun()
            try:
                found = await run_in_db_thread(state)
            except DatabaseUnavailable:
                continue
            if found != known:
                known, said = found, clock()
                yield b"data: changed\n\n"
            elif clock() - said >= COMMENT_EVERY_S:
                said = clock()
                yield COMMENT
    finally:
        _open.discard(id(mark))
