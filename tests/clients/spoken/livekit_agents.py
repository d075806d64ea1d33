"""A spoken turn with LiveKit's OpenAI realtime plugin, and one that the program asks for after a typed message."""

import asyncio
import json
import logging
import sys
import wave

import aiohttp
from livekit import rtc
from livekit.plugins.openai.realtime import RealtimeModel

PIECE_S = 0.1


async def reply_of(generation) -> tuple[str, float]:
    words, sound_ms = "", 0.0
    async for message in generation.message_stream:
        async for piece in message.text_stream:
            words += piece
        async for frame in message.audio_stream:
            sound_ms += frame.duration * 1000
    return words, sound_ms


async def main(address: str, key: str, recording: str, name: str) -> None:
    problems: list[str] = []
    watch = logging.Handler(logging.WARNING)
    watch.emit = lambda record: problems.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("livekit").addHandler(watch)
    async with aiohttp.ClientSession() as http:
        model = RealtimeModel(model=name, base_url=f"http://{address}/v1", api_key=key, http_session=http)
        session = model.session()
        heard, generation = asyncio.Future(), asyncio.Future()
        session.on("error", lambda error: problems.append(repr(error)))
        session.on("generation_created", lambda made: generation.done() or generation.set_result(made))
        session.on("input_audio_transcription_completed", lambda known: known.is_final and heard.set_result(known))
        with wave.open(recording) as file:
            rate_hz = file.getframerate()
            while piece := file.readframes(int(rate_hz * PIECE_S)):
                session.push_audio(rtc.AudioFrame(piece, rate_hz, 1, len(piece) // 2))
        words, sound_ms = await reply_of(await generation)

        context = session.chat_ctx.copy()
        context.add_message(role="user", content="What is two plus two?")
        await session.update_chat_ctx(context)
        typed, _ = await reply_of(await session.generate_reply())
        said = {
            "heard": (await heard).transcript,
            "words": words,
            "sound_ms": sound_ms,
            "typed": typed,
            "problems": problems,
        }
        await session.aclose()
        await model.aclose()
    print(json.dumps(said))


asyncio.run(main(*sys.argv[1:]))
