"""Streams that tell programs how tasks go on.

However many streams there are, one look at the table serves them all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from django.conf import settings

from voiceapp.accounts.auth import usable_keys
from voiceapp.database.thread import DatabaseUnavailable, run_in_db_thread
from voiceapp.drain import drain_event
from voiceapp.event_loops import per_loop
from voiceapp.tasks.models import Task

logger = logging.getLogger(__name__)

MAX_TASKS = 200
"""Tasks that one stream may tell about."""
LOOK_EVERY_S = 0.5
KEYS_EVERY_S = 2.0
"""Interval of checks of keys: a revoked one ends its streams within five seconds."""
LONGEST_S = 3600.0

State = tuple[Any, ...]
News = Mapping[int, Task | None]
"""Tasks that changed, by primary key; None for one that is no more."""


class Subscription:
    """One stream, and the tasks that it tells about."""

    def __init__(self, ids: Collection[int], account_id: int, key_id: int | None) -> None:
        self.ids = ids
        self.account_id = account_id
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

    def has_room(self, account_id: int) -> bool:
        """Return whether one more stream may begin for an account."""
        held = sum(follower.account_id == account_id for follower in self._followers)
        most: int = settings.MAX_TASK_STREAMS_PER_ACCOUNT
        in_all: int = settings.MAX_TASK_STREAMS
        return held < most and len(self._followers) < in_all

    @contextmanager
    def follow(self, ids: Collection[int], *, account_id: int, key_id: int | None = None) -> Iterator[Subscription]:
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


def _states(ids: Collection[int]) -> dict[int, State]:
    """Return the status of tasks, and each sign of life from their workers."""
    rows = Task.objects.filter(pk__in=ids).order_by()
    return {pk: tuple(state) for pk, *state in rows.values_list("pk", "version", "status", "progress", "due_at")}


def _rows(ids: Collection[int]) -> dict[int, Task]:
    return {row.pk: row for row in Task.objects.filter(pk__in=ids).prefetch_related("subtasks")}
