"""A MoQ connection through a network that loses and delays, and a relay that is sent nonsense."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import moq
import pytest

from tests.realtime.aoq.peer import calling, client, granted
from tests.realtime.product import Product
from tests.realtime.webrtc.network import Faults, Proxy, in_front
from voiceapp.realtime.aoq import moq_adapter
from voiceapp.realtime.aoq.certificate import RelayCertificate
from voiceapp.realtime.aoq.moq_adapter import ConnectionLost, MoqConnection

OBJECTS = 300
EVENTS_EVERY = 5
MUTATIONS = int(os.environ.get("AOQ_MUTATIONS", "2000"))
MEMORY_BYTES = 40_000_000
"""What a process may grow by while it is sent nonsense; each connection that it began would cost half a megabyte."""


async def echo(connection: MoqConnection) -> None:
    """Send everything back that comes."""

    async def packets() -> None:
        async for number, payload in connection.packets():
            connection.send_packet(number, payload)

    async def events() -> None:
        async for text in connection.events():
            connection.send_event(text)

    await connection.subscribe()
    with suppress(ConnectionLost):
        await asyncio.gather(packets(), events())


@asynccontextmanager
async def echoing(folder: Path) -> AsyncIterator[tuple[int, str]]:
    """The port of a relay that sends everything back, and its fingerprint."""
    certificate = RelayCertificate(folder)
    certificate.renew("127.0.0.1", datetime.now(UTC))
    tasks: set[asyncio.Task[None]] = set()

    async def accept(listening: moq_adapter.Listening) -> None:
        async for incoming in listening.incoming():
            tasks.add(asyncio.create_task(echo(await incoming.accept())))

    async with moq_adapter.listen("127.0.0.1", 0, certificate.path, certificate.path) as listening:
        tasks.add(asyncio.create_task(accept(listening)))
        yield listening.port, certificate.fingerprint
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_everything_gets_through_a_bad_network_and_events_in_their_order(tmp_path: Path) -> None:
    """5 % of the datagrams are lost each way, and each is under way for 40 ms."""
    faults = Faults(loss=0.05, delay_s=0.04)
    origin = moq.OriginProducer()
    broadcast = origin.create_broadcast("client")
    audio, data = broadcast.publish_track("audio"), broadcast.publish_track("data")
    broadcast.announce()
    heard: set[int] = set()
    told: list[int] = []
    async with (
        echoing(tmp_path) as (port, fingerprint),
        in_front(("127.0.0.1", port), faults) as front,
        client(f"https://127.0.0.1:{front}/", fingerprint, origin) as connection,
    ):
        server = await connection.announced_broadcast("server")
        events = await server.subscribe_track("data", moq.Subscription(priority=255, max_age_us=30_000_000))
        sound = await server.subscribe_track("audio", moq.Subscription(priority=200, max_age_us=1_000_000))
        await asyncio.gather(audio.used(), data.used())

        async def listen() -> None:
            while (group := await sound.recv_group()) is not None:
                if await group.read_frame() is not None:
                    heard.add(group.sequence)

        async def read() -> None:
            async for group in events:
                async for frame in group:
                    told.append(json.loads(frame.payload))

        tasks = [asyncio.create_task(listen()), asyncio.create_task(read())]
        open_group = data.append_group()
        for number in range(OBJECTS):
            group = audio.create_group(number)
            group.write_frame(b"x" * 80)
            group.finish()
            if number % EVENTS_EVERY == 0:
                open_group.write_frame(json.dumps(number).encode())
            await asyncio.sleep(0.02)
        with suppress(TimeoutError):
            async with asyncio.timeout(5):  # what is lost at the end is sent again, too
                while len(told) < OBJECTS // EVENTS_EVERY or len(heard) < OBJECTS:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert faults.lost / (faults.lost + faults.passed) > 0.02
    assert told == list(range(0, OBJECTS, EVENTS_EVERY))
    assert len(heard) >= 0.995 * OBJECTS, OBJECTS - len(heard)


async def test_what_is_served_can_be_asked_for_before_the_relay_has_had_time_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser asks as soon as it is connected; a busy loop is told of the connection later than that."""
    has_found = asyncio.Event()
    accept = moq.Request.accept

    async def accept_late(request: moq.Request) -> moq.Session:
        session = await accept(request)
        await has_found.wait()
        return session

    monkeypatch.setattr(moq.Request, "accept", accept_late)
    async with (
        echoing(tmp_path) as (port, fingerprint),
        asyncio.timeout(10),
        client(f"https://127.0.0.1:{port}/", fingerprint) as connection,
    ):
        server = await connection.announced_broadcast("server")
        await server.subscribe_track("audio", moq.Subscription())
        has_found.set()


async def test_a_connection_survives_the_change_of_the_certificate(tmp_path: Path) -> None:
    origin = moq.OriginProducer()
    broadcast = origin.create_broadcast("client")
    audio, data = broadcast.publish_track("audio"), broadcast.publish_track("data")
    broadcast.announce()
    async with (
        echoing(tmp_path) as (port, fingerprint),
        client(f"https://127.0.0.1:{port}/", fingerprint, origin) as connection,
    ):
        server = await connection.announced_broadcast("server")
        sound = await server.subscribe_track("audio", moq.Subscription(priority=200, max_age_us=1_000_000))
        await asyncio.gather(audio.used(), data.used())
        replaced = RelayCertificate(tmp_path)
        replaced.renew("127.0.0.1", datetime.now(UTC) + timedelta(days=11))
        assert replaced.fingerprint != fingerprint
        async with asyncio.timeout(20):
            while await is_shown(port, fingerprint):  # noqa: ASYNC110  # until the library has read the file again
                await asyncio.sleep(0.05)
            audio.write_frame(b"still there")
            returned = await sound.recv_group()
            assert returned is not None
            frame = await returned.read_frame()
    assert frame is not None
    assert frame.payload == b"still there"


async def is_shown(port: int, fingerprint: str) -> bool:
    """Whether a new connection is shown the certificate with this fingerprint."""
    try:
        async with client(f"https://127.0.0.1:{port}/", fingerprint):
            return True
    except moq.Error:
        return False


async def test_groups_have_the_numbers_of_their_frames(tmp_path: Path) -> None:
    numbers = [3, 4, 5, 20, 18, 19, 21, 22]
    origin = moq.OriginProducer()
    broadcast = origin.create_broadcast("client")
    audio, data = broadcast.publish_track("audio"), broadcast.publish_track("data")
    broadcast.announce()
    heard: dict[int, bytes] = {}
    async with (
        echoing(tmp_path) as (port, fingerprint),
        client(f"https://127.0.0.1:{port}/", fingerprint, origin) as connection,
    ):
        server = await connection.announced_broadcast("server")
        sound = await server.subscribe_track("audio", moq.Subscription(priority=200, max_age_us=1_000_000))
        await asyncio.gather(audio.used(), data.used())
        async with asyncio.timeout(20):
            for number in numbers:
                group = audio.create_group(number)
                group.write_frame(str(number).encode())
                group.finish()
                returned = await sound.recv_group()
                assert returned is not None
                frame = await returned.read_frame()
                assert frame is not None
                heard[returned.sequence] = frame.payload
    assert heard == {number: str(number).encode() for number in numbers}


class Recorder(Proxy):
    """Keeps what the caller sends first."""

    def __init__(self, behind: tuple[str, int]) -> None:
        super().__init__(behind, Faults())
        self.first: list[bytes] = []

    def forward(self, data: bytes, address: tuple[str, int], *, from_front: bool) -> None:
        if from_front and len(self.first) < 12:
            self.first.append(data)
        super().forward(data, address, from_front=from_front)


def mutated(datagram: bytes, chance: random.Random) -> bytes:
    """With bytes changed, cut off, or more of them."""
    found = bytearray(datagram)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        found[chance.randrange(min(len(found), chance.choice((8, 64, 2000))))] = chance.randrange(256)
    if chance.random() < 0.3:
        del found[chance.randrange(1, len(found)) :]
    if chance.random() < 0.1:
        found += chance.randbytes(chance.randrange(1, 200))
    return bytes(found[:1450])


def resident_bytes(product: Product) -> int:
    pages = Path(f"/proc/{product.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


async def test_mutated_first_packets_leave_the_relay_alive_and_its_memory_flat(product: Product) -> None:
    grant = await granted(product.origin, product.keys["good"])
    behind = ("127.0.0.1", grant["clientRelayEndpoints"][0]["port"])
    recorder = Recorder(behind)
    async with in_front(behind, recorder._faults, recorder) as port, calling(grant, port=port):
        pass
    chance, before = random.Random(7), resident_bytes(product)
    with socket.socket(type=socket.SOCK_DGRAM) as sender:
        for number in range(MUTATIONS):
            sender.sendto(mutated(chance.choice(recorder.first), chance), behind)
            if number % 50 == 0:
                await asyncio.sleep(0.01)  # a full buffer would drop them before they arrive
    async with calling(await granted(product.origin, product.keys["good"])) as peer:
        await peer.ask("What time is it?")
        assert (await peer.wait("response.done"))["response"]["status"] == "completed"
    assert resident_bytes(product) - before < MEMORY_BYTES


async def test_objects_that_are_no_events_end_nothing(product: Product) -> None:
    chance = random.Random(7)
    async with calling(await granted(product.origin, product.keys["good"])) as peer:
        for _ in range(40):
            peer.send_bytes(chance.randbytes(chance.randrange(0, 300)))
            peer.send_packet(chance.randbytes(chance.randrange(0, 1500)))
            await asyncio.sleep(0.03)
        await peer.wait("error", count=30)
        await peer.ask("What time is it?")
        assert (await peer.wait("response.done"))["response"]["status"] == "completed"
