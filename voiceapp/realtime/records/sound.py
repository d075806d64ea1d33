"""The sound of both sides of a conversation on one line of time, for its recording and for operators who listen in."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ
from voiceapp.engines.sound.resampling import InputConverter
from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import AudioFormat, Pcm, to_pcm16
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import PlayoutCut, TurnEnded

RATE_HZ = ENGINE_SAMPLE_RATE_HZ
SETTLED_S = 0.5
"""Age at which sound is taken: a cut of playout reaches back no further."""
GAP_S = 0.2
"""Delay of arriving sound that is taken for silence, and not for jitter."""
MOST_AHEAD_S = 60
"""Sound that came sooner than it can be heard; a client may send twice as fast as it is spoken."""

Passed = ev.ClientEvent | ev.ServerEvent | PlayoutCut | TurnEnded
"""What the bridge hands over."""


class _Side:
    """The sound of one side that is not taken yet."""

    def __init__(self, rate_hz: int) -> None:
        self.read(AudioFormat("pcm16", rate_hz))
        self._waiting: Pcm = np.zeros(0, np.int16)

    def read(self, audio_format: AudioFormat) -> None:
        self._converter = InputConverter(audio_format)

    def add(self, audio: bytes, *, begins: int | None = None, ends: int = 0) -> None:
        """Add sound that begins or ends at a sample, counted from the first that is not taken; behind the last."""
        try:
            samples = np.frombuffer(to_pcm16(self._converter.convert(audio)), np.int16)
        except InvalidParameter:  # the session tells the client
            return
        silence = (ends - len(samples) if begins is None else begins) - len(self._waiting)
        if silence < GAP_S * RATE_HZ:
            silence = 0
        self._waiting = np.concatenate((self._waiting, np.zeros(silence, np.int16), samples))

    def cut(self, at: int) -> None:
        self._waiting = self._waiting[: max(0, at)]

    def take(self, count: int) -> Pcm:
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return np.pad(taken, (0, count - len(taken)))

    def __len__(self) -> int:
        return len(self._waiting)


class BothSides:
    """The sound of a conversation from a moment on, on the clock of the event loop."""

    def __init__(self, begun: float, input_rate_hz: int) -> None:
        self.begun = begun
        self.samples = 0
        """Taken so far."""
        self._caller, self._reply = _Side(input_rate_hz), _Side(24_000)

    @property
    def is_ahead(self) -> bool:
        return max(len(self._caller), len(self._reply)) > MOST_AHEAD_S * RATE_HZ

    def add(self, at: float, event: Passed) -> None:
        """Take what passed at a time; all but sound, its cuts and its formats is nothing to it."""
        here = self._sample(at) - self.samples
        match event:
            case ev.AudioAppend():
                self._caller.add(event.audio, ends=here)
            case ev.AudioDelta():
                lead = 0 if event.heard_from is None else int((event.heard_from - at) * RATE_HZ)
                self._reply.add(event.audio, begins=here + lead)
            case PlayoutCut():
                self._reply.cut(here)
            case ev.SessionCreated() | ev.SessionUpdated():
                self.read_formats(event.session)

    def read_formats(self, session: dict[str, Any]) -> None:
        for side, name in ((self._caller, "input"), (self._reply, "output")):
            with suppress(KeyError, TypeError):  # another service may tell less
                stated = session["audio"][name]["format"]
                side.read(AudioFormat(stated["type"], stated["sample_rate"]))

    def count(self, until: float) -> int:
        """Return the samples of each side that are not taken yet, up to a time."""
        return max(0, self._sample(until) - self.samples)

    def take(self, count: int) -> bytes:
        """Take samples of 16 bits, of the caller and of the reply in turn."""
        self.samples += count
        return np.stack((self._caller.take(count), self._reply.take(count)), axis=1).tobytes()

    def _sample(self, at: float) -> int:
        return int((at - self.begun) * RATE_HZ)
