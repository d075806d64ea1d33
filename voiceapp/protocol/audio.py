"""PCM formats and the arithmetic of framing and pacing. Audio is mono int16 little-endian unless said otherwise."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voiceapp.errors import InvalidParameter
from voiceapp.protocol import g711

Pcm = NDArray[np.int16]

FRAME_SAMPLES = 512
"""One voice-detection frame at 16 kHz."""
FRAME_MS = 32
FORMATS = ("pcm", "pcm16", "pcm24", "wav", *g711.LAWS)
SAMPLE_RATES_HZ = (8_000, 16_000, 24_000, 48_000)


@dataclass(frozen=True, slots=True)
class AudioFormat:
    name: str
    """One of `FORMATS`, as the client spelled it."""
    sample_rate_hz: int

    @property
    def is_telephone(self) -> bool:
        """On the wire it has eight bits a sample (G.711); everything else here counts its 16-bit PCM."""
        return self.name in g711.LAWS

    @property
    def bytes_per_ms(self) -> float:
        return self.sample_rate_hz * 2 / 1000

    def duration_ms(self, n_bytes: int) -> float:
        return n_bytes / self.bytes_per_ms

    def wire_ms(self, n_bytes: int) -> float:
        """Return the length of the audio in so many bytes of the wire."""
        return self.duration_ms(n_bytes) * (2 if self.is_telephone else 1)

    def size(self, ms: float) -> int:
        """Whole samples' worth of bytes for `ms`."""
        return int(ms * self.sample_rate_hz / 1000) * 2


def read_format(value: object, *, param: str, default_rate_hz: int) -> AudioFormat:
    """A format from its wire name or from the nested form `{type, sample_rate}`.

    `pcm16` and `pcm24` are older names; `pcm24` means 24 kHz, the others keep the direction's rate.

    Raises:
        InvalidParameter: an unknown name or rate.
    """
    name: object = value
    rate: object = default_rate_hz
    if isinstance(value, dict):
        name = value.get("type") or "pcm"
        rate = value.get("sample_rate") or value.get("rate") or default_rate_hz
    if isinstance(name, str):
        name = name.removeprefix("audio/")
    if not isinstance(name, str) or name not in FORMATS:
        raise InvalidParameter(f"{param} must be one of {', '.join(FORMATS)}.", param=param)
    if name == "pcm24":
        rate = 24_000
    if name in g711.LAWS:
        stated = value.get("sample_rate") or value.get("rate") if isinstance(value, dict) else None
        if stated not in (None, g711.SAMPLE_RATE_HZ):
            raise InvalidParameter(f"{name} has a sample rate of 8000.", param=f"{param}.sample_rate")
        rate = g711.SAMPLE_RATE_HZ
    if isinstance(rate, bool) or not isinstance(rate, int) or rate not in SAMPLE_RATES_HZ:
        raise InvalidParameter(
            f"{param}.sample_rate must be one of {', '.join(map(str, SAMPLE_RATES_HZ))}.", param=f"{param}.sample_rate"
        )
    return AudioFormat(name, rate)


def with_rate(settings: dict[str, Any], current: AudioFormat) -> dict[str, Any]:
    """Settings of a session whose `sample_rate`, as clients of recognition give it beside the name of their format, is
    taken into `input_audio_format`.

    Raises:
        InvalidParameter: an unknown rate.
    """
    rate, name = settings.get("sample_rate"), settings.get("input_audio_format") or current.name
    if rate is None or not isinstance(name, str) or name in g711.LAWS:
        return settings
    read_format({"sample_rate": rate}, param="session", default_rate_hz=current.sample_rate_hz)
    return {**settings, "input_audio_format": {"type": name, "sample_rate": rate}}


WAV_HEADER_BYTES = 44
MAX_WAV_DATA_BYTES = 0xFFFFFFFF - WAV_HEADER_BYTES
"""The sizes of a RIFF file have 32 bits."""


def wav_header(sample_rate_hz: int, *, data_bytes: int | None = None) -> bytes:
    """A RIFF header for mono int16 of at most MAX_WAV_DATA_BYTES.

    Where the length is not known, the sizes are at their maximum, as streaming writers do.
    """
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        0xFFFFFFFF if data_bytes is None else data_bytes + WAV_HEADER_BYTES - 8,
        b"WAVE",
        b"fmt ",
        16,
        1,
        1,
        sample_rate_hz,
        sample_rate_hz * 2,
        2,
        16,
        b"data",
        0xFFFFFFFF if data_bytes is None else data_bytes,
    )


def split_wav_header(data: bytes) -> tuple[int | None, bytes]:
    """The sample rate of a RIFF header at the start of `data`, and what follows its `data` tag.

    `(None, data)` when there is no header.

    Raises:
        InvalidParameter: a header that is not mono int16 PCM, or that has no data chunk.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return None, data
    position, rate = 12, None
    while position + 8 <= len(data):
        tag, size = struct.unpack_from("<4sI", data, position)
        position += 8
        if tag == b"fmt " and position + 16 <= len(data):
            kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, position)
            if (kind, channels, bits) != (1, 1, 16):
                raise InvalidParameter("A WAV stream must be mono 16-bit PCM.", param="audio")
        if tag == b"data":
            return rate, data[position:]
        position += size + (size & 1)
    raise InvalidParameter("The WAV header has no data chunk.", param="audio")


class Framer:
    """Cuts a stream of float32 samples at 16 kHz into voice-detection frames; the remainder waits."""

    def __init__(self) -> None:
        self._rest: NDArray[np.float32] = np.zeros(0, dtype=np.float32)

    def push(self, samples: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        joined = np.concatenate((self._rest, samples)) if len(self._rest) else samples
        whole = len(joined) // FRAME_SAMPLES * FRAME_SAMPLES
        self._rest = joined[whole:]
        return [joined[i : i + FRAME_SAMPLES] for i in range(0, whole, FRAME_SAMPLES)]

    def flush(self) -> list[NDArray[np.float32]]:
        """The remainder, padded with silence to one frame; empty when there is none."""
        rest, self._rest = self._rest, np.zeros(0, dtype=np.float32)
        if not len(rest):
            return []
        return [np.pad(rest, (0, FRAME_SAMPLES - len(rest)))]


def to_float(pcm: bytes) -> NDArray[np.float32]:
    """int16 bytes as float32 in [-1, 1)."""
    return np.frombuffer(pcm, dtype="<i2").astype(np.float32) / np.float32(32768)


def to_pcm16(samples: NDArray[np.float32]) -> bytes:
    """float32 in [-1, 1] as int16 bytes; what is louder is clipped."""
    pcm: bytes = np.clip(np.rint(samples * np.float32(32768)), -32768, 32767).astype("<i2").tobytes()
    return pcm


class Meter:
    """A leaky bucket: refuses a sender who keeps above `rate_per_s` for longer than `window_s`."""

    def __init__(self, *, rate_per_s: float, window_s: float = 10.0) -> None:
        self._rate_per_s = rate_per_s
        self._limit = rate_per_s * window_s
        self._level = 0.0
        self._seen_at: float | None = None

    def accept(self, amount: float, now: float) -> bool:
        """Count `amount` (in the rate's unit) arriving at `now` (s); False when it is more than allowed."""
        if self._seen_at is not None:
            self._level = max(0.0, self._level - (now - self._seen_at) * self._rate_per_s)
        self._seen_at = now
        self._level += amount
        return self._level <= self._limit
