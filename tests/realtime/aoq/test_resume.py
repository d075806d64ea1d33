"""A session moves from one kind of transport to another."""

from __future__ import annotations

from typing import Any

from tests.realtime.aoq.peer import Peer, calling, granted
from tests.realtime.product import Product
from tests.realtime.talker import Talker, call
from tests.realtime.webrtc.caller import Caller
from tests.realtime.webrtc.caller import calling as calling_webrtc

QUESTION = "What is twelve times twelve?"
LONG_QUESTION = "What can you do?"


def number(event: dict[str, Any]) -> int:
    return int(event["event_id"].removeprefix("event_"))


def resumption(token: str, talker: Talker | Peer | Caller, heard_ms: int = 0) -> str:
    """What the next connection has to say; of every item whose voice began, so much was heard."""
    last = max(number(one.event) for one in talker.heard)
    items = {event["item_id"] for event in talker.all("response.content_part.added")}
    return f"&resume={token}&last={last}&heard={','.join(f'{item}:{heard_ms}' for item in items)}"


async def test_a_reply_goes_from_transport_to_transport(product: Product) -> None:
    """From a WebSocket to AOQ, from there to WebRTC, and back; at each step a little of it is heard."""
    key = product.keys["good"]
    async with call(product.url, key, query="&resume=on") as socket:
        token = (await socket.wait("session.resumable"))["token"]
        await socket.ask(LONG_QUESTION)
        await socket.wait("response.audio.delta", count=2)
        query = resumption(token, socket, 100)
        socket.socket.transport.abort()
        await socket.wait_closed()
    async with calling(await granted(product.origin, key), awaits="session.resumed", query=query) as aoq:
        await aoq.until(lambda: len(aoq.packets) >= 10)
        query = resumption(token, aoq, 300)
        async with calling_webrtc(product.origin, key, model=f"voice{query}", awaits="session.resumed") as webrtc:
            assert await aoq.wait_closed() in (4013, None)
            await webrtc.until(lambda: webrtc.sounds)
            query = resumption(token, webrtc, 500)
            async with call(product.url, key, query=query, awaits="session.resumed") as last:
                await last.wait("response.audio.delta")
                await last.send("session.finish")
                assert await last.wait_closed() == 1000
    audio_ms = sum(last.audio_ms(delta) for delta in last.all("response.audio.delta"))
    assert audio_ms > 300
    session_id = socket.all("session.created")[0]["session"]["id"]
    rows = product.rows("SELECT transport FROM realtime_realtimesession WHERE id = ?", session_id)
    assert rows == [{"transport": "websocket"}]


async def test_a_lost_aoq_connection_is_resumed(product: Product) -> None:
    key = product.keys["good"]
    async with calling(await granted(product.origin, key), query="&resume=on") as first:
        token = (await first.wait("session.resumable"))["token"]
        query = resumption(token, first)
        assert first.connection.session is not None
        first.connection.session.cancel(4013)
        await product.logged("connection lost, waiting")
    grant = await granted(product.origin, key, model=f"voice{query}")
    async with calling(grant, awaits="session.resumed", query=query) as second:
        await second.ask(QUESTION)
        await second.wait("response.done")
        assert not second.all("session.created")
