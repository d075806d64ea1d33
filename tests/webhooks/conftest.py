"""Receivers on loopback, the sender's loop, and somebody's program with their key."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.http import HttpResponse
from django.test import AsyncClient
from pytest_django.fixtures import Settings
from standardwebhooks import Webhook

from tests.conftest import Member
from tests.web import Handler, everywhere, listening
from voiceapp.leases.loop import Loop
from voiceapp.leases.wake import on_wake
from voiceapp.webhooks.events import Event, EventKind, publish
from voiceapp.webhooks.queue import DeliveryQueue

PATIENCE_S = 60.0
OF_A_CONVERSATION = [
    "session.created",
    "session.thread_created",
    "session.updated",
    "session.status_run_started",
    "session.thread_run_started",
    "session.thread_idled",
    "session.status_idled",
    "session.thread_terminated",
    "session.status_terminated",
]
"""The kinds of the events about a conversation of one response, in their order."""


@dataclass
class Receiver:
    """Somebody's receiver: what it was sent, and what it answers."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    """Of the next answers; 200 when there is none left."""
    answer: str = "thanks"
    headers: dict[str, str] = field(default_factory=dict)
    """Of every answer."""
    bodies: list[bytes] = field(default_factory=list)
    calls: list[dict[str, str]] = field(default_factory=list)
    """Headers of every call, their names in lower case."""
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    @property
    def kinds(self) -> list[str]:
        return [event["data"]["type"] for event in self.events]

    def verified(self, secret: str, call: int = -1) -> Any:
        """The event of a call, if the signature is good."""
        return Webhook(secret).verify(self.bodies[call], self.calls[call])

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S), self.came:
            await self.came.wait_for(lambda: len(self.calls) >= count)

    async def receive(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        self.calls.append({name.lower(): value for name, value in request.headers.items()})
        async with self.came:
            self.came.notify_all()
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(status=status, text=self.answer, headers=self.headers)


@asynccontextmanager
async def receiving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    async with listening(everywhere(handler), tls=tls) as origin:
        yield f"{origin}/"


@pytest.fixture(autouse=True)
def loopback_is_allowed(settings: Settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with receiving(receiver.receive) as url:
        receiver.url = url
        yield receiver


@dataclass
class Program:
    member: Member
    root: str = "/api/v1/agentstudio/webhook_endpoints"

    async def call(self, method: str, path: str = "", body: Any = None, **query: object) -> HttpResponse:
        headers = {"Authorization": self.member.authorization}
        if method == "GET":
            return await AsyncClient().get(f"{self.root}{path}", query, headers=headers)
        content = "" if body is None else json.dumps(body)
        return await AsyncClient().generic(method, f"{self.root}{path}", content, "application/json", headers=headers)

    async def good(self, method: str, path: str = "", body: Any = None, **query: object) -> dict[str, Any]:
        """What was answered to a call that must succeed."""
        answer = await self.call(method, path, body, **query)
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    async def bad(self, method: str, path: str = "", body: Any = None, **query: object) -> tuple[int, str, str]:
        answer = await self.call(method, path, body, **query)
        found = answer.json()
        assert found.keys() == {"type", "error", "request_id"}
        assert found["type"] == "error"
        return answer.status_code, found["error"]["code"], found["error"]["message"]

    async def subscribe(self, url: str, *kinds: str) -> dict[str, Any]:
        """A new endpoint."""
        return await self.good("POST", "", {"url": url, "events": list(kinds) or [EventKind.TASK_FINISHED]})

    async def happen(
        self, kind: EventKind = EventKind.TASK_FINISHED, data_id: str = "task-1", thread_id: str = ""
    ) -> None:
        await sync_to_async(publish)(self.member.workspace.pk, [Event(kind, data_id, thread_id)])

    async def log(self, endpoint: dict[str, Any], **query: object) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.good("GET", f"/{endpoint['id']}/events", **query))["data"]
        return found

    async def until(self, endpoint: dict[str, Any], *statuses: str) -> list[dict[str, Any]]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.log(endpoint, limit=100)
                if found and {event["delivery"]["status"] for event in found} <= set(statuses):
                    return found
                await asyncio.sleep(0.02)


@pytest.fixture
def program(alice: Member) -> Program:
    return Program(alice)


@pytest.fixture
def stranger(charlie: Member) -> Program:
    return Program(charlie)


@asynccontextmanager
async def sending(line: DeliveryQueue) -> AsyncIterator[Loop]:
    loop = Loop([line], poll_s=0.05)
    forget = on_wake(loop.wake)
    running = asyncio.create_task(loop.run())
    yield loop
    forget()
    loop.stop()
    await running


@pytest.fixture
async def sender(transactional_db: None) -> AsyncIterator[Loop]:
    """The loop that delivers, while a test runs."""
    async with sending(DeliveryQueue()) as loop:
        yield loop


@pytest.fixture
def patient(settings: Settings) -> None:
    """Retries that a test can wait for."""
    settings.WEBHOOK_RETRY_SCHEDULE = [0.05, 0.1]
