"""The bot of `echo_ours` written with FastRTC. Runs in whatever Python has fastrtc; imports nothing of ours."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from fastrtc import AsyncStreamHandler, Stream

RATE_HZ = 24_000
FRAME = RATE_HZ // 50
HEARD_FRAME = 16_000 // 50
PCM = np.frombuffer(Path(sys.argv[2]).read_bytes(), dtype="<i2")


class Bot(AsyncStreamHandler):
    """Says the next 20 ms for every frame it hears."""

    def __init__(self) -> None:
        super().__init__(input_sample_rate=16_000, output_sample_rate=RATE_HZ)
        self._heard = asyncio.Semaphore(0)
        self._rest = 0
        self._position = 0

    async def start_up(self) -> None:
        """Nothing to prepare."""

    async def receive(self, frame: tuple[int, Any]) -> None:
        self._rest += frame[1].shape[-1]
        while self._rest >= HEARD_FRAME:
            self._rest -= HEARD_FRAME
            self._heard.release()

    async def emit(self) -> tuple[int, Any]:
        await self._heard.acquire()
        at = self._position % (len(PCM) - FRAME)
        self._position += FRAME
        return RATE_HZ, PCM[None, at : at + FRAME]

    def copy(self) -> Bot:
        return Bot()


application = FastAPI()
Stream(
    Bot(),
    modality="audio",
    mode="send-receive",
    concurrency_limit=1000,
    rtc_configuration={"iceServers": []},
    server_rtc_configuration={"iceServers": []},
    verbose=False,
).mount(application)

if __name__ == "__main__":
    uvicorn.run(application, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
