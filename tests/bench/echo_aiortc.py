"""A bot on plain aiortc, as its examples are written: hears at 16 kHz, speaks a clip at 24 kHz. For comparison only."""

from __future__ import annotations

import asyncio
import fractions
import sys
import time
from pathlib import Path

import av
import numpy as np
from aiohttp import web
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, MediaStreamError

RATE_HZ = 24_000
FRAME = RATE_HZ // 50
connections: set[RTCPeerConnection] = set()
tasks: set[asyncio.Task[None]] = set()


class Clip(AudioStreamTrack):
    """Speech over and over, paced by the clock."""

    def __init__(self, pcm: np.ndarray) -> None:
        super().__init__()
        self._pcm = pcm
        self._position = 0
        self._began = 0.0

    async def recv(self) -> av.AudioFrame:
        self._began = self._began or time.time()
        await asyncio.sleep(self._began + self._position / RATE_HZ - time.time())
        at = self._position % (len(self._pcm) - FRAME)
        frame = av.AudioFrame.from_ndarray(self._pcm[None, at : at + FRAME], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, self._position, fractions.Fraction(1, RATE_HZ)
        self._position += FRAME
        return frame


async def hear(track: MediaStreamTrack) -> None:
    resampler = av.AudioResampler(format="s16", layout="mono", rate=16_000)
    try:
        while True:
            frame = await track.recv()
            assert isinstance(frame, av.AudioFrame)
            for part in resampler.resample(frame):
                part.to_ndarray()
    except MediaStreamError:
        return


def main() -> None:
    pcm = np.frombuffer(Path(sys.argv[2]).read_bytes(), dtype="<i2")

    async def offer(request: web.Request) -> web.Response:
        asked = await request.json()
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        connections.add(connection)

        @connection.on("track")
        def listen(track: MediaStreamTrack) -> None:
            task = asyncio.ensure_future(hear(track))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        connection.addTrack(Clip(pcm))
        await connection.setRemoteDescription(RTCSessionDescription(asked["sdp"], "offer"))
        await connection.setLocalDescription(await connection.createAnswer())
        return web.json_response({"sdp": connection.localDescription.sdp, "type": "answer"})

    application = web.Application()
    application.router.add_post("/offer", offer)
    web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=lambda text: None)


if __name__ == "__main__":
    main()
