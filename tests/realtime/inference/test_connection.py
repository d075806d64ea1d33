"""How a connection that carries tasks ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, MutableMapping
from typing import Any

import pytest
from django.utils import timezone

from tests.conftest import Member
from voiceapp.accounts.auth import caller_from_bearer
from voiceapp.accounts.models import ApiKey
from voiceapp.realtime.close_codes import KEY_REVOKED
from voiceapp.realtime.doors import API_SOCKET
from voiceapp.realtime.inference import connection
from voiceapp.realtime.inference.connection import SocketConnection
from voiceapp.realtime.inference.runner import TaskRunner
from voiceapp.realtime.lifetime import revocation

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 10.0


class Client:
    def __init__(self) -> None:
        self.to_server: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self.received: list[Mapping[str, Any]] = []

    async def send(self, message: Mapping[str, Any]) -> None:
        self.received.append(message)

    async def connect(self, member: Member) -> TaskRunner:
        caller = await caller_from_bearer(member.authorization)
        return TaskRunner(caller, API_SOCKET, "", SocketConnection(self.to_server.get, self.send))

    def write(self, text: str) -> None:
        self.to_server.put_nowait({"type": "websocket.receive", "text": text})


class SlowClient(Client):
    """One who reads nothing."""

    async def send(self, message: Mapping[str, Any]) -> None:
        self.received.append(message)
        await asyncio.Event().wait()


async def revoke(member: Member) -> None:
    await ApiKey.objects.filter(pk=member.row.pk).aupdate(revoked_at=timezone.now())


async def test_a_revoked_key_ends_a_connection_between_tasks(alice: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "PERIOD_S", 0.02)
    client = Client()
    running = asyncio.create_task((await client.connect(alice)).run())
    await revoke(alice)
    async with asyncio.timeout(PATIENCE_S):
        await running
    assert [message.get("code") for message in client.received] == [KEY_REVOKED]


async def test_a_client_who_reads_nothing_is_let_go(alice: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SLOW_READER_S", 0.05)
    client = SlowClient()
    client.write(json.dumps({"header": {"action": "dance", "task_id": "one"}}))
    client.write("nonsense")
    runner = await client.connect(alice)
    async with asyncio.timeout(PATIENCE_S):
        await runner.run()
    assert len(client.received) == 1
