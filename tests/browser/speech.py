"""A voice for the browser's microphone, and an ear for its loudspeaker: the product's own engines."""

from __future__ import annotations

import asyncio
import difflib
import re
import wave
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np

from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ

MICROPHONE_RATE_HZ = 48_000
Result = TypeVar("Result")


def awaited(work: Coroutine[None, None, Result]) -> Result:
    """The result of a coroutine; in a thread of its own, because Playwright keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def write_microphone(path: Path, *parts: str | float, voice: str = "en-us+m3") -> Path:
    """A WAV file of what the microphone will hear: texts are spoken, numbers are seconds of silence."""

    async def speak() -> bytes:
        espeak = Espeak()
        pcm = bytearray()
        for part in parts:
            if isinstance(part, str):
                async for piece in espeak.speak(part, voice=voice, sample_rate_hz=MICROPHONE_RATE_HZ):
                    pcm += piece
            else:
                pcm += bytes(2 * int(part * MICROPHONE_RATE_HZ))
        await espeak.close()
        return bytes(pcm)

    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(MICROPHONE_RATE_HZ)
        file.writeframes(awaited(speak()))
    return path


def channels(path: Path) -> list[np.ndarray]:
    with wave.open(str(path)) as file:
        assert file.getframerate() == ENGINE_SAMPLE_RATE_HZ
        pcm = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype(np.float32) / 32768
        return [pcm[channel :: file.getnchannels()] for channel in range(file.getnchannels())]


def trimmed(samples: np.ndarray) -> np.ndarray:
    """Without the silence before and after, but for a quarter of a second."""
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    margin = ENGINE_SAMPLE_RATE_HZ // 4
    return samples[max(0, loud[0] - margin) : loud[-1] + margin] if loud.size else samples[:0]


def recognised(samples: np.ndarray) -> str:
    """What a listener understands."""
    return awaited(Moonshine().recognize(samples)).text


def likeness(heard: str, written: str) -> float:
    """How much of two texts is the same, word by word, in [0, 1]."""
    a, b = (re.findall(r"[a-z0-9']+", text.lower()) for text in (heard, written))
    return difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()
