"""`python -m tests.bench.doubtful`: below which confidence of Moonshine's it pays to have Whisper read a turn again.

Every second recording, clean and in two noises, chooses the threshold; the others say what it is worth.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import django
import numpy as np
from django.conf import settings

from tests.bench import clips
from tests.bench.clips import Clip
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.embedded.two_recognizers import DOUBTFUL
from voiceapp.engines.embedded.whisper import WhisperModel
from voiceapp.engines.interfaces import Recognition, Samples

NOISE_DB = 10
"""Level of speech above the noise."""
THRESHOLDS = (0.0, 0.6, 0.67, 0.74, 0.78, 0.82, 0.86, 0.9, 0.95, 1.01)


@dataclass(frozen=True, slots=True)
class Read:
    clip: Clip
    noise: str
    english: Recognition
    again: Recognition

    def errors(self, threshold: float) -> int:
        """Wrong words where readings below the threshold are made twice."""
        is_again = self.english.text and self.english.confidence < threshold
        kept = max(self.english, self.again, key=lambda reading: reading.confidence) if is_again else self.english
        return clips.word_errors(self.clip.reference, kept.text)


def noisy(clip: Clip, others: Sequence[Clip], kind: str) -> Samples:
    """The clip in a noise that lies NOISE_DB below it; babble is four other people at once."""
    speech = clip.pcm.astype(np.float32) / np.float32(32768)
    if kind == "clean":
        return speech
    if kind == "pink":
        spectrum = np.fft.rfft(np.random.default_rng(7).normal(size=len(speech)))
        noise = np.fft.irfft(spectrum / np.sqrt(np.arange(1, len(spectrum) + 1)), len(speech))
    else:
        noise = np.sum([np.resize(other.pcm / other.pcm.std(), len(speech)) for other in others[:4]], axis=0)
    level = speech.std() / noise.std() * 10 ** (-NOISE_DB / 20)
    return (speech + level * noise).astype(np.float32)


async def measure(said: Sequence[Clip]) -> None:
    moonshine = Moonshine()
    whisper = WhisperModel(settings.WHISPER_DIR, threads=1)
    halves: tuple[list[Read], list[Read]] = ([], [])
    for number, clip in enumerate(said):
        others = [other for other in said if other.reference != clip.reference]
        for kind in ("clean", "pink", "babble"):
            sound = noisy(clip, others[number % 5 :], kind)
            again = whisper.decode(whisper.encode(sound), clip.seconds, "en")
            second = Recognition("", "en", 0.0)
            if again and again.text:
                second = Recognition(again.text, "en", math.exp(again.log_probability))
            halves[number % 2].append(Read(clip, kind, await moonshine.recognize(sound), second))
    print("                  the half that chooses                          the other half")
    print("threshold   clean %  pink %  babble %  read twice %     clean %  pink %  babble %  read twice %")
    for threshold in THRESHOLDS:
        rows = []
        for half in halves:
            for kind in ("clean", "pink", "babble"):
                some = [read for read in half if read.noise == kind]
                words = sum(len(clips.words(read.clip.reference)) for read in some)
                rows.append(f"{100 * sum(read.errors(threshold) for read in some) / words:8.1f}")
            rows.append(f"{100 * np.mean([read.english.confidence < threshold for read in half]):12.0f}  ")
        print(f"{threshold:9.2f}", *rows, "  in use" if threshold == DOUBTFUL else "")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    with suppress(KeyboardInterrupt):
        django.setup()
        source, all_clips = clips.load()
        print(f"Speech: {source}.\n")
        asyncio.run(measure(all_clips))
