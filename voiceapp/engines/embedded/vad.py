"""Voice detection by Silero v6: 0.1 ms per 32 ms frame, so it runs on the event loop. Silence costs nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, VAD_FRAME_SAMPLES, Provider, Samples
from voiceapp.engines.models import onnx_sessions, weights
from voiceapp.engines.models.lanes import lanes

MODEL = "silero/silero_vad.onnx"
CONTEXT_SAMPLES = 64
"""The model wants the end of the frame before in front of each frame."""
INAUDIBLE = 1e-3
"""No sample of a frame without speech is louder: 60 dB below full scale. Microphones of browsers, which suppress noise,
give less between words, and muted ones nothing."""
UNLIKELY = 0.1
SETTLED_FRAMES = 8
"""After so many inaudible frames (0.26 s) that the model found unlikely to be speech, it is not asked about more."""


class SileroDetector:
    """A `VoiceDetector` for one conversation; the model behind it is shared by all."""

    def __init__(self) -> None:
        """Load the model.

        Raises:
            EngineUnavailable: if it is missing.
        """
        self._session = onnx_sessions.session(MODEL)
        self._rate = np.array(ENGINE_SAMPLE_RATE_HZ, dtype=np.int64)
        self.reset()

    def reset(self) -> None:
        self._state: NDArray[np.float32] = np.zeros((2, 1, 128), dtype=np.float32)
        self._window: NDArray[np.float32] = np.zeros((1, CONTEXT_SAMPLES + VAD_FRAME_SAMPLES), dtype=np.float32)
        self._silent = 0
        """Inaudible frames in a row that are no speech."""

    def probability(self, frame: Samples) -> float:
        """Speech probability of the next frame.

        Raises:
            ValueError: if it is not 512 samples long.
        """
        if frame.shape != (VAD_FRAME_SAMPLES,):
            raise ValueError(f"A frame has {VAD_FRAME_SAMPLES} samples, not {frame.shape}.")
        self._window[0, :CONTEXT_SAMPLES] = self._window[0, -CONTEXT_SAMPLES:]
        self._window[0, CONTEXT_SAMPLES:] = frame
        is_audible = float(np.abs(frame).max()) > INAUDIBLE
        if not is_audible and self._silent >= SETTLED_FRAMES:
            return 0.0
        speech, self._state = self._session.run(None, {"input": self._window, "state": self._state, "sr": self._rate})
        probability = float(speech[0, 0])
        self._silent = 0 if is_audible or probability > UNLIKELY else self._silent + 1
        return probability


class Silero(Provider):
    """A `VoiceDetection`."""

    def check(self) -> None:
        """See `Provider`."""
        weights.check(MODEL)

    async def warm(self) -> None:
        """Load the model, which runs on the event loop and must not load there."""
        await lanes().voice.run(onnx_sessions.session, MODEL)

    def detector(self) -> SileroDetector:
        """See `VoiceDetection`."""
        return SileroDetector()
