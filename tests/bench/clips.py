"""What is said to the server: recordings of real people where the folder is at hand, else synthesised sentences."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.engines import speech
from voiceapp.engines.espeak.voice import Espeak

RATE_HZ = 16_000
ROOT = Path(__file__).resolve().parents[2]
STEP_SAMPLES = RATE_HZ // 100
BELOW_PEAK_DB = 25
"""Quieter than the loud parts by this much is no speech any more."""
BURST_STEPS = 25
"""A consonant may burst a quarter of a second behind the last vowel."""

Pcm = NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Clip:
    name: str
    pcm: Pcm
    """Mono int16 at 16 kHz."""
    end_sample: int
    """Just behind the last sample of speech."""
    reference: str

    @property
    def seconds(self) -> float:
        return len(self.pcm) / RATE_HZ


def load() -> tuple[str, list[Clip]]:
    folder = Path(os.environ.get("SPEECH_DIR") or ROOT.parent / "shared" / "audio")
    manifest = folder / "manifest.tsv"
    if not manifest.is_file():
        return "synthesised sentences (espeak-ng)", asyncio.run(_synthesised())
    clips = []
    with manifest.open(newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            pcm = _int16(speech.load(folder / row["file"]))
            # Some manifest entries count room noise or a click behind the words: the lamp clip says 2.98 s and its
            # last word ends at 1.47 s. A latency counted from there would flatter us by 1.5 s, so the earlier of the
            # manifest's end and the measured one counts.
            end = min(round(float(row["speech_end_s"]) * RATE_HZ), measured_end(pcm))
            clips.append(Clip(row["file"].rsplit(".", 1)[0], pcm, end, row["reference"]))
    return f"{len(clips)} recordings", clips


def halves(said: Sequence[Clip]) -> tuple[list[Clip], list[Clip]]:
    """The clips that thresholds are set on, and those that figures are reported on; the same ones on every machine."""
    ordered = sorted(said, key=lambda clip: hashlib.sha256(clip.name.encode()).digest())
    return ordered[::2], ordered[1::2]


def measured_end(pcm: Pcm) -> int:
    """The sample behind the last speech: 50 ms that are loud as a whole, or a burst soon behind them (a final k)."""
    steps = pcm[: len(pcm) // STEP_SAMPLES * STEP_SAMPLES].astype(np.float64).reshape(-1, STEP_SAMPLES)
    loudness_db = 10 * np.log10(np.square(steps).mean(axis=1) + 1e-3)
    threshold_db = np.percentile(loudness_db, 95) - BELOW_PEAK_DB
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(np.pad(loudness_db, 2, mode="edge"), 5), axis=1)
    lasting = np.flatnonzero(smooth > threshold_db)
    if not len(lasting):
        return len(pcm)
    end = int(lasting[-1]) + 1
    bursts = np.flatnonzero(loudness_db[end : end + BURST_STEPS] > threshold_db)
    return (end + (int(bursts[-1]) + 1 if len(bursts) else 0)) * STEP_SAMPLES


async def _synthesised() -> list[Clip]:
    espeak = Espeak()
    clips = []
    for number, text in enumerate(speech.SENTENCES):
        pcm = _int16(await speech.spoken(espeak, text))
        clips.append(Clip(f"espeak_{number}", pcm, measured_end(pcm), " ".join(words(text))))
    await espeak.close()
    return clips


def _int16(samples: NDArray[np.float32]) -> Pcm:
    return np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)


# ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# fmt: off
ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
# fmt: on
TENS = ("", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def words(text: str) -> list[str]:
    """Lower case, no punctuation, numbers spelled as they are said."""
    spelled = re.sub(r"\d+(?:,\d{3})*", lambda found: f" {_spelled(found[0])} ", text.lower().replace("'", ""))
    return re.sub(r"[^a-z ]+", " ", spelled).split()


def _spelled(digits: str) -> str:
    number = int(digits.replace(",", ""))
    if 1100 <= number <= 1999 and number % 100 >= 10 and "," not in digits:  # a year
        return f"{_cardinal(number // 100)} {_cardinal(number % 100)}"
    return _cardinal(number)


def _cardinal(number: int) -> str:
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10] + (f" {ONES[number % 10]}" if number % 10 else "")
    for size, name in ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            return f"{_cardinal(number // size)} {name}" + (f" {_cardinal(rest)}" if rest else "")
    raise AssertionError(number)


def word_errors(reference: str, heard: str) -> int:
    """Words to change, add or drop to come from one to the other."""
    return speech.word_errors(" ".join(words(reference)), " ".join(words(heard)))
