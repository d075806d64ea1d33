"""A caller with a loudspeaker in a simulated room, and a session that listens with the real engines.

Time is that of the sound itself: a result of work comes as much later as the work took, or as `engine_s` says.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.embedded.turn import SmartTurn
from voiceapp.engines.embedded.vad import SileroDetector
from voiceapp.engines.interfaces import Samples
from voiceapp.engines.sound.caller_sound import CallerSound
from voiceapp.protocol.audio import AudioFormat, to_float
from voiceapp.protocol.configuration import EchoCancellation, SessionConfig
from voiceapp.protocol.session import Session
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import (
    Abandon,
    JudgeTurn,
    PlayoutCut,
    Recognize,
    Recognized,
    ReplyAudio,
    ReplyEnded,
    ReplySpoken,
    ReplyText,
    Respond,
    Result,
    TurnJudged,
    Work,
)

RATE_HZ = 16_000
STEP_S = 0.02
STEP_SAMPLES = int(RATE_HZ * STEP_S)
FORMAT = AudioFormat("pcm16", RATE_HZ)
ROOM_NOISE = 0.0005
ECHO_MS = 50
"""How long the room's own echo lasts."""


def room_response(seed: int) -> Samples:
    """From the loudspeaker to the microphone: the straight way, and 50 ms of decaying reflections; energy 1."""
    count = RATE_HZ * ECHO_MS // 1000
    noise = np.random.default_rng(seed).normal(0, 1, count)
    response = noise * np.exp(-np.arange(count) / (count / 5))
    response[0] = 3.0
    return (response / np.sqrt(np.square(response).sum())).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A part of the reply: its words and how they sound at 16 kHz."""

    text: str
    sound: Samples


@dataclass(frozen=True, slots=True)
class Room:
    """How the loudspeaker comes back."""

    echo_db: float | None
    """Beside what is played; None with a headset."""
    delay_ms: int = 0
    """From the server to the loudspeaker, and from the microphone to the server."""
    seed: int = 0
    noise: float = ROOM_NOISE
    """What the microphone hears of the room; nothing where noise is suppressed."""


@dataclass(slots=True)
class Happened:
    events: list[tuple[float, ev.ServerEvent | PlayoutCut]] = field(default_factory=list)
    cancelled_at: float | None = None
    """When the reply was cut, in seconds from its beginning; later cuts are of further replies."""
    reply_s: float = 0.0
    clean_s: float = 0.0
    """Processor time of the canceller."""

    def of(self, kind: type[ev.ServerEvent]) -> list[tuple[float, Any]]:
        return [(at, event) for at, event in self.events if type(event) is kind]

    @property
    def transcripts(self) -> list[str]:
        return [event.transcript for _, event in self.of(ev.TranscriptionCompleted)]


class Visit:
    def __init__(
        self,
        reply: list[Sentence],
        room: Room,
        *,
        mode: EchoCancellation = "auto",
        said: Samples | None = None,
        said_at: float = 0.0,
        engine_s: float | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        config = SessionConfig(
            model="voice",
            voice="woman",
            input_format=FORMAT,
            output_format=FORMAT,
            echo_cancellation=mode,
            **(settings or {}),
        )
        self._session = Session(session_id="sess_1", config=config)
        self._sound = CallerSound(config)
        self._reply, self._room = reply, room
        self._said, self._said_at = said, said_at
        self._engine_s = engine_s
        self._detector, self._recognizer, self._turns = SileroDetector(), Moonshine(), SmartTurn()
        length = sum(len(each.sound) for each in reply) + 8 * RATE_HZ
        self._speaker = np.zeros(length, dtype=np.float32)
        self._buffered_to = 0
        self._results: list[tuple[float, int, Work, Result]] = []
        self._order = itertools.count()
        self._dropped: set[int] = set()
        self.happened = Happened()

    async def run(self, *, for_s: float | None = None) -> Happened:
        """Let the reply be heard to its end, and two seconds more."""
        happened, session = self.happened, self._session
        happened.reply_s = sum(len(each.sound) for each in self._reply) / RATE_HZ
        end_s = for_s or happened.reply_s + 2.5
        microphone = self._microphone(end_s)
        session.open(0.0)
        session.receive(ev.ResponseCreate(response={}), 0.0)
        await self._carry_out(0.0)
        for step in range(int(end_s / STEP_S)):
            now = (step + 1) * STEP_S
            heard = self._heard(microphone, step * STEP_SAMPLES)
            began = time.process_time()
            frames = self._sound.push(heard, now)
            happened.clean_s += time.process_time() - began
            for frame in frames:
                session.hear(frame.to_read, self._detector.probability(frame.to_detect), now, frame.echo)
                await self._carry_out(now)
            while self._results and self._results[0][0] <= now:
                at, number, _, result = heapq.heappop(self._results)
                if number not in self._dropped:
                    session.done(result, at)
                    await self._carry_out(at)
            due = session.next_timer()
            if due is not None and due <= now:
                session.tick(now)
            await self._carry_out(now)
        return happened

    def _microphone(self, end_s: float) -> Samples:
        """What the microphone hears but for the echo."""
        sound = np.random.default_rng(self._room.seed).normal(0, self._room.noise, int((end_s + 1) * RATE_HZ))
        if self._said is not None:
            start = int(self._said_at * RATE_HZ)
            sound[start : start + len(self._said)] += self._said[: max(0, len(sound) - start)]
        return sound.astype(np.float32)

    def _heard(self, microphone: Samples, start: int) -> Samples:
        heard = microphone[start : start + STEP_SAMPLES].copy()
        if self._room.echo_db is None:
            return heard
        response = room_response(self._room.seed) * np.float32(10 ** (self._room.echo_db / 20))
        first = start - self._room.delay_ms * RATE_HZ // 1000
        lead = len(response) - 1
        window = np.zeros(lead + STEP_SAMPLES, dtype=np.float32)
        low, high = max(0, first - lead), max(0, first + STEP_SAMPLES)
        part = self._speaker[low:high]
        window[len(window) - len(part) :] = part
        return heard + np.convolve(window, response, "valid").astype(np.float32)

    async def _carry_out(self, now: float) -> None:
        for work in self._session.work_to_start():
            await self._start(work, now)
        for event in self._session.events_to_send():
            self.happened.events.append((now, event))
            if isinstance(event, ev.AudioDelta):
                self._sound.note_played(event, FORMAT)
                self._play(to_float(event.audio), now)
            elif isinstance(event, ev.SpeechStarted | PlayoutCut):
                self._speaker[int(now * RATE_HZ) :] = 0
                self._buffered_to = 0
            elif isinstance(event, ev.ResponseDone) and event.response["status"] == "cancelled":
                self.happened.cancelled_at = self.happened.cancelled_at or now

    async def _start(self, work: Work, now: float) -> None:
        if isinstance(work, Recognize):
            found, after = await self._timed(self._recognizer.recognize(work.audio))
            self._later(now + after, work, Recognized(work, found.text, found.confidence))
        elif isinstance(work, JudgeTurn):
            probability, after = await self._timed(self._turns.end_probability(work.audio))
            self._later(now + after, work, TurnJudged(work.item_id, work.version, probability))
        elif isinstance(work, Abandon):
            for _, number, begun, _ in self._results:
                if work.item_id is not None and getattr(begun, "item_id", None) == work.item_id:
                    self._dropped.add(number)
        elif isinstance(work, Respond) and work.ordinal == 1:
            said = 0
            for sentence in self._reply:
                said += len(sentence.text) + 1
                pcm = np.clip(sentence.sound * 32767, -32768, 32767).astype("<i2").tobytes()
                for result in (
                    ReplyText(work.response_id, sentence.text + " "),
                    ReplyAudio(work.response_id, pcm),
                    ReplySpoken(work.response_id, said),
                ):
                    self._session.done(result, now)
            self._session.done(ReplyEnded(work.response_id, "stop"), now)

    async def _timed(self, work: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
        began = time.perf_counter()
        result = await work
        return result, time.perf_counter() - began if self._engine_s is None else self._engine_s

    def _later(self, at: float, work: Work, result: Result) -> None:
        heapq.heappush(self._results, (at, next(self._order), work, result))

    def _play(self, sound: Samples, now: float) -> None:
        start = max(self._buffered_to, int(now * RATE_HZ))
        part = sound[: max(0, len(self._speaker) - start)]
        self._speaker[start : start + len(part)] = part
        self._buffered_to = start + len(sound)


def run(visit: Visit) -> Happened:
    """The same, from ordinary code."""
    return asyncio.run(visit.run())
