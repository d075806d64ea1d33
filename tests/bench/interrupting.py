"""`python -m tests.bench.interrupting`: what a loudspeaker and sounds that are no interruption do to replies.

A simulated room and the real engines, in the time of the sound itself: what recognition takes counts as it took.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
from dataclasses import dataclass, field

import django
import numpy as np

REPLIES = (
    "Paris is the capital of France, and has been for many centuries.",
    "The city lies on the river Seine, in the north of the country.",
    "About two million people live there, and many more visit every year.",
    "The tower was built for the world fair, and it is still its best known sight.",
    "Trains leave from six large stations, one for each direction.",
)
NODS = ("Hmm.", "Yes.", "Okay.", "Right.", "Yeah.", "I see.", "Uh-huh.", "Sure.")
REQUESTS = (
    "Stop.",
    "Wait.",
    "What about London?",
    "No, tell me about Spain.",
    "Can you say that again?",
    "How old is the tower?",
    "Thank you, that is enough.",
    "Hold on a second.",
    "Where is the next station?",
    "Yes, but what does it cost?",
)
DELAYS_MS = (60, 180, 400)
LEVELS_DB = (-12, -20, -30)
SAID_AT_S = (1.0, 2.5, 4.0)
SOON_S = (0.2, 0.35, 0.5)
"""Before it can be known whether there is an echo."""
LOUDNESS = 0.1


@dataclass(slots=True)
class Tally:
    """What became of the replies of one kind."""

    cut: int = 0
    replies: int = 0
    turns: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    errors: int = 0
    words: int = 0

    @property
    def told(self) -> str:
        line = f"{self.cut} of {self.replies} cut, {self.turns} turns"
        if self.latencies_ms:
            late = sorted(self.latencies_ms)
            line += f", cut after p50 {statistics.median(late):.0f} ms, p90 {late[int(len(late) * 0.9)]:.0f} ms"
        return line + (f", {100 * self.errors / self.words:.1f} % wrong words" if self.words else "")


async def measure(part: str) -> None:
    """Print a line for each kind of room or sound."""
    from tests.bench import clips
    from tests.engines.rooms import ROOM_NOISE, Happened, Room, Sentence, Visit
    from tests.engines.speech import spoken
    from voiceapp.engines.espeak.voice import VOICES, Espeak
    from voiceapp.engines.interfaces import Samples
    from voiceapp.engines.voices.synthesizer import EmbeddedSpeech
    from voiceapp.protocol.audio import to_float
    from voiceapp.protocol.wire import events as ev

    speech, espeak = EmbeddedSpeech(), Espeak()
    replies = [Sentence(text, await spoken(speech, text, voice="woman")) for text in REPLIES]

    def loud(sound: Samples) -> Samples:
        voiced = sound[np.abs(sound) > np.abs(sound).max() / 20]
        return (sound * (LOUDNESS / np.sqrt(np.square(voiced).mean()))).astype(np.float32)

    def onset_s(sound: Samples) -> float:
        return float(np.flatnonzero(np.abs(sound) > 0.02)[0]) / 16_000

    def count(tally: Tally, happened: Happened, begins_s: float) -> None:
        tally.replies += 1
        tally.turns += len(happened.of(ev.AudioCommitted))
        if happened.cancelled_at is not None:
            tally.cut += 1
            tally.latencies_ms.append((happened.cancelled_at - begins_s) * 1000)

    async def visit(
        number: int,
        room: Room,
        sound: Samples | None = None,
        *,
        duck: bool = False,
        times: tuple[float, ...] = SAID_AT_S,
    ) -> tuple[Happened, float]:
        reply = [*replies[number % 5 :], *replies[: number % 5]][:3]
        said_at = times[number % 3]
        settings = {"interruptions": "duck"} if duck else None
        seconds = None if sound is None else said_at + len(sound) / 16_000 + 2.5
        there = Visit(reply, room, said=sound, said_at=said_at, settings=settings)
        return await there.run(for_s=seconds), said_at + (onset_s(sound) if sound is not None else 0.0)

    if part in ("all", "echo"):
        for level in LEVELS_DB:
            tally = Tally()
            for number in range(20):
                count(tally, *await visit(number, Room(level, DELAYS_MS[number % 3], seed=number)))
            print(f"the reply's own echo at {level} dB: {tally.told}", flush=True)
        source, said = clips.load()
        said = [clip for clip in said if clip.seconds < 6 and clip.name != "g_silence_padding"]
        print(f"callers: {source}")
        for found in (None, *LEVELS_DB):
            tally = Tally()
            for number in range(2 * len(said)):
                clip = said[number % len(said)]
                sound = loud(to_float(clip.pcm.tobytes()))
                happened, begins_s = await visit(number, Room(found, DELAYS_MS[number % 3], seed=number), sound)
                count(tally, happened, begins_s)
                tally.errors += clips.word_errors(clip.reference, " ".join(happened.transcripts))
                tally.words += len(clip.reference.split())
            print(f"callers over {'no echo' if found is None else f'an echo at {found} dB'}: {tally.told}", flush=True)
    requests = [
        loud(await spoken(speech if voice == "woman" else espeak, text, voice=voice))
        for text in REQUESTS
        for voice in ("woman", *(each.name for each in VOICES[:3]))
    ]
    if part in ("all", "requests"):
        rooms = (
            ("into the beginning of a reply, noise suppressed", SOON_S, None, 0.0),
            *((f"over an echo at {level} dB", SAID_AT_S, level, ROOM_NOISE) for level in LEVELS_DB),
            *((f"into the beginning of an echo at {level} dB", SOON_S, level, ROOM_NOISE) for level in LEVELS_DB),
        )
        for name, times, found, noise in rooms:
            tally = Tally()
            for number, sound in enumerate(requests):
                room = Room(found, DELAYS_MS[number % 3], seed=number, noise=noise)
                happened, begins_s = await visit(number, room, sound, duck=bool(number % 2), times=times)
                count(tally, happened, begins_s)
                if happened.cancelled_at is None or happened.cancelled_at < begins_s:
                    print(f"  wrong: {REQUESTS[number // 4]!r}, cut at {happened.cancelled_at}", flush=True)
            print(f"requests {name}: {tally.told}", flush=True)
    if part in ("all", "sounds"):
        from tests.engines.noises import noises

        sounds = [loud(await spoken(espeak, text, voice=voice.name)) for text in NODS for voice in VOICES[:3]]
        sounds += [sound for _, sound in noises(16)]
        for name, these in (("nods and noises", sounds), ("requests", requests)):
            tally = Tally()
            ducked: list[float] = []
            for number, sound in enumerate(these):
                happened, begins_s = await visit(number, Room(None, seed=number), sound, duck=True)
                count(tally, happened, begins_s)
                if (happened.cancelled_at is not None) != (name == "requests"):
                    print(f"  wrong: sound {number}, understood as {happened.transcripts}", flush=True)
                ducked += [(at - begins_s) * 1000 for at, _ in happened.of(ev.ReplyDucked)[:1]]
            quiet = f"; ducked {len(ducked)}, after p50 {statistics.median(ducked):.0f} ms" if ducked else ""
            print(f"{name}: {tally.told}{quiet}", flush=True)
    await espeak.close()
    await speech.close()


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.interrupting", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("all", "echo", "requests", "sounds"), default="all")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    asyncio.run(measure(parser.parse_args().part))


if __name__ == "__main__":
    main()
