"""Speech engines behind the Wyoming protocol, against a server of its own library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import AsrModel, AsrProgram, Attribution, Describe, Info, TtsProgram, TtsVoice
from wyoming.server import AsyncEventHandler, AsyncTcpServer
from wyoming.tts import Synthesize

from tests.ports import free_port
from voiceapp.engines.interfaces import Samples
from voiceapp.engines.wyoming.recognizer import WyomingRecognizer
from voiceapp.engines.wyoming.synthesizer import WyomingSpeech
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable

SOUND = (np.sin(np.arange(22_050) / 20) * 8000).astype("<i2").tobytes()
"""A second at 22.05 kHz."""
NOBODY = Attribution(name="nobody", url="")


class Speaker(AsyncEventHandler):
    """Counts what it hears, and speaks a tone; does what its server is told to do wrong."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: SpeechServer) -> None:
        super().__init__(reader, writer)
        self.server = server
        self.heard = b""

    async def handle_event(self, event: Event) -> bool:
        if self.server.fault == "closes":
            return False
        if self.server.fault == "silent":
            return True
        if self.server.fault == "fails":
            await self.write_event(Error(text="Out of memory.").event())
        elif Describe.is_type(event.type):
            await self.write_event(self.info().event())
        elif Transcribe.is_type(event.type):
            self.server.languages.append(Transcribe.from_event(event).language)
        elif AudioChunk.is_type(event.type):
            self.heard += AudioChunk.from_event(event).audio
        elif AudioStop.is_type(event.type):
            await self.write_event(Transcript(text=f" {len(self.heard)} bytes ").event())
        elif Synthesize.is_type(event.type):
            await self.speak(Synthesize.from_event(event))
        return True

    async def speak(self, wanted: Synthesize) -> None:
        self.server.voices.append(wanted.voice.name if wanted.voice else None)
        await self.write_event(AudioStart(rate=22_050, width=2, channels=1).event())
        while self.server.fault == "never ends":
            await self.write_event(AudioChunk(rate=22_050, width=2, channels=1, audio=SOUND * 30).event())
        for start in range(0, len(SOUND), 4410):
            chunk = AudioChunk(rate=22_050, width=2, channels=1, audio=SOUND[start : start + 4410])
            await self.write_event(chunk.event())
        await self.write_event(AudioStop().event())

    def info(self) -> Info:
        known: dict[str, Any] = {"attribution": NOBODY, "installed": True, "description": None, "version": None}
        model = AsrModel(name="tiny", languages=["de_DE", "nl"], **known)
        voice = TtsVoice(name="thorsten", languages=["de_DE"], **known)
        return Info(
            asr=[AsrProgram(name="ear", models=[model], **known)],
            tts=[TtsProgram(name="mouth", voices=[voice], **known)],
        )


class SpeechServer:
    def __init__(self) -> None:
        self.address = ""
        self.fault = ""
        self.languages: list[str | None] = []
        self.voices: list[str | None] = []


@pytest_asyncio.fixture
async def server() -> AsyncIterator[SpeechServer]:
    found, port = SpeechServer(), free_port()
    found.address = f"tcp://127.0.0.1:{port}"
    running = AsyncTcpServer("127.0.0.1", port)
    await running.start(lambda reader, writer: Speaker(reader, writer, found))
    yield found
    await running.stop()


def samples() -> Samples:
    return (np.sin(np.arange(8000) / 20) / 4).astype(np.float32)


async def spoken(engine: WyomingSpeech, voice: str = "") -> bytes:
    async with aclosing(engine.speak("Hello.", voice=voice, sample_rate_hz=22_050)) as sound:
        return b"".join([piece async for piece in sound])


async def test_an_utterance_becomes_words(server: SpeechServer) -> None:
    engine = WyomingRecognizer(base_url=server.address)
    assert (await engine.recognize(samples(), language="de-AT")).text == "16000 bytes"
    assert server.languages == ["de"]


async def test_its_languages_are_those_that_the_server_names(server: SpeechServer) -> None:
    engine = WyomingRecognizer(base_url=server.address)
    await engine.probe()
    assert engine.languages == ("de", "nl")
    with pytest.raises(EngineRefused, match="'fr'"):
        await engine.recognize(samples(), language="fr")


async def test_text_becomes_speech_in_the_voice_asked_for(server: SpeechServer) -> None:
    engine = WyomingSpeech(base_url=server.address)
    assert await spoken(engine, "thorsten") == SOUND
    await engine.probe()
    assert [(voice.name, voice.language) for voice in engine.voices] == [("thorsten", "de")]
    assert await spoken(engine, "thorsten") == SOUND
    assert await spoken(engine, "Cherry") == SOUND
    assert server.voices == [None, "thorsten", "thorsten"]


@pytest.mark.parametrize(
    ("fault", "error"), [("closes", EngineUnavailable), ("silent", EngineTimeout), ("fails", EngineUnavailable)]
)
async def test_a_server_that_fails_is_said_to_fail(server: SpeechServer, fault: str, error: type[EngineError]) -> None:
    server.fault = fault
    engine = WyomingRecognizer(base_url=server.address, timeout_s=0.2)
    with pytest.raises(error):
        await engine.recognize(samples())
    assert isinstance(engine.trouble, error)
    with pytest.raises(error):
        await spoken(WyomingSpeech(base_url=server.address, timeout_s=0.2))


async def test_a_sound_that_does_not_end_is_cut_off(server: SpeechServer) -> None:
    server.fault = "never ends"
    with pytest.raises(EngineUnavailable, match="does not end"):
        await spoken(WyomingSpeech(base_url=server.address))


async def test_a_server_that_is_gone_is_named_with_its_setting() -> None:
    engine = WyomingSpeech(base_url=f"tcp://127.0.0.1:{free_port()}")
    with pytest.raises(EngineUnavailable, match="cannot be reached") as error:
        await spoken(engine)
    assert "TTS_BASE_URL" in error.value.for_operators
    await engine.probe()
    assert not engine.voices
