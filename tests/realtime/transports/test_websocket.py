"""One accepted WebSocket as a transport, over an ASGI server that misbehaves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from voiceapp.errors import FloodError
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.transports import websocket
from voiceapp.realtime.transports.interface import Disconnected
from voiceapp.realtime.transports.limits import MESSAGES_PER_S
from voiceapp.realtime.transports.websocket import WebSocketTransport

CLEARED = ev.AudioCleared(event_id="event_1")


class Server:
    """The server's side of an ASGI connection."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.is_stuck = False
        """The client does not read: `send` waits."""
        self.attempts = 0
        self.transport = WebSocketTransport(self.receive, self.send)

    async def receive(self) -> dict[str, Any]:
        return await self.incoming.get()

    async def send(self, message: Any) -> None:
        self.attempts += 1
        if self.is_stuck:
            await asyncio.Event().wait()
        self.sent.append(message)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(websocket, "SLOW_READER_S", 0.05)
    monkeypatch.setattr(websocket, "CLOSE_TIMEOUT_S", 0.05)
    return Server()


async def test_events_are_json_text_both_ways(server: Server) -> None:
    server.incoming.put_nowait({"type": "websocket.receive", "text": '{"type": "input_audio_buffer.clear"}'})

    assert isinstance(await server.transport.receive(), ev.AudioClear)
    await server.transport.send(CLEARED)

    (message,) = server.sent
    assert message["type"] == "websocket.send"
    assert json.loads(message["text"]) == {"type": "input_audio_buffer.cleared", "event_id": "event_1"}


@pytest.mark.parametrize("message", [{"bytes": b"\0"}, {"bytes": b"\0", "text": None}])
async def test_a_binary_frame_cannot_be_read(server: Server, message: dict[str, Any]) -> None:
    server.incoming.put_nowait({"type": "websocket.receive", **message})

    with pytest.raises(ev.EventError, match="binary frames"):
        await server.transport.receive()


@pytest.mark.parametrize(("told", "code"), [(1001, 1001), (None, 1006), (0, 1006)])
async def test_after_the_caller_left_nothing_is_sent(server: Server, told: int | None, code: int) -> None:
    server.incoming.put_nowait({"type": "websocket.disconnect", "code": told})

    with pytest.raises(Disconnected) as gone:
        await server.transport.receive()
    await server.transport.send(CLEARED)
    await server.transport.close(1000, "")

    assert gone.value.code == code
    assert server.attempts == 0


async def test_a_caller_who_does_not_read_is_given_up_once(server: Server) -> None:
    server.is_stuck = True
    with pytest.raises(FloodError, match="too slow"):
        await server.transport.send(CLEARED)

    await server.transport.send(CLEARED)
    assert server.attempts == 1

    server.is_stuck = False
    await server.transport.close(4408, "too slow")
    assert [message["code"] for message in server.sent] == [4408]


async def test_closing_does_not_wait_for_a_caller_who_does_not_read(server: Server) -> None:
    server.is_stuck = True

    async with asyncio.timeout(10):
        await server.transport.close(1000, "")


async def test_it_closes_once(server: Server) -> None:
    await server.transport.close(4000, "x" * 500)
    await server.transport.close(1000, "")

    (message,) = server.sent
    assert message == {"type": "websocket.close", "code": 4000, "reason": "x" * websocket.CLOSE_REASON_LENGTH}


@pytest.mark.parametrize(("code", "sent"), [(1000, 1000), (4012, 4012), (1006, 1000), (1005, 1000), (1011, 1000)])
async def test_only_codes_that_may_stand_in_a_frame_are_sent(server: Server, code: int, sent: int) -> None:
    await server.transport.close(code, "")

    assert server.sent[0]["code"] == sent


async def test_more_messages_than_anybody_needs_are_a_flood(server: Server) -> None:
    allowed = 10 * MESSAGES_PER_S
    for _ in range(2 * allowed):
        server.incoming.put_nowait({"type": "websocket.receive", "text": '{"type": "input_audio_buffer.clear"}'})
    for _ in range(allowed):
        await server.transport.receive()

    with pytest.raises(FloodError, match="messages a second"):  # noqa: PT012 - somewhere in the next ones
        for _ in range(allowed):
            await server.transport.receive()
