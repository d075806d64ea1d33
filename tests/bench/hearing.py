"""`python -m tests.bench.hearing`: how often a session reads what is said, and how right, against reading it whole.

Nothing is late here: sessions run in the time of the sound, so the figures do not depend on the load of the machine.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import django
import numpy as np

from tests.bench import clips
from tests.bench.clips import Clip
from tests.engines.listening import listen, of
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Recognition, Samples

COMPLETED = "conversation.item.input_audio_transcription.completed"


class Counting(Moonshine):
    def __init__(self) -> None:
        self.readings = 0
        self.seconds = 0.0
        self.cpu_s = 0.0

    async def recognize(self, audio: Samples, **how: Any) -> Recognition:
        self.readings += 1
        self.seconds += len(audio) / ENGINE_SAMPLE_RATE_HZ
        began = time.process_time()
        try:
            return await super().recognize(audio, **how)
        finally:
            self.cpu_s += time.process_time() - began


async def measure(said: Sequence[Clip]) -> None:
    spoken_s = sum(clip.seconds for clip in said)
    words = sum(len(clips.words(clip.reference)) for clip in said)
    await Moonshine().warm()
    print("                  turns  readings a turn  s read per s spoken  CPU ms per s spoken  WER %")
    for name, captions in (("with captions", True), ("without captions", False), ("the whole clip", None)):
        recognizer = Counting()
        turns = errors = 0
        for clip in said:
            sound = clip.pcm.astype(np.float32) / np.float32(32768)
            if captions is None:
                heard = [(await recognizer.recognize(sound)).text]
            else:
                completed = of(await listen(sound, recognizer=recognizer, captions=captions), COMPLETED)
                # A turn that goes on is completed again, with all its words.
                heard = list({event["item_id"]: event["transcript"] for event in completed}.values())
            turns += len(heard)
            errors += clips.word_errors(clip.reference, " ".join(heard))
        print(
            f"{name:16s} {turns:6d} {recognizer.readings / turns:16.1f} {recognizer.seconds / spoken_s:20.1f} "
            f"{1000 * recognizer.cpu_s / spoken_s:20.0f} {100 * errors / words:6.1f}"
        )


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    with suppress(KeyboardInterrupt):
        django.setup()
        source, all_clips = clips.load()
        print(f"Speech: {source}.\n")
        asyncio.run(measure(all_clips))
