"""A program that calls over WebRTC, with aiortc as it comes: microphone, loudspeaker, and everything it was told."""

from __future__ import annotations

import asyncio
import contextlib
import fractions
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import av
import numpy as np
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, MediaStreamError, MediaStreamTrack
from aiortc.rtp import RTCP_RTPFB_NACK, RtcpRrPacket, RtcpRtpfbPacket

from tests.realtime.talker import PATIENCE_S, EventsHeard, samples_at
from tests.realtime.webrtc.network import Faults, in_between
from voiceapp.engines.interfaces import Samples
from voiceapp.realtime.media import rtp
from voiceapp.realtime.media import tracks as listening

RATE_HZ = 16_000
FRAME = RATE_HZ // 50
OPUS_TYPE, COPIES_TYPE = 96, 63
"""Payload types in these offers."""
AFTER_A_STALL_S = 0.1
"""What came while this process stood still takes a moment to be heard."""
LOUD = 300
"""Peak of int16 samples from which on somebody is heard."""


class Microphone(AudioStreamTrack):
    """Silence for ever, and in it what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.spoken_at = 0.0
        """When the last sample of the last utterance was sent."""
        self._voice: asyncio.Queue[bytes] = asyncio.Queue()
        self._said = asyncio.Event()
        self._began_at: float | None = None
        self._position = 0

    async def say(self, speech: Samples) -> None:
        """Speak; returns when the last sample was sent."""
        self._said.clear()
        pcm = (np.clip(speech, -1, 1) * 32767).astype("<i2").tobytes()
        for start in range(0, len(pcm), FRAME * 2):
            self._voice.put_nowait(pcm[start : start + FRAME * 2].ljust(FRAME * 2, b"\0"))
        await self._said.wait()

    async def recv(self) -> av.AudioFrame:
        if self.readyState != "live":
            raise MediaStreamError
        self._began_at = self._began_at or time.monotonic()
        await asyncio.sleep(self._began_at + self._position / RATE_HZ - time.monotonic())
        pcm = bytes(FRAME * 2)
        if not self._voice.empty():
            pcm = self._voice.get_nowait()
            if self._voice.empty():
                self.spoken_at = time.monotonic()
                self._said.set()
        frame = av.AudioFrame.from_ndarray(np.frombuffer(pcm, dtype="<i2")[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, self._position, fractions.Fraction(1, RATE_HZ)
        self._position += FRAME
        return frame


@dataclass(frozen=True)
class Sound:
    """A frame of the answer, 48 kHz mono int16, and when it came."""

    at: float
    pts: int
    pcm: Any

    @property
    def peak(self) -> int:
        return int(np.abs(self.pcm.astype(np.int32)).max())


class Caller(EventsHeard):
    def __init__(self, connection: RTCPeerConnection) -> None:
        super().__init__()
        self.connection = connection
        self.microphone = Microphone()
        self.sounds: list[Sound] = []
        self.channel: RTCDataChannel | None = None
        self.answer = ""
        self.copies_heard = 0
        self._listening: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        connection.on("track", self._listen)
        connection.on("datachannel", self.adopt)
        connection.on("connectionstatechange", self._state_changed)

    def adopt(self, channel: RTCDataChannel) -> None:
        self.channel = channel
        channel.on("message", lambda text: self.later(self._note(json.loads(text))))
        channel.on("close", lambda: self.later(self._end()))

    async def send(self, type_: str, **fields: Any) -> None:
        assert self.channel is not None
        self.channel.send(json.dumps({"type": type_, **fields}))

    async def wait_loud(self, timeout_s: float = PATIENCE_S) -> None:
        """Until the answer can be heard."""
        seen = len(self.sounds)
        async with asyncio.timeout(timeout_s), self._news:
            await self._news.wait_for(lambda: any(sound.peak > LOUD for sound in self.sounds[seen:]))

    async def wait_quiet(self, quiet_s: float = 0.6, timeout_s: float = PATIENCE_S) -> None:
        """Until something was heard, and then nothing for a while."""
        await self.until(self._last_loud_at, timeout_s=timeout_s)
        async with asyncio.timeout(timeout_s):
            heard_at = 0.0
            while heard_at != self._last_loud_at():
                heard_at = self._last_loud_at()
                await asyncio.sleep(max(0, heard_at + quiet_s - time.monotonic()) + AFTER_A_STALL_S)

    def _last_loud_at(self) -> float:
        return max((sound.at for sound in self.sounds if sound.peak > LOUD), default=0.0)

    def speech(self, since: float = 0.0) -> Samples:
        """What was heard of the answer, as a recognizer hears it; pauses that were not sent are put back."""
        pieces: list[bytes] = []
        expected: int | None = None
        for sound in self.sounds:
            if sound.at < since:
                continue
            if expected is not None and expected < sound.pts < expected + 48_000 * 3:
                pieces.append(bytes((sound.pts - expected) * 2))
            pieces.append(sound.pcm.tobytes())
            expected = sound.pts + len(sound.pcm)
        return samples_at(b"".join(pieces), 48_000)

    def listen_well(self, *, asks: bool) -> bytearray:
        """From now on, the answer also as a good listener hears it, 16 kHz int16 PCM: aiortc itself neither conceals
        what is lost nor asks for it, and does not know copies."""
        heard = bytearray()
        transport: Any = self.connection.getReceivers()[0].transport
        source = 0

        def ask(numbers: list[int]) -> None:
            if not asks:
                return
            request = RtcpRtpfbPacket(fmt=RTCP_RTPFB_NACK, ssrc=1, media_ssrc=source, lost=sorted(numbers))
            self.later(transport._send_rtp(bytes(RtcpRrPacket(ssrc=1)) + bytes(request)))

        listener = listening.Microphone(heard.extend, ask)
        handle = transport._handle_rtp_data

        async def handle_both(data: bytes, arrival_time_ms: int) -> None:
            nonlocal source
            packet = rtp.parse(data)
            source = packet.ssrc
            if packet.payload_type == COPIES_TYPE:
                self.copies_heard += 1
                packet = rtp.with_copies(packet, OPUS_TYPE)
                data = rtp.build(
                    OPUS_TYPE, packet.sequence, packet.timestamp, packet.ssrc, packet.payload, marker=bool(data[1] >> 7)
                )
            listener.receive(packet, time.monotonic())
            await handle(data, arrival_time_ms)

        transport._handle_rtp_data = handle_both
        return heard

    def send_copies(self) -> None:
        """From now on, a copy of the packet before in every packet, as browsers do; nothing is sent again if asked."""
        transport: Any = self.connection.getSenders()[0].transport
        send = transport._send_rtp
        previous: rtp.Packet | None = None

        async def send_both(data: bytes) -> None:
            nonlocal previous
            if 192 <= data[1] <= 223:  # control packets
                await send(data)
                return
            packet = rtp.parse(data)
            if previous is not None:
                if (packet.sequence - previous.sequence) % rtp.SEQUENCES != 1:
                    return
                content = rtp.redundant(
                    OPUS_TYPE, packet.payload, previous.payload, packet.timestamp - previous.timestamp
                )
                data = rtp.build(
                    COPIES_TYPE, packet.sequence, packet.timestamp, packet.ssrc, content, marker=bool(data[1] & 0x80)
                )
            previous = packet
            await send(data)

        transport._send_rtp = send_both

    async def close(self) -> None:
        await self.connection.close()
        for task in tuple(self._tasks):
            task.cancel()

    def _listen(self, track: MediaStreamTrack) -> None:
        if track.kind == "audio":
            self.later(self._hear(track))

    async def _hear(self, track: MediaStreamTrack) -> None:
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                assert isinstance(frame, av.AudioFrame)
                stereo = frame.to_ndarray().reshape(-1, 2)
                async with self._news:
                    self.sounds.append(Sound(time.monotonic(), frame.pts or 0, stereo[:, 0].copy()))
                    self._news.notify_all()

    def _state_changed(self) -> None:
        if self.connection.connectionState in ("failed", "closed"):
            self.later(self._end())

    def later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@contextlib.asynccontextmanager
async def calling(
    origin: str,
    key: str | None,
    *,
    model: str = "voice",
    label: str | None = "svc-events",
    unused_number: int = 900,
    has_video: bool = False,
    has_copies: bool = False,
    faults: Faults | None = None,
    post: Callable[[str], Awaitable[tuple[int, str, Any]]] | None = None,
    early: Samples | None = None,
    awaits: str = "session.created",
) -> AsyncIterator[Caller]:
    """An open call, its `session.created` read, or what else is awaited of a server that does not begin one.

    Without a `label` the server is expected to open the channel, and the caller has only one of `unused_number` that
    the server is not told of; with `faults`, all datagrams suffer them;
    `post` brings the offer another way than the API, and `early` is said as soon as there is a line.
    """
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    caller = Caller(connection)
    try:
        connection.addTrack(caller.microphone)
        if has_video:
            connection.addTransceiver("video", direction="sendrecv")
        if label is None:
            unused = connection.createDataChannel(
                "", negotiated=True, id=unused_number
            )  # asks for channels, opens none
            unused.on("message", lambda text: None)
        else:
            caller.adopt(connection.createDataChannel(label))
        await connection.setLocalDescription(await connection.createOffer())
        offer = _offer_of(connection, has_copies)
        if faults is not None:  # no way may lead past them
            offer = re.sub(r"a=candidate:.*\r\n", "", offer)
        status, answer, _ = await (post(offer) if post else post_offer(origin, key, offer, model=model))
        assert status == 200, answer
        caller.answer = answer
        async with contextlib.AsyncExitStack() as network:
            if faults is not None:
                answer = await network.enter_async_context(in_between(answer, faults))
            if has_copies:
                caller.send_copies()
            if early is not None:
                caller.later(caller.microphone.say(early))
            await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            await caller.wait(awaits)
            yield caller
            await caller.close()
    finally:
        await caller.close()


def _offer_of(connection: RTCPeerConnection, has_copies: bool) -> str:
    offer: str = connection.localDescription.sdp
    if not has_copies:
        return offer
    offer = re.sub(r"(?m)^(m=audio .*?)\r$", rf"\1 {COPIES_TYPE}\r", offer)
    known = f"a=rtpmap:{OPUS_TYPE} opus/48000/2\r\n"
    assert known in offer
    copies = f"a=rtpmap:{COPIES_TYPE} red/48000/2\r\na=fmtp:{COPIES_TYPE} {OPUS_TYPE}/{OPUS_TYPE}\r\n"
    return offer.replace(known, known + copies)


async def post_offer(
    origin: str,
    key: str | None,
    offer: str | bytes,
    *,
    model: str | None = "voice",
    path: str = "/api/v1/webrtc/realtime",
    **headers: str,
) -> tuple[int, str, dict[str, str]]:
    """Status, body and headers of the answer; `headers` are sent besides the key."""
    sent = {"Content-Type": "application/sdp", **({"Authorization": f"Bearer {key}"} if key else {}), **headers}
    query = f"?model={model}" if model is not None else ""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{origin}{path}{query}", data=offer, headers=sent) as answer,
    ):
        return answer.status, await answer.text(), dict(answer.headers)
