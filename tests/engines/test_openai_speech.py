"""Speech engines behind OpenAI's interface: what they are asked, what they give, and what their failures mean."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from aiohttp import web

from tests.web import Handler, everywhere, listening
from voiceapp.engines.interfaces import Samples
from voiceapp.engines.openai.speech import OpenAISpeech
from voiceapp.engines.openai.transcription import OpenAIRecognizer
from voiceapp.errors import EngineError, EngineRefused, EngineUnavailable
from voiceapp.protocol.audio import split_wav_header, wav_header

KEY = "sk-elsewhere-1234567890"
SOUND = (np.sin(np.arange(24_000) / 20) * 8000).astype("<i2").tobytes()
"""A second at 24 kHz."""


class SpeechServer:
    def __init__(self) -> None:
        self.base_url = ""
        self.asked: list[dict[str, Any]] = []
        self.answer: Handler = self.words("Turn on the lamp.")

    def words(self, text: str) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            return web.json_response({"text": text})

        return answer

    def sounds(self, *pieces: bytes) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "audio/pcm"})
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
            return response

        return answer

    async def handle(self, request: web.Request) -> web.StreamResponse:
        fields: dict[str, Any] = {"authorization": request.headers.get("Authorization", "")}
        if request.content_type == "application/json":
            fields |= await request.json()
        else:
            fields |= {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
            file = (await request.post())["file"]
            assert isinstance(file, web.FileField)
            fields["file"] = file.file.read()
        self.asked.append(fields)
        return await self.answer(request)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[SpeechServer]:
    stand_in = SpeechServer()
    async with listening(everywhere(stand_in.handle)) as origin:
        stand_in.base_url = f"{origin}/v1"
        yield stand_in


@pytest_asyncio.fixture
async def ear(server: SpeechServer) -> AsyncIterator[OpenAIRecognizer]:
    engine = OpenAIRecognizer(base_url=server.base_url, api_key=KEY, model="whisper", languages=("de", "en"))
    yield engine
    await engine.close()


@pytest_asyncio.fixture
async def mouth(server: SpeechServer) -> AsyncIterator[OpenAISpeech]:
    engine = OpenAISpeech(base_url=server.base_url, model="kokoro", voices=("anna:de", "bert"))
    yield engine
    await engine.close()


def samples() -> Samples:
    return (np.sin(np.arange(8000) / 20) / 4).astype(np.float32)


async def spoken(engine: OpenAISpeech, voice: str = "anna", rate: float = 1.0, sample_rate_hz: int = 24_000) -> bytes:
    async with aclosing(engine.speak("Hello.", voice=voice, sample_rate_hz=sample_rate_hz, rate=rate)) as sound:
        return b"".join([piece async for piece in sound])


async def test_an_utterance_goes_out_as_a_wav_file_and_comes_back_as_words(
    server: SpeechServer, ear: OpenAIRecognizer
) -> None:
    found = await ear.recognize(samples(), language="de-AT")
    assert found.text == "Turn on the lamp."
    (asked,) = server.asked
    assert (asked["model"], asked["language"], asked["authorization"]) == ("whisper", "de", f"Bearer {KEY}")
    rate_hz, pcm = split_wav_header(asked["file"])
    assert rate_hz == 16_000
    assert np.allclose(np.frombuffer(pcm, dtype="<i2") / 32768, samples(), atol=1e-4)


async def test_a_language_it_does_not_know_is_refused_without_asking(
    server: SpeechServer, ear: OpenAIRecognizer
) -> None:
    with pytest.raises(EngineRefused, match="'fr'"):
        await ear.recognize(samples(), language="fr")
    assert not server.asked


@pytest.mark.parametrize("body", [{"words": 1}, [], "text"])
async def test_what_is_no_transcript_is_said_to_be_none(server: SpeechServer, ear: OpenAIRecognizer, body: Any) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(body)

    server.answer = answer
    with pytest.raises(EngineUnavailable, match="not a transcript"):
        await ear.recognize(samples())


async def test_a_server_that_is_gone_is_named_with_its_setting() -> None:
    engine = OpenAIRecognizer(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(EngineError, match="cannot be reached") as error:
        await engine.recognize(samples())
    assert "ASR_BASE_URL" in error.value.for_operators
    await engine.close()


async def test_speech_is_heard_before_the_server_has_sent_all(server: SpeechServer, mouth: OpenAISpeech) -> None:
    was_heard = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/pcm"})
        await response.prepare(request)
        await response.write(SOUND[:4800])
        await was_heard.wait()
        await response.write(SOUND[4800:])
        return response

    server.answer = answer
    heard = b""
    async with aclosing(mouth.speak("Hello.", voice="anna", sample_rate_hz=24_000)) as sound:
        async for piece in sound:
            heard += piece
            was_heard.set()
    assert heard == SOUND


async def test_pieces_of_speech_may_end_within_a_sample(server: SpeechServer, mouth: OpenAISpeech) -> None:
    server.answer = server.sounds(SOUND[:10], SOUND[10:10_001], SOUND[10_001:])
    assert await spoken(mouth, rate=1.25) == SOUND
    (asked,) = server.asked
    assert (asked["voice"], asked["response_format"], asked["speed"]) == ("anna", "pcm", 1.25)


async def test_speech_comes_at_the_rate_asked_for_whatever_the_server_sends(
    server: SpeechServer, mouth: OpenAISpeech
) -> None:
    server.answer = server.sounds(wav_header(48_000, data_bytes=len(SOUND)) + SOUND)
    assert len(await spoken(mouth, sample_rate_hz=8_000)) == pytest.approx(len(SOUND) / 6, rel=0.02)


async def test_a_voice_it_does_not_have_is_spoken_by_its_first(server: SpeechServer, mouth: OpenAISpeech) -> None:
    server.answer = server.sounds(SOUND)
    await spoken(mouth, voice="Cherry")
    assert server.asked[0]["voice"] == "anna"
    assert mouth.default_voice == "anna"
    assert [(voice.name, voice.language) for voice in mouth.voices] == [("anna", "de"), ("bert", "")]
