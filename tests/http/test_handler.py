"""Requests have a thread if they need one, are closed in it, and end when their client leaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.signals import request_finished
from django.http import HttpRequest, HttpResponse
from django.urls import path
from pytest_django.fixtures import Settings

from voiceapp.generation.stream import StreamedResponse
from voiceapp.http.handler import Handler
from voiceapp.http.refusals import Message

events: dict[str, asyncio.Event] = {}
ended: list[str] = []


async def plain(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.body)


async def asks(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(await sync_to_async(threading.get_ident)()))


async def waits(request: HttpRequest) -> HttpResponse:
    events["begun"].set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("waits")
    return HttpResponse()


async def returns(request: HttpRequest) -> HttpResponse:
    """Sync code that runs async code, as a sync view does behind middleware."""

    async def within() -> None:
        events["begun"].set()
        await asyncio.Event().wait()

    def sync() -> None:
        ended.append(str(threading.get_ident()))
        async_to_sync(within)()

    await sync_to_async(sync)()
    return HttpResponse()


async def streams(request: HttpRequest) -> StreamedResponse:
    async def words() -> AsyncGenerator[bytes, None]:
        try:
            events["begun"].set()
            yield b"one"
            await asyncio.Event().wait()
        finally:
            ended.append("streams")

    return StreamedResponse(words(), "text/plain")


urlpatterns = [path(f"api/v1/{view.__name__}", view) for view in (plain, asks, returns, waits, streams)]


class Client:
    """What a server would hand over and be told."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self.told: asyncio.Queue[Message] = asyncio.Queue()

    @asynccontextmanager
    async def asking(self, address: str, query: bytes = b"") -> AsyncIterator[asyncio.Task[None]]:
        scope = {"type": "http", "method": "POST", "path": address, "query_string": query, "headers": []}
        self._messages.put_nowait({"type": "http.request", "body": b"ab", "more_body": True})
        self._messages.put_nowait({"type": "http.request", "body": b"c"})
        task = asyncio.create_task(Handler()(scope, self._messages.get, self.told.put))
        yield task
        task.cancel()

    def leave(self) -> None:
        self._messages.put_nowait({"type": "http.disconnect"})

    async def read(self) -> tuple[int, bytes]:
        begin, body = await self.told.get(), await self.told.get()
        return begin["status"], body["body"]


@pytest.fixture(autouse=True)
def _views(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    events["begun"] = asyncio.Event()
    ended.clear()


@pytest.fixture
def finished() -> Iterator[list[int]]:
    """Threads in which requests were finished, and in which their connections are looked after."""
    threads: list[int] = []

    def note(**signal: Any) -> None:
        threads.append(threading.get_ident())

    request_finished.connect(note)
    yield threads
    request_finished.disconnect(note)


async def test_a_request_without_sync_code_has_no_thread(finished: list[int]) -> None:
    async with Client().asking("/api/v1/plain") as asked:
        await asked
    assert finished == [threading.get_ident()]


async def test_a_request_is_finished_in_the_thread_of_its_sync_code(finished: list[int]) -> None:
    client = Client()
    async with client.asking("/api/v1/asks") as asked:
        await asked
    status, thread = await client.read()
    assert (status, finished) == (200, [int(thread)])
    assert finished != [threading.get_ident()]


async def test_sync_code_that_is_left_in_the_middle_is_finished_in_its_thread(finished: list[int]) -> None:
    client = Client()
    async with client.asking("/api/v1/returns") as asked:
        await events["begun"].wait()
        client.leave()
        await asked
    assert finished == [int(ended[0])]


async def test_it_reads_a_body_in_pieces_and_refuses_an_address_that_is_no_text() -> None:
    client = Client()
    for query, expected in ((b"a=b", (200, b"abc")), (b"\xff", (400, b""))):
        async with client.asking("/api/v1/plain", query) as asked:
            await asked
        assert await client.read() == expected


@pytest.mark.parametrize("view", ["waits", "streams"])
@pytest.mark.parametrize("leaves", [True, False])
async def test_its_work_ends_when_the_client_leaves_or_the_server_stops(view: str, leaves: bool) -> None:
    client = Client()
    async with client.asking(f"/api/v1/{view}") as asked:
        await events["begun"].wait()
        client.leave() if leaves else asked.cancel()
        await asyncio.wait([asked])
    assert ended == [view]
    assert asked.cancelled() == (not leaves)
