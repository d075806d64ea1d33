"""A conversation that a service elsewhere holds, over a network that delays, narrows, cuts and forgets connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from tests.engines.upstream.realtime.test_session import KEY, STILL_S, Conversation, Service, Session
from tests.outages.faults import FaultProxy
from voiceapp.engines.interfaces import Call
from voiceapp.engines.upstream.realtime import connection
from voiceapp.engines.upstream.realtime.provider import UpstreamRealtime
from voiceapp.protocol.forwarded.texts import ForwardedMessage

NARROW_BYTES_PER_S = 10_000
MOST_AHEAD_BYTES = 16_000_000
"""What the buffers of all the connections on the way hold, with room to spare."""


async def greet(session: Session) -> None:
    await session.say("vendor.greeting")


async def respond(session: Session) -> None:
    await session.respond()


@contextlib.asynccontextmanager
async def network_to(service: Service) -> AsyncIterator[FaultProxy]:
    await service.server.start_server()
    assert service.server.port is not None
    proxy = FaultProxy(service.server.port)
    try:
        yield proxy
    finally:
        for session in service.sessions:
            session.is_reading.set()  # the server waits a minute for one that does not
        await asyncio.to_thread(proxy.close)
        await service.server.close()


@contextlib.asynccontextmanager
async def talking(proxy: FaultProxy) -> AsyncIterator[Conversation]:
    model = UpstreamRealtime(base_url=f"http://127.0.0.1:{proxy.port}", api_key=KEY, model="their-model")
    try:
        async with asyncio.TaskGroup() as tasks:
            call = Call(session_id="sess_ours", model="upstream", is_forwarded=True)
            conversation = Conversation(model.open(call, tasks))
            running = tasks.create_task(conversation.run())
            yield conversation
            running.cancel()
    finally:
        await model.close()


async def test_a_cut_in_a_response_fails_it_and_the_conversation_goes_on() -> None:
    service = Service(respond, greet)
    async with network_to(service) as proxy, talking(proxy) as conversation:
        await conversation.wait("response.audio.delta")
        proxy.cut()
        done = await conversation.wait("response.done")
        assert done["response"]["status"] == "failed"
        assert (await conversation.wait("error"))["error"]["code"] == "upstream_connection_lost"
        await conversation.wait("vendor.greeting")
        assert conversation.failure is None


async def test_a_connection_that_falls_silent_without_an_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEARTBEAT_S", 4.0)
    service = Service(respond, greet)
    async with network_to(service) as proxy, talking(proxy) as conversation:
        await conversation.wait("response.audio.delta")
        proxy.faults.is_half_open = True
        assert (await conversation.wait("error"))["error"]["code"] == "upstream_connection_lost"
        proxy.faults.is_half_open = False
        await conversation.wait("vendor.greeting")


async def test_a_narrow_network_holds_the_caller_up_and_costs_no_memory() -> None:
    service = Service()
    async with network_to(service) as proxy, talking(proxy) as conversation:
        await conversation.wait("session.created")
        proxy.faults.bytes_per_s = NARROW_BYTES_PER_S
        wire = {"type": "vendor.note", "note": "x" * 100_000}
        message = ForwardedMessage(text=json.dumps(wire), wire=wire)
        taken = 0
        with contextlib.suppress(TimeoutError):
            while taken < 2 * MOST_AHEAD_BYTES:
                async with asyncio.timeout(STILL_S):
                    await conversation.stream.receive(message)
                taken += len(message.text)
        assert taken < MOST_AHEAD_BYTES
        proxy.faults.bytes_per_s = 0


async def test_a_long_way_to_the_service_only_takes_its_time() -> None:
    service = Service(respond)
    async with network_to(service) as proxy:
        proxy.faults.delay_s = 0.2
        async with talking(proxy) as conversation:
            await conversation.wait("response.audio.delta")
            await service.sessions[0].finish_response()
            assert (await conversation.wait("response.done"))["response"]["status"] == "completed"
            assert not conversation.all("error")
            assert len(service.sessions) == 1
