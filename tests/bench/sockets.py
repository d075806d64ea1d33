"""What carrying events costs, without any speech: many sockets that each send and get small events at a steady rate."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

import websockets
from websockets.asyncio.client import ClientConnection

from tests.bench.serving import Server

EVENTS_PER_S = 20
"""Each way: what a conversation with 50 ms audio events carries."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Events each way through many sockets."""

    sockets: int
    events_per_s: float
    """Both ways together, through the whole server."""
    cpu_us_per_event: float
    core_share: float
    """Of one core, used by the server."""
    sockets_per_core: int
    """How many such sockets would fill one core, from the cost of an event."""
    round_trip_p50_ms: float
    round_trip_p99_ms: float


async def carry(server: Server, key: str, *, sockets: int, seconds: float) -> Carried:
    """Open the sockets, let each retrieve an item 20 times a second, and count."""
    trips: list[float] = []
    is_measured = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        callers = [
            group.create_task(_caller(server.url, key, trips, is_measured, number / sockets / EVENTS_PER_S))
            for number in range(sockets)
        ]
        await asyncio.sleep(2.0 + sockets / 100)
        before = server.cost()
        is_measured.set()
        await asyncio.sleep(seconds)
        is_measured.clear()
        after = server.cost()
        done = len(trips)
        for caller in callers:
            caller.cancel()
    trips.sort()
    elapsed = after.at - before.at
    us_per_event = (after.cpu_s - before.cpu_s) / (2 * done) * 1e6
    return Carried(
        sockets=sockets,
        events_per_s=2 * done / elapsed,
        cpu_us_per_event=us_per_event,
        core_share=(after.cpu_s - before.cpu_s) / elapsed,
        sockets_per_core=int(1e6 / us_per_event / (2 * EVENTS_PER_S)),
        round_trip_p50_ms=trips[done // 2] * 1000,
        round_trip_p99_ms=trips[int(done * 0.99)] * 1000,
    )


async def _caller(url: str, key: str, trips: list[float], is_measured: asyncio.Event, after_s: float) -> None:
    await asyncio.sleep(after_s)
    async with websockets.connect(
        url, additional_headers={"Authorization": f"Bearer {key}"}, ping_interval=None, compression=None
    ) as socket:
        item = {"id": "item_bench", "type": "message", "role": "user"}
        item["content"] = [{"type": "input_text", "text": "How long does an event take?"}]  # type: ignore[assignment]
        await socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
        retrieve = json.dumps({"type": "conversation.item.retrieve", "item_id": "item_bench"})
        sent: list[float] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(_send(socket, retrieve, sent))
            async for message in socket:
                if '"conversation.item.retrieved"' in message:
                    begun = sent.pop(0)
                    if is_measured.is_set():
                        trips.append(time.monotonic() - begun)


async def _send(socket: ClientConnection, text: str, sent: list[float]) -> None:
    due = time.monotonic()
    while True:
        due += 1 / EVENTS_PER_S
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        sent.append(time.monotonic())
        await socket.send(text)
