"""A program that talks over AOQ: takes a grant, connects to a relay, speaks, and keeps what it hears."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import moq

from tests.realtime.talker import PATIENCE_S, EventsHeard, pcm_at, samples_at
from voiceapp.engines.interfaces import Samples
from voiceapp.engines.sound import opus

Grant = dict[str, Any]
HEADER = "x-service-rtc-transport"
SHORTEST_PAUSE, LONGEST_PAUSE = 8, 150
"""Frames that are a pause when they are missing: fewer are a server that was held up, more another reply."""


@dataclass(frozen=True)
class Packet:
    """An object of the server's audio track, and when it came."""

    at: float
    number: int
    payload: bytes


async def allocate(
    origin: str,
    key: str | None,
    *,
    model: str | None = "voice",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    operation: str = "realtime",
) -> tuple[int, Any]:
    """Status and body of a request for a grant."""
    sent = {HEADER: "moq", **({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
    query = "" if model is None else f"?model={model}"
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{origin}/api/v1/webrtc/{operation}{query}", data=body, headers=sent) as response,
    ):
        return response.status, await response.json(content_type=None)


async def granted(origin: str, key: str, **options: Any) -> Grant:
    status, grant = await allocate(origin, key, **options)
    assert status == 200, grant
    assert isinstance(grant, dict)
    return grant


def url_of(grant: Grant, *, route: int = 0, token: str | None = None, sid: str | None = None, port: int = 0) -> str:
    relay = grant["clientRelayEndpoints"][route]
    query = f"?jwt={grant['aoqTokenForClient'] if token is None else token}" if token != "" else ""
    return f"https://{relay['endpoint']}:{port or relay['port']}/aoq/{sid or grant['sid']}{query}"


def client(url: str, fingerprint: str, publish: moq.OriginProducer | None = None) -> moq.Client:
    return moq.Client(
        url,
        tls_fingerprints=[fingerprint],
        websocket_enabled=False,
        reconnect=False,
        publish=publish or moq.OriginProducer(),
        subscribe=moq.OriginProducer(),
    )


async def close_code(url: str, fingerprint: str) -> int | None:
    """With which code the relay ends a connection that it does not want; None when it closed none."""
    try:
        async with asyncio.timeout(PATIENCE_S), client(url, fingerprint) as connection:
            assert connection.session is not None
            await connection.session.closed()
    except moq.Error as error:
        found = moq.protocol_error(error)
        return None if found is None else found.code
    return 0


class Peer(EventsHeard):
    """One session from the caller's side."""

    def __init__(self, connection: moq.Client, broadcast: Any, audio: Any, data: Any) -> None:
        super().__init__()
        self.connection = connection
        self.packets: list[Packet] = []
        self.is_speaking = True
        self._broadcast, self._audio, self._data = broadcast, audio, data
        self._group: Any = None
        self._number = 0
        self._encoder = opus.Encoder()
        self._voice: asyncio.Queue[bytes] = asyncio.Queue()
        self._said = asyncio.Event()

    async def say(self, speech: Samples) -> None:
        """Speak; returns when the last packet was sent. `speech` is at 16 kHz."""
        pcm = pcm_at(speech, opus.ENCODED_RATE_HZ)
        self._said.clear()
        for start in range(0, len(pcm), opus.FRAME_BYTES):
            self._voice.put_nowait(pcm[start : start + opus.FRAME_BYTES].ljust(opus.FRAME_BYTES, b"\0"))
        await self._said.wait()

    async def send(self, type_: str, **fields: Any) -> None:
        self.send_bytes(json.dumps({"type": type_, **fields}).encode())

    def send_bytes(self, payload: bytes) -> None:
        if self._group is None:
            self._group = self._data.append_group()
        self._group.write_frame(payload)

    def send_packet(self, payload: bytes) -> None:
        group = self._audio.create_group(self._number)
        group.write_frame(payload)
        group.finish()
        self._number += 1

    def speech(self) -> Samples:
        """What was heard, as a recognizer hears it; pauses that were not sent are put back."""
        decoder, pcm = opus.Decoder(), bytearray()
        expected: int | None = None
        for packet in sorted(self.packets, key=lambda packet: packet.number):
            if expected is not None and SHORTEST_PAUSE <= packet.number - expected < LONGEST_PAUSE:
                pcm += bytes((packet.number - expected) * opus.FRAME_MS * opus.DECODED_RATE_HZ // 1000 * 2)
            pcm += decoder.decode(packet.payload)
            expected = packet.number + 1
        return samples_at(bytes(pcm), opus.DECODED_RATE_HZ)

    # ── What runs beside ─────────────────────────────────────────────────────────────────────────────────────────────

    async def get_ready(self) -> None:
        """Say that everything is subscribed to, until the session begins."""
        for _ in range(10):
            await self.send("ready")
            with contextlib.suppress(TimeoutError):
                await self.until(lambda: self.heard, timeout_s=0.1)
                return

    async def microphone(self) -> None:
        silence = bytes(opus.FRAME_BYTES)
        due = time.monotonic()
        with contextlib.suppress(moq.Error):
            while True:
                due += opus.FRAME_MS / 1000
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if not self.is_speaking:
                    self._number += 1
                    continue
                is_voice = not self._voice.empty()
                self.send_packet(self._encoder.encode(self._voice.get_nowait() if is_voice else silence))
                if is_voice and self._voice.empty():
                    self._said.set()

    async def read(self, data: moq.TrackConsumer) -> None:
        with contextlib.suppress(moq.Error):
            async for group in data:
                async for frame in group:
                    event = json.loads(frame.payload)
                    # What is said of a task has the name of the event in its header.
                    await self._note({"type": event.get("header", {}).get("event"), **event})

    async def listen(self, audio: moq.TrackConsumer) -> None:
        with contextlib.suppress(moq.Error):
            while (group := await audio.recv_group()) is not None:
                frame = await group.read_frame()
                if frame is not None:
                    async with self._news:
                        self.packets.append(Packet(time.monotonic(), group.sequence, frame.payload))
                        self._news.notify_all()

    async def watch(self, session: moq.Session) -> None:
        try:
            await session.closed()
        except moq.Error as error:
            found = moq.protocol_error(error)
            self.close_code = None if found is None else found.code
        await self._end()


@contextlib.asynccontextmanager
async def calling(
    grant: Grant, *, awaits: str = "session.created", port: int = 0, query: str = ""
) -> AsyncIterator[Peer]:
    """An open session, its `session.created` read. `port` is that of a proxy in front of the relay, `query` what the
    URL says besides the token.
    """
    origin = moq.OriginProducer()
    broadcast = origin.create_broadcast("client")
    audio, data = broadcast.publish_track("audio"), broadcast.publish_track("data")
    broadcast.announce()
    async with client(url_of(grant, port=port) + query, grant["clientRelayCertFingerprint"], origin) as connection:
        peer = Peer(connection, broadcast, audio, data)
        assert connection.session is not None
        tasks = [asyncio.create_task(peer.watch(connection.session))]
        try:
            async with asyncio.timeout(PATIENCE_S):
                server = await connection.announced_broadcast("server")
                read = await server.subscribe_track("data", moq.Subscription(priority=255, max_age_us=30_000_000))
                heard = await server.subscribe_track("audio", moq.Subscription(priority=200, max_age_us=1_000_000))
            tasks += [asyncio.create_task(work) for work in (peer.read(read), peer.listen(heard), peer.microphone())]
            await peer.get_ready()
            await peer.wait(awaits)
            yield peer
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
