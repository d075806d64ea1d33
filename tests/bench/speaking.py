"""`python -m tests.bench.speaking`: what speech costs, by voice: time to the first sound, real-time factor, memory."""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import sys
import time
from contextlib import aclosing
from dataclasses import dataclass

import django

SENTENCES = (
    "It is a quarter past three in the afternoon.",
    "I can tell the time, do sums, and answer questions about this server.",
    "Paris is the capital of France.",
    "The meeting begins at nine and ends before noon, as far as I know.",
)
SAMPLE_RATE_HZ = 24_000
TIMES_EACH = 4
AT_ONCE = (1, 4, 16)


@dataclass(frozen=True, slots=True)
class Spoken:
    first_sound_ms: float
    seconds: float
    sound_s: float


async def speak(synthesizer: object, text: str, voice: str) -> Spoken:
    """Speak one sentence to its end."""
    from voiceapp.engines.voices.synthesizer import EmbeddedSpeech

    assert isinstance(synthesizer, EmbeddedSpeech)
    begun, first, size = time.perf_counter(), 0.0, 0
    async with aclosing(synthesizer.speak(text, voice=voice, sample_rate_hz=SAMPLE_RATE_HZ)) as sound:
        async for pcm in sound:
            first = first or time.perf_counter()
            size += len(pcm)
    return Spoken((first - begun) * 1000, time.perf_counter() - begun, size / 2 / SAMPLE_RATE_HZ)


def memory_mb() -> float:
    """Of this process at its largest so far."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 1024**2 if sys.platform == "darwin" else size / 1024


async def measure(voice: str) -> None:
    """Print a line for each number of sentences spoken at once."""
    from voiceapp.engines.voices.synthesizer import EmbeddedSpeech

    before_mb = memory_mb()
    synthesizer = EmbeddedSpeech()
    await speak(synthesizer, "Ready.", voice)
    for at_once in AT_ONCE:
        found: list[Spoken] = []
        begun = time.perf_counter()
        for _ in range(TIMES_EACH):
            some = [SENTENCES[number % len(SENTENCES)] for number in range(at_once)]
            found += await asyncio.gather(*(speak(synthesizer, text, voice) for text in some))
        factor = (time.perf_counter() - begun) / sum(each.sound_s for each in found)
        firsts = sorted(each.first_sound_ms for each in found)
        print(
            f"{voice:12} {at_once:2} at once: first sound p50 {statistics.median(firsts):4.0f} ms, "
            f"worst {firsts[-1]:4.0f} ms; real-time factor {factor:.3f}"
        )
    print(f"{voice:12} memory: {memory_mb() - before_mb:.0f} MB more than before it was loaded")
    await synthesizer.close()


def main() -> None:
    """Parse the command line and measure each voice."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.speaking", description=__doc__)
    parser.add_argument("voices", nargs="*", default=["en-us", "woman"])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    for voice in parser.parse_args().voices:
        asyncio.run(measure(voice))


if __name__ == "__main__":
    main()
