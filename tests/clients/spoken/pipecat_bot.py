"""A spoken turn in a pipeline of Pipecat's around its OpenAI realtime service."""

import asyncio
import json
import sys
import wave

from loguru import logger
from pipecat.frames.frames import (
    ErrorFrame,
    InputAudioRawFrame,
    LLMFullResponseEndFrame,
    LLMTextFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.workers.runner import WorkerRunner

PIECE_S = 0.1


class Watch(FrameProcessor):
    """Notes what passes by."""

    def __init__(self, noted: dict) -> None:
        super().__init__()
        self._noted = noted
        self.is_over = asyncio.Event()

    async def process_frame(self, frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame):
            self._noted["heard"] = frame.text
        elif isinstance(frame, LLMTextFrame):
            self._noted["words"] += frame.text
        elif isinstance(frame, TTSAudioRawFrame):
            self._noted["sound_ms"] += len(frame.audio) / 48
        elif isinstance(frame, ErrorFrame):
            self._noted["problems"].append(frame.error)
        elif isinstance(frame, LLMFullResponseEndFrame):
            self.is_over.set()
        await self.push_frame(frame, direction)


async def main(address: str, key: str, recording: str, name: str) -> None:
    noted = {"heard": "", "words": "", "sound_ms": 0.0, "problems": []}
    logger.remove()
    logger.add(lambda line: noted["problems"].append(line.record["message"]), level="WARNING")
    llm = OpenAIRealtimeLLMService(base_url=f"ws://{address}/v1/realtime", api_key=key, model=name)
    before, behind = Watch(noted), Watch(noted)
    worker = PipelineWorker(Pipeline([before, llm, behind]))

    async def speak() -> None:
        with wave.open(recording) as file:
            rate_hz = file.getframerate()
            while piece := file.readframes(int(rate_hz * PIECE_S)):
                await worker.queue_frame(InputAudioRawFrame(piece, rate_hz, 1))
        await behind.is_over.wait()
        await worker.stop_when_done()

    runner = WorkerRunner()
    await runner.add_workers(worker)
    await asyncio.gather(runner.run(), speak())
    print(json.dumps(noted))


asyncio.run(main(*sys.argv[1:]))
