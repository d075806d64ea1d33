"""Streams that tell how tasks go on: one task to a program that follows it, many to an operator's page.

However many streams there are, one look at the table serves them all.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from voiceapp.accounts.auth import usable_keys
from voiceapp.database.thread import DatabaseUnavailable, run_in_db_thread
from voiceapp.drain import drain_event
from voiceapp.event_loops import per_loop
from voiceapp.tasks.models import Task
from voiceapp.tasks.states import FINAL
from voiceapp.tasks.store import ROW_ID

logger = logging.getLogger(__name__)

MAX_TASKS = 200
"""Tasks of one page."""
MAX_PAGES = 20
"""In one process: pages of operators that are open and look at work in progress."""
LOOK_EVERY_S = 0.5
KEYS_EVERY_S = 2.0
"""Interval of checks of keys: a revoked one ends its streams within five seconds."""
SHOW_EVERY_S = 1.0
"""Interval of events for a page, which counts seconds."""
COMMENT_EVERY_S = 15.0
"""Silence after which proxies begin to think a connection dead."""
LONGEST_S = 3600.0

COMMENT = b": still there\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Cells = Mapping[str, str]
State = tuple[Any, ...]
News = Mapping[int, Task | None]
"""Tasks that changed, by primary key; None for one that is no more."""


class Subscription:
    """One stream, and the tasks that it tells about."""

    def __init__(self, ids: Collection[int], account_id: int | None, key_id: int | None) -> None:
        self.ids = ids
        self.account_id = account_id
        """None for an operator's page."""
        self.key_id = key_id
        self._seen: dict[int, State | None] = {}
        self._news: dict[int, Task | None] = {}
        self._stirred = asyncio.Event()
        self._is_over = False

    def changed(self, states: Mapping[int, State]) -> set[int]:
        """Return those of its tasks that have changed since it was last told; at first all."""
        return {pk for pk in self.ids if pk not in self._seen or self._seen[pk] != states.get(pk)}

    def tell(self, states: Mapping[int, State], rows: Mapping[int, Task]) -> None:
        """Wake the stream if it has to hear of some of these rows."""
        if changed := self.changed(states):
            self._seen |= {pk: states.get(pk) for pk in changed}
            self._news |= {pk: rows.get(pk) for pk in changed}
            self._stirred.set()

    def end(self) -> None:
        self._is_over = True
        self._stirred.set()

    async def news(self, every_s: float) -> AsyncIterator[News]:
        """Yield changes, as soon as there are any; nothing, after every `every_s` without one.

        It ends when the stream must: the key is good no more, the server stops, or an hour is over.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + LONGEST_S
        while clock() < until:
            with suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await self._stirred.wait()
            if self._is_over:
                return
            self._stirred.clear()
            news, self._news = self._news, {}
            yield news


class TaskWatcher:
    """Looks at all tasks that are followed. Belongs to one event loop, runs only while one is followed."""

    def __init__(self) -> None:
        self._followers: set[Subscription] = set()
        self._looking: asyncio.Task[None] | None = None

    def has_room(self, account_id: int | None) -> bool:
        """Return whether one more stream may begin for an account, or for an operator."""
        held = sum(follower.account_id == account_id for follower in self._followers)
        if account_id is None:
            return held < MAX_PAGES
        most: int = settings.MAX_TASK_STREAMS_PER_ACCOUNT
        in_all: int = settings.MAX_TASK_STREAMS
        return held < most and len(self._followers) < in_all

    @contextmanager
    def follow(
        self, ids: Collection[int], *, account_id: int | None = None, key_id: int | None = None
    ) -> Iterator[Subscription]:
        """A stream about the tasks with these primary keys, until the end of the block."""
        follower = Subscription(ids, account_id, key_id)
        self._followers.add(follower)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="task watcher")
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    async def _look(self) -> None:
        clock = asyncio.get_running_loop().time
        keys_at = clock() + KEYS_EVERY_S
        while self._followers:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await drain_event().wait_begun()
            if drain_event().begun:
                self._end(self._followers)
                return
            try:
                await self._tell()
                if clock() >= keys_at:
                    await self._check_keys()
                    keys_at = clock() + KEYS_EVERY_S
            except DatabaseUnavailable as error:
                logger.warning("tasks that are followed cannot be looked at: %s", error)

    async def _tell(self) -> None:
        followers = set(self._followers)
        states = await run_in_db_thread(_states, {pk for follower in followers for pk in follower.ids})
        changed = {pk for follower in followers for pk in follower.changed(states)} & states.keys()
        rows = await run_in_db_thread(_rows, changed) if changed else {}
        for follower in followers:
            follower.tell(states, rows)

    async def _check_keys(self) -> None:
        asked = {follower.key_id for follower in self._followers if follower.key_id is not None}
        good = await run_in_db_thread(lambda: set(usable_keys(asked))) if asked else set()
        self._end({follower for follower in self._followers if follower.key_id in asked - good})

    @staticmethod
    def _end(followers: Collection[Subscription]) -> None:
        for follower in followers:
            follower.end()


task_watcher = per_loop(TaskWatcher)
"""The watcher of the running event loop: one in a server process."""


async def follow(request: HttpRequest, cells: Callable[[Task], Cells]) -> HttpResponseBase:
    """Server-sent events: at first and at each change, the cells of each task named in `ids`, by primary key.

    Raises:
        PermissionDenied: if the user may not look at tasks.
    """
    user = await request.auser()
    if not (user.is_active and user.is_staff and await user.ahas_perm("tasks.view_task")):
        raise PermissionDenied
    ids = [int(text) for text in request.GET.get("ids", "").split(",") if ROW_ID.fullmatch(text)]
    if not task_watcher().has_room(None):
        return StreamingHttpResponse(status=503, headers=HEADERS)
    return stream(_cells_of(ids[:MAX_TASKS], cells))


def stream(events: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """Events as an answer that no proxy holds back."""
    return StreamingHttpResponse(events, content_type="text/event-stream; charset=utf-8", headers=HEADERS)


async def _cells_of(ids: Collection[int], cells: Callable[[Task], Cells]) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    said = clock()
    told: dict[int, Cells] = {}
    rows: dict[int, Task] = await run_in_db_thread(_rows, ids)
    with task_watcher().follow(ids) as follower:
        async for changed in follower.news(SHOW_EVERY_S):
            rows = {pk: row for pk, row in (rows | dict(changed)).items() if row is not None}
            news = {pk: shown for pk, row in rows.items() if told.get(pk) != (shown := cells(row))}
            told |= news
            if news:
                yield f"data: {json.dumps(news)}\n\n".encode()
                said = clock()
            elif clock() - said >= COMMENT_EVERY_S:
                yield COMMENT
                said = clock()
            if all(row.status in FINAL for row in rows.values()):
                yield b"event: over\ndata: {}\n\n"
                return


def _states(ids: Collection[int]) -> dict[int, State]:
    """Return the status of tasks, and each sign of life from their workers."""
    rows = Task.objects.filter(pk__in=ids).order_by()
    return {pk: tuple(state) for pk, *state in rows.values_list("pk", "version", "status", "progress", "due_at")}


def _rows(ids: Collection[int]) -> dict[int, Task]:
    return {row.pk: row for row in Task.objects.filter(pk__in=ids).prefetch_related("subtasks")}
