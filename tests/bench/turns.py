"""`python -m tests.bench.turns`: ends of turns, decided in the time of the sound itself, whatever the machine is doing.

Each recording is said at three offsets to a session with the real engines, whose results come back after fixed times,
and later where both threads of the voice lane are busy; early and partial readings are refused where it would refuse.
Thresholds of turns are set on one half of the recordings (`set`) and reported on the other (`report`). Made sentences
with pauses inside show what belongs together. With the names of sound files, each of them is one turn instead.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import django
import numpy as np

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, VAD_FRAME_SAMPLES, Samples

if TYPE_CHECKING:
    from tests.bench.clips import Clip

OFFSETS = (0, 170, 340)
"""Samples by which frames fall differently."""
QUIET_S = (0.6, 2.0)
"""Silence before and behind what is said."""
JUDGE_S = 0.055
READ_S = 0.02
READ_SHARE = 0.022
"""A reading takes so much, and so much of the length of the sound: as measured of one caller on two cores."""
THREADS = 2
FIRST_SOUND_S = 0.06
"""From the words to the first sound of a reply."""
MADE = (
    ("Hello?", 0.3, "Robin, are you there?"),
    ("Hello?", 0.5, "Robin, are you there?"),
    ("Hello? Robin,", 0.5, "are you there?"),
    ("Wait,", 0.4, "no, I meant seven."),
    ("Wait, no,", 0.3, "I meant seven."),
    ("Wait, no,", 0.5, "I meant seven."),
    ("Robin,", 0.4, "what is the weather in Paris?"),
    ("If it rains tomorrow,", 0.5, "where can I go?"),
    ("What is the weather in Paris?", 0.0, ""),
    ("What time is it?", 0.0, ""),
    ("Set a timer for ten minutes.", 0.0, ""),
    ("Tell me a joke.", 0.0, ""),
    ("Yes.", 0.0, ""),
    ("Hello!", 0.0, ""),
    ("Stop.", 0.0, ""),
    ("Seven.", 0.0, ""),
)


@dataclass(slots=True)
class Tally:
    """What happened to some clips."""

    said: int = 0
    decided_ms: list[float] = field(default_factory=list)
    """From the last sample of speech to the decision."""
    split: int = 0
    """Clips that became more than one turn, or that ended before their speech did."""
    replies_into: int = 0
    """Replies that were heard before the clip was over."""

    @property
    def told(self) -> str:
        p50, p95 = np.percentile(self.decided_ms, (50, 95)) if self.decided_ms else (0, 0)
        early = f"{self.split} of {self.said} ended early ({100 * self.split / max(1, self.said):.0f} %)"
        return f"decision p50 {p50:.0f} p95 {p95:.0f} ms; {early}; {self.replies_into} replies into the speech"


async def say(sound: Samples, end_s: float, tally: Tally) -> list[str]:
    """Let a session hear a sound whose speech ends at `end_s`; returns what it understood."""
    from voiceapp.engines.embedded.asr import Moonshine
    from voiceapp.engines.embedded.turn import SmartTurn
    from voiceapp.engines.embedded.vad import SileroDetector
    from voiceapp.protocol import work as wk
    from voiceapp.protocol.configuration import SessionConfig
    from voiceapp.protocol.session import Session
    from voiceapp.protocol.wire import events as ev

    quiet = [np.zeros(int(seconds * ENGINE_SAMPLE_RATE_HZ), np.float32) for seconds in QUIET_S]
    heard = np.concatenate((quiet[0], sound, quiet[1]))
    heard = (heard + np.random.default_rng(1).normal(0, 0.0005, len(heard))).astype(np.float32)
    over_at = QUIET_S[0] + end_s
    session = Session(session_id="sess_1", config=SessionConfig(model="voice", voice="joe"))
    detector, recognizer, turns, numbers = SileroDetector(), Moonshine(), SmartTurn(), itertools.count()
    results: list[tuple[float, int, wk.Result]] = []
    commits: dict[str, float] = {}
    words: dict[str, str] = {}
    spoken: set[str] = set()
    free_at = [0.0] * THREADS

    def run(now: float, took_s: float) -> float:
        """When a thread has done work that is handed in now."""
        thread = free_at.index(min(free_at))
        free_at[thread] = max(now, free_at[thread]) + took_s
        return free_at[thread]

    async def follow(now: float) -> None:
        for work in session.work_to_start():
            at, found = now, list[wk.Result]()
            if isinstance(work, wk.Recognize):
                if work.is_partial and sum(each > now for each in free_at) >= THREADS - 1:
                    found = [wk.RecognitionFailed(work, "LaneFull", "")]
                else:
                    at = run(now, READ_S + READ_SHARE * len(work.audio) / ENGINE_SAMPLE_RATE_HZ)
                    read = await recognizer.recognize(work.audio)
                    found = [wk.Recognized(work, read.text, read.confidence)]
            elif isinstance(work, wk.JudgeTurn):
                at = run(now, JUDGE_S)
                probability = await turns.end_probability(work.audio)
                found = [wk.TurnJudged(work.item_id, work.version, probability)]
            elif isinstance(work, wk.Respond):
                at, reply_id = now + FIRST_SOUND_S, work.response_id
                audio = bytes(work.config.output_format.size(2000))
                found = [wk.ReplyText(reply_id, "Well. "), wk.ReplyAudio(reply_id, audio)]
                found.append(wk.ReplyEnded(reply_id, "stop"))
            for result in found:
                heapq.heappush(results, (at, next(numbers), result))
        for event in session.events_to_send():
            if isinstance(event, ev.AudioCommitted):
                commits[event.item_id] = now
            elif isinstance(event, ev.TranscriptionCompleted):
                words[event.item_id] = event.transcript
            elif isinstance(event, ev.AudioDelta) and now < over_at:
                spoken.add(event.response_id)

    session.open(0.0)
    for start in range(0, len(heard) - VAD_FRAME_SAMPLES + 1, VAD_FRAME_SAMPLES):
        now = (start + VAD_FRAME_SAMPLES) / ENGINE_SAMPLE_RATE_HZ
        while results and results[0][0] <= now:
            at, _, result = heapq.heappop(results)
            session.done(result, at)
            await follow(at)
        frame = heard[start : start + VAD_FRAME_SAMPLES]
        session.hear(frame, detector.probability(frame), now)
        await follow(now)
        if (timer := session.next_timer()) is not None and timer <= now:
            session.tick(now)
            await follow(now)
    tally.said += 1
    last = max(commits.values(), default=0.0)
    if last >= over_at:
        tally.decided_ms.append((last - over_at) * 1000)
    tally.split += len(commits) > 1 or last < over_at
    tally.replies_into += len(spoken)
    return list(words.values())


async def measure_files(names: Sequence[str]) -> None:
    """Print a line for each sound file, and how many turns it became."""
    from tests.bench import clips
    from tests.engines.speech import load

    for name in names:
        sound, tally = load(Path(name)), Tally()
        end = clips.measured_end(np.clip(np.rint(sound * 32768), -32768, 32767).astype(np.int16))
        heard = await say(sound, end / ENGINE_SAMPLE_RATE_HZ, tally)
        print(f"{name}: {tally.told}; {len(heard)} turns", flush=True)


async def measure(said: Sequence[Clip]) -> None:
    """Print a line for each half of the recordings, and one for the made sentences."""
    from tests.bench import clips
    from tests.engines.speech import spoken
    from voiceapp.engines.voices.synthesizer import EmbeddedSpeech
    from voiceapp.protocol.audio import to_float

    for name, half in zip(("set", "report"), clips.halves(said), strict=True):
        tally = Tally()
        for clip in half:
            for offset in OFFSETS:
                sound = np.concatenate((np.zeros(offset, np.float32), to_float(clip.pcm.tobytes())))
                before = Tally()
                heard = await say(sound, (clip.end_sample + offset) / ENGINE_SAMPLE_RATE_HZ, before)
                print(f"  {clip.name:26} {before.told}: {heard}", flush=True)
                _add(tally, before)
        print(f"{name}: {tally.told}", flush=True)
    voices, tally = EmbeddedSpeech(), Tally()
    for first, pause_s, second in MADE:
        pieces = [_trimmed(await spoken(voices, text, voice="joe")) for text in (first, second) if text]
        pause = np.zeros(int(pause_s * ENGINE_SAMPLE_RATE_HZ), np.float32)
        sound = np.concatenate((pieces[0], *(part for piece in pieces[1:] for part in (pause, piece))))
        before = Tally()
        heard = await say(sound, len(sound) / ENGINE_SAMPLE_RATE_HZ, before)
        print(f"  {first} [{pause_s} s] {second} {before.told}: {heard}", flush=True)
        _add(tally, before)
    print(f"made: {tally.told}")
    await voices.close()


def _add(tally: Tally, more: Tally) -> None:
    tally.said += more.said
    tally.decided_ms += more.decided_ms
    tally.split += more.split
    tally.replies_into += more.replies_into


def _trimmed(sound: Samples) -> Samples:
    voiced: Sequence[int] = np.flatnonzero(np.abs(sound) > 0.02).tolist()
    return sound[voiced[0] : voiced[-1] + 1]


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    if sys.argv[1:]:
        asyncio.run(measure_files(sys.argv[1:]))
        return
    from tests.bench import clips

    source, said = clips.load()
    print(source)
    asyncio.run(measure(said))


if __name__ == "__main__":
    main()
