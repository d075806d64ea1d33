"""A spoken turn with `openai-agents`: address, key, recording and model are given, one line of JSON is printed."""

import asyncio
import json
import logging
import sys
import wave

from agents.realtime import RealtimeAgent, RealtimeRunner

PIECE_S = 0.1


async def main(address: str, key: str, recording: str, name: str) -> None:
    problems: list[str] = []
    watch = logging.Handler(logging.WARNING)
    watch.emit = lambda record: problems.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(watch)
    heard, words, sound = "", "", b""
    model = {"url": f"ws://{address}/v1/realtime?model={name}", "api_key": key}
    agent = RealtimeAgent(name="Assistant")
    async with await RealtimeRunner(agent).run(model_config=model) as session:
        with wave.open(recording) as file:
            while piece := file.readframes(int(file.getframerate() * PIECE_S)):
                await session.send_audio(piece)
        async for event in session:
            if event.type == "audio":
                sound += event.audio.data
            elif event.type == "error":
                problems.append(repr(event.error))
            elif event.type == "raw_model_event" and event.data.type == "input_audio_transcription_completed":
                heard = event.data.transcript
            elif event.type == "raw_model_event" and event.data.type == "transcript_delta":
                words += event.data.delta
            elif event.type == "raw_model_event" and event.data.type == "exception":
                problems.append(f"{event.data.context}: {event.data.exception!r}")
            elif event.type == "agent_end":
                break
    print(json.dumps({"heard": heard, "words": words, "sound_ms": len(sound) / 48, "problems": problems}))


asyncio.run(main(*sys.argv[1:]))
