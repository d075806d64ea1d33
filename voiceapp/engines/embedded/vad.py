"""Voice detection by Silero v6: 0.1 ms per 32 ms frame, so it runs on the event loop. Silence costs nothing.

Frames of many callers are put to the model together, which takes half as long for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, VAD_FRAME_SAMPLES, Provider, Samples
from voiceapp.engines.models import onnx_sessions, weights
from voiceapp.engines.models.lanes import lanes
from voiceapp.event_loops import per_loop

MODEL = "silero/silero_vad.onnx"
RATE = np.array(ENGINE_SAMPLE_RATE_HZ, dtype=np.int64)
CONTEXT_SAMPLES = 64
"""The model wants the end of the frame before in front of each frame."""
UNHEARD = np.zeros((2, 1, 128), dtype=np.float32), np.zeros((1, CONTEXT_SAMPLES), dtype=np.float32)
"""State and window of every detector before the first frame."""
INAUDIBLE = 1e-3
"""No sample of a frame without speech is louder: 60 dB below full scale. Microphones of browsers, which suppress noise,
give less between words, and muted ones nothing."""
UNLIKELY = 0.1
SETTLED_FRAMES = 8
"""After so many inaudible frames (0.26 s) that the model found unlikely to be speech, it is not asked about more."""
HOLD_S = 0.007
"""So long a frame waits for those of other callers; with the tick of the event loop's clock, 8 ms."""
CROWDED_S = 0.004
"""Frames wait for one another where they come in closer succession than this: those of eight callers who speak. With
16, voice detection takes 5 % of a core in place of 9, and with 40, 7 % in place of 17."""
BACKLOG_S = 0.016
"""A frame that follows so soon upon the caller's last one comes late already, and does not wait."""
SUCCESSION = 32
"""Frames over which their succession is averaged."""


class SileroDetector:
    """A `VoiceDetector` for one conversation; the model behind it is shared by all."""

    def __init__(self) -> None:
        """Load the model.

        Raises:
            EngineUnavailable: if it is missing.
        """
        self._model = onnx_sessions.session(MODEL)
        self.reset()

    def reset(self) -> None:
        self._state, self._window = UNHEARD
        self._is_audible = False
        self._silent = 0
        """Inaudible frames in a row that are no speech."""
        self._heard_at = 0.0

    def probability(self, frame: Samples) -> float:
        return self.judge((self,))[0] if self._is_new(frame) else 0.0

    async def probability_live(self, frame: Samples) -> float:
        if not self._is_new(frame):
            return 0.0
        before, self._heard_at = self._heard_at, asyncio.get_running_loop().time()
        is_late = self._heard_at - before < BACKLOG_S
        answer = _crowd().join(self, self._heard_at, holds=not is_late)
        return self.judge((self,))[0] if answer is None else await answer

    def judge(self, detectors: Sequence[SileroDetector]) -> list[float]:
        """Speech probabilities of the frames that detectors of this model have taken, in one run."""
        speech, state = self._model.run(
            None,
            {
                "input": np.concatenate([each._window for each in detectors]),
                "state": np.concatenate([each._state for each in detectors], axis=1),
                "sr": RATE,
            },
        )
        found = [float(each) for each in speech[:, 0]]
        for place, (each, probability) in enumerate(zip(detectors, found, strict=True)):
            each._keep(probability, state[:, place : place + 1])
        return found

    def _is_new(self, frame: Samples) -> bool:
        """Take a frame, and return whether the model is to judge it."""
        if frame.shape != (VAD_FRAME_SAMPLES,):
            raise ValueError(f"A frame has {VAD_FRAME_SAMPLES} samples, not {frame.shape}.")
        self._window = np.concatenate((self._window[:, -CONTEXT_SAMPLES:], frame[None]), axis=1)
        self._is_audible = float(np.abs(frame).max()) > INAUDIBLE
        return self._is_audible or self._silent < SETTLED_FRAMES

    def _keep(self, probability: float, state: NDArray[np.float32]) -> None:
        self._state = state
        self._silent = 0 if self._is_audible or probability > UNLIKELY else self._silent + 1


class _Crowd:
    """Callers who speak at the same time. Each waits for the end of its frame before it gives the next."""

    def __init__(self) -> None:
        self._waiting: list[tuple[SileroDetector, asyncio.Future[float]]] = []
        self._joined_at = 0.0
        self._every_s = BACKLOG_S
        """Mean time between frames."""

    def join(self, detector: SileroDetector, now: float, *, holds: bool) -> asyncio.Future[float] | None:
        """Return what will be the speech probability of a detector's frame; None where it waits for no others."""
        since_s = min(now - self._joined_at, BACKLOG_S)
        self._joined_at = now
        self._every_s += (since_s - self._every_s) / SUCCESSION
        if not holds or self._every_s > CROWDED_S:
            return None
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_later(HOLD_S, self._judge)
        answer: asyncio.Future[float] = loop.create_future()
        self._waiting.append((detector, answer))
        return answer

    def _judge(self) -> None:
        waiting, self._waiting = [(each, answer) for each, answer in self._waiting if not answer.done()], []
        if waiting:
            detectors = [each for each, _ in waiting]
            for (_, answer), probability in zip(waiting, detectors[0].judge(detectors), strict=True):
                answer.set_result(probability)


_crowd = per_loop(_Crowd)


class Silero(Provider):
    """A `VoiceDetection`."""

    def check(self) -> None:
        weights.check(MODEL)

    async def warm(self) -> None:
        """Load the model, which runs on the event loop and must not load there."""
        await lanes().voice.run(onnx_sessions.session, MODEL)

    def detector(self) -> SileroDetector:
        return SileroDetector()
