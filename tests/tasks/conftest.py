"""A worker that works while a test runs, a place to fetch files from, and somebody's program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from django.http import HttpResponse
from django.test import AsyncClient
from django.urls import get_resolver
from django.utils import timezone

from tests.conftest import Member
from tests.web import everywhere, listening
from voiceapp.accounts.auth import caller_of_key
from voiceapp.leases.loop import Loop
from voiceapp.leases.wake import on_wake
from voiceapp.tasks import store
from voiceapp.tasks.kinds import Payload, kind_at, kinds
from voiceapp.tasks.models import Subtask, Task
from voiceapp.tasks.work.queue import TaskQueue

FINAL = {"SUCCEEDED", "FAILED", "CANCELED", "UNKNOWN"}
PATIENCE_S = 200.0


@dataclass
class Program:
    member: Member

    async def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return await AsyncClient().generic(
            "POST",
            path,
            "" if body is None else json.dumps(body),
            content_type="application/json",
            headers={"Authorization": self.member.authorization, **headers},
        )

    async def get(self, path: str, **query: object) -> HttpResponse:
        return await AsyncClient().get(path, query, headers={"Authorization": self.member.authorization})

    async def create(self, kind: str, body: Any) -> str:
        answer = await self.post(f"/api/v1/services/{kind}", body, **{"X-DashScope-Async": "enable"})
        assert answer.status_code == 200, answer.content
        assert answer.json()["output"]["task_status"] == "PENDING"
        return str(answer.json()["output"]["task_id"])

    async def look(self, task_id: str) -> dict[str, Any]:
        answer = await self.get(f"/api/v1/tasks/{task_id}")
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    async def follow(self, task_id: str) -> dict[str, Any]:
        """The task when it is over."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if await Task.objects.filter(task_id=task_id, status__in=FINAL).aexists():
                    return await self.look(task_id)
                await asyncio.sleep(0.05)

    async def fetch(self, url: str) -> bytes:
        """A result, by its link, without a key."""
        answer = await AsyncClient().get(url.partition("testserver")[2])
        assert answer.status_code == 200, answer.content
        return b"".join([piece async for piece in answer])


def write(member: Member, **fields: Any) -> Task:
    """A task as a row, with one part; it waits unless `fields` say otherwise."""
    usual = {
        "account": member.account,
        "workspace": member.workspace,
        "key": member.row,
        "kind": "audio/tts/synthesis",
        "model_name": "tts-1",
        "request_id": "r",
        "order": {"format": "wav"},
        "ended_at": timezone.now() if fields.get("status") in FINAL else None,
    }
    task = Task.objects.create(**{**usual, **fields})
    Subtask.objects.create(task=task, index=0, order={"text": "Hello."})
    return task


class PlainKind:
    """What kinds of task have in common that only a test knows."""

    path: str
    time_limit_s = 60.0
    max_attempts = 3
    parallel = 1
    has_results = False

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])


def accept(member: Member, kind: type[PlainKind], **part: Any) -> Task:
    payload = Payload("none", [part])
    return store.accept(caller_of_key(member.row.pk), kind_at(kind.path), payload, request_id="test")


@pytest.fixture
def program(alice: Member) -> Program:
    return Program(alice)


@pytest.fixture
def stranger(charlie: Member) -> Program:
    return Program(charlie)


@pytest.fixture(autouse=True)
def _own_storage(settings: Any, tmp_path: Path) -> None:
    storages = {name: dict(storage) for name, storage in settings.STORAGES.items()}
    storages["tasks"]["OPTIONS"] = {"location": tmp_path / "tasks"}
    settings.STORAGES = storages


@pytest_asyncio.fixture
async def worker(db: None) -> AsyncIterator[Loop]:
    """A loop over the line of tasks, as the server has one."""
    async with working() as loop:
        yield loop


@asynccontextmanager
async def working() -> AsyncIterator[Loop]:
    """The same until the end of the block, for those who change what it reads at its start."""
    loop = Loop([TaskQueue()])
    forget = on_wake(loop.wake)
    running = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        loop.stop()
        await running
        forget()


@contextmanager
def only_kind(settings: Any, kind: type) -> Iterator[None]:
    """Within the block there is only this kind of task; what is served over HTTP stays as it is."""
    assert get_resolver().url_patterns  # made once, of the kinds that there are then
    settings.TASK_KINDS = [f"{kind.__module__}.{kind.__name__}"]
    kinds.cache_clear()
    try:
        yield
    finally:
        kinds.cache_clear()


@asynccontextmanager
async def files_at(contents: dict[str, bytes]) -> AsyncIterator[Callable[[str], str]]:
    """A small server of files on loopback; how they are addressed."""

    async def answer(request: web.Request) -> web.Response:
        body = contents.get(request.path.lstrip("/"))
        return web.Response(status=404) if body is None else web.Response(body=body)

    async with listening(everywhere(answer)) as origin:
        yield lambda name: f"{origin}/{name}"
