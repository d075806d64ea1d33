"""Speech for tests: made by the real synthesizer, recorded where a folder of recordings is at hand, and compared."""

from __future__ import annotations

import csv
import os
import re
from contextlib import aclosing
from pathlib import Path

import av
import numpy as np

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples, Synthesizer

SENTENCES = (
    "The living room is on the second floor.",
    "What time does the next train leave the station?",
    "Turn on the lamp in the kitchen.",
    "The child almost hurt the small dog.",
    "Sunday is the best part of the week.",
    "She opened the window and looked at the garden.",
)


async def spoken(synthesizer: Synthesizer, text: str, *, voice: str = "en-us+m3", rate: float = 1.0) -> Samples:
    """`text` as a recognizer hears it."""
    return samples(await pcm(synthesizer, text, voice=voice, sample_rate_hz=ENGINE_SAMPLE_RATE_HZ, rate=rate))


async def pcm(
    synthesizer: Synthesizer, text: str, *, voice: str = "en-us", sample_rate_hz: int = 24_000, rate: float = 1.0
) -> bytes:
    async with aclosing(synthesizer.speak(text, voice=voice, sample_rate_hz=sample_rate_hz, rate=rate)) as sound:
        return b"".join([piece async for piece in sound])


def samples(pcm: bytes) -> Samples:
    return np.frombuffer(pcm, dtype=np.int16).astype(np.float32) / np.float32(32768)


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * ENGINE_SAMPLE_RATE_HZ), dtype=np.float32)


def noise(seconds: float, loudness: float) -> Samples:
    """White noise of the given standard deviation, the same every time."""
    count = int(seconds * ENGINE_SAMPLE_RATE_HZ)
    return np.random.default_rng(7).normal(0, loudness, count).astype(np.float32)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+(?:'[a-z0-9]+)*", text.lower())


def word_errors(reference: str, heard: str) -> int:
    """Words to change, add or drop to come from one to the other."""
    row = list(range(len(words(heard)) + 1))
    for place, wanted in enumerate(words(reference), start=1):
        diagonal, row[0] = row[0], place
        for column, got in enumerate(words(heard), start=1):
            diagonal, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, diagonal + (wanted != got))
    return row[-1]


def recordings() -> list[tuple[Path, str]]:
    """Recordings of real people and what they say, from the folder SPEECH_DIR; none when it is not set."""
    folder = Path(os.environ.get("SPEECH_DIR") or "/nonexistent")
    manifest = folder / "manifest.tsv"
    if not manifest.is_file():
        return []
    with manifest.open(newline="") as lines:
        return [(folder / row["file"], row["reference"]) for row in csv.DictReader(lines, delimiter="\t")]


def load(file: Path) -> Samples:
    """A sound file as mono float32 at 16 kHz."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=ENGINE_SAMPLE_RATE_HZ)
    with av.open(str(file)) as container:
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])
