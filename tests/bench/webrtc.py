"""`python -m tests.bench.webrtc`: what calls cost, with an echo bot on this product's media path.

Callers send Opus that was encoded before and decode nothing, so that they disturb the bot little; they share the
machine all the same.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import aiohttp
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription

from tests.bench.clips import ROOT
from tests.bench.report import percentile
from tests.bench.serving import process_cost
from tests.engines.speech import pcm
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.sound import opus
from voiceapp.realtime.media import rtp
from voiceapp.realtime.media.aiortc_internals.rtp_sink import RtpSink
from voiceapp.realtime.media.ticker import ticker
from voiceapp.realtime.media.tracks import TICKS_PER_PACKET

SENTENCE = "The living room is on the second floor, and the kitchen is next to the stairs, as in most houses here. "
START_S = 60.0
SETTLE_S = 2.0
LEAST_PACKETS_PER_S = 40.0
"""Of the 50 that speech has: a bot with fewer is behind, and its cost per call is that of less than a call."""


@dataclass(frozen=True, slots=True)
class Measured:
    calls: int
    core_share: float
    calls_per_core: float
    """How many such calls would fill one core."""
    jitter_p99_ms: float
    """How far packets of the bot came from 20 ms apart."""
    late_percent: float
    """Packets that came more than 40 ms after the one before."""
    connect_p50_ms: float
    """From the offer being sent to the first packet of the bot."""
    mb_per_call: float
    packets_per_call_s: float


class Caller:
    """Sends the same speech for ever and notes when packets come."""

    def __init__(self, packets: list[bytes]) -> None:
        self.arrivals: list[float] = []
        self.connect_ms = 0.0
        self._packets = packets
        self._position = 0
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._line: RtpSink | None = None
        self._talking = asyncio.Event()

    async def call(self, url: str) -> None:
        """Returns with the first packet of the bot."""
        connection = self._connection
        audio = connection.addTransceiver("audio", direction="sendrecv")
        codecs = RTCRtpReceiver.getCapabilities("audio")
        assert codecs is not None
        audio.setCodecPreferences([codec for codec in codecs.codecs if codec.mimeType == "audio/opus"])
        connection.createDataChannel("text")
        await connection.setLocalDescription(await connection.createOffer())
        begun = time.monotonic()
        offer = {"sdp": connection.localDescription.sdp, "type": "offer", "webrtc_id": str(uuid.uuid4())}
        async with aiohttp.ClientSession() as session, session.post(url, json=offer) as answer:
            answered = await answer.json()
        await connection.setRemoteDescription(RTCSessionDescription(answered["sdp"], "answer"))
        self._line = RtpSink(audio, self._hear, redundant_type=None)
        ticker().join(self._tick)
        async with asyncio.timeout(20):
            await self._talking.wait()
        self.connect_ms = (self.arrivals[0] - begun) * 1000

    async def hang_up(self) -> None:
        ticker().leave(self._tick)
        await self._connection.close()

    def _hear(self, packet: rtp.Packet) -> None:
        self.arrivals.append(time.monotonic())
        self._talking.set()

    def _tick(self, periods: int) -> None:
        assert self._line is not None
        self._line.pass_time(TICKS_PER_PACKET * periods)
        self._line.send(self._packets[self._position % len(self._packets)], marker=False)
        self._line.report()
        self._position += 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.webrtc", description=__doc__)
    parser.add_argument("--calls", type=int, nargs="+", default=[1, 10, 30])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--output", type=Path, default=ROOT / "var" / "bench" / "webrtc.json")
    chosen = parser.parse_args()
    found: list[Measured] = []
    print("calls  core %  calls/core  jitter p99 ms  late %  connect p50 ms  MB/call  packets/s")
    with tempfile.TemporaryDirectory(prefix="voiceapp-webrtc-") as folder:
        clip = Path(folder) / "reply.pcm"
        clip.write_bytes(asyncio.run(_speech()))
        for calls in chosen.calls:
            with _serving(clip) as (process_id, port):
                url = f"http://127.0.0.1:{port}/offer"
                row = asyncio.run(_measure(process_id, url, calls, chosen.seconds, clip.read_bytes()))
            if calls == 1 and row.packets_per_call_s < LEAST_PACKETS_PER_S:
                raise SystemExit(f"{row.packets_per_call_s:.1f} packets a second: the bot does not talk.")
            found.append(row)
            print(
                f"{row.calls:5d} {row.core_share * 100:7.1f} {row.calls_per_core:11.0f} "
                f"{row.jitter_p99_ms:14.2f} {row.late_percent:7.2f} {row.connect_p50_ms:15.0f} "
                f"{row.mb_per_call:8.2f} {row.packets_per_call_s:10.1f}",
                flush=True,
            )
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")


async def _speech() -> bytes:
    espeak = Espeak()
    try:
        return await pcm(espeak, SENTENCE, sample_rate_hz=opus.ENCODED_RATE_HZ)
    finally:
        await espeak.close()


@contextmanager
def _serving(clip: Path) -> Iterator[tuple[int, int]]:
    """The bot in a process of its own: process id and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script, log = Path(__file__).parent / "echo_bot.py", clip.parent / "bot.log"
    process = subprocess.Popen(
        [sys.executable, str(script), str(port), str(clip)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log.open("ab"),
    )
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(log.read_text()) from None
                time.sleep(0.05)
        yield process.pid, port
    finally:
        process.kill()
        process.wait()


async def _measure(process_id: int, url: str, calls: int, seconds: float, sound: bytes) -> Measured:
    encoder = opus.Encoder()
    packets = [
        encoder.encode(sound[at : at + opus.FRAME_BYTES])
        for at in range(0, len(sound) - opus.FRAME_BYTES, opus.FRAME_BYTES)
    ]
    first = Caller(packets)  # what is loaded by the first call is not the cost of a call
    await first.call(url)
    await first.hang_up()
    await asyncio.sleep(SETTLE_S)
    empty = process_cost(process_id)
    callers = [Caller(packets) for _ in range(calls)]
    for caller in callers:
        await caller.call(url)
    await asyncio.sleep(SETTLE_S)
    before = process_cost(process_id)
    begun = time.monotonic()
    await asyncio.sleep(seconds)
    ended = time.monotonic()
    after = process_cost(process_id)
    gaps: list[float] = []
    for caller in callers:
        times = [at for at in caller.arrivals if begun <= at <= ended]
        gaps += [(later - earlier) * 1000 for earlier, later in itertools.pairwise(times)]
    for caller in callers:
        await caller.hang_up()
    share = (after.cpu_s - before.cpu_s) / (after.at - before.at)
    return Measured(
        calls=calls,
        core_share=share,
        calls_per_core=calls / share,
        jitter_p99_ms=percentile([abs(gap - 20) for gap in gaps], 99),
        late_percent=100 * sum(gap > 40 for gap in gaps) / max(1, len(gaps)),
        connect_p50_ms=percentile([caller.connect_ms for caller in callers], 50),
        mb_per_call=(after.pss_mb - empty.pss_mb) / calls,
        packets_per_call_s=len(gaps) / calls / seconds,
    )


if __name__ == "__main__":
    main()
