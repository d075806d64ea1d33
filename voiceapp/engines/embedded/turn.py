"""Has the speaker finished? smart-turn v3.2 listens to the last 8 s: intonation and pace, not words.

Its judgement is good after about 200 ms of silence and a coin toss in the middle of a word, and it holds some short
turns back wrongly: its caller also keeps a cap on the silence.
"""

from __future__ import annotations

import numpy as np

from voiceapp.engines.embedded.mel import log_mel
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Provider, Samples
from voiceapp.engines.models import onnx_sessions, weights
from voiceapp.engines.models.lanes import lanes

MODEL = "smart-turn/smart-turn-v3.2-cpu.onnx"
WINDOW_SAMPLES = 8 * ENGINE_SAMPLE_RATE_HZ
VARIANCE_FLOOR = 1e-7


class SmartTurn(Provider):
    """A `TurnPredictor`; stateless, shared by all conversations. One judgement takes about 40 ms of a core."""

    def check(self) -> None:
        weights.check(MODEL)

    async def warm(self) -> None:
        """Load the model and run it once."""
        await self.end_probability(np.zeros(0, dtype=np.float32))

    async def end_probability(self, audio: Samples) -> float:
        return await lanes().voice.run(_end_probability, audio)


def _end_probability(audio: Samples) -> float:
    window = np.zeros(WINDOW_SAMPLES, dtype=np.float32)
    recent = audio[-WINDOW_SAMPLES:]
    window[WINDOW_SAMPLES - len(recent) :] = recent
    window = (window - window.mean()) / np.sqrt(window.var() + VARIANCE_FLOOR)
    (probability,) = onnx_sessions.session(MODEL).run(None, {"input_features": log_mel(window)[None]})
    return float(probability[0, 0])
