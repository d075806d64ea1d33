"""The telephone's eight-bit sound (ITU-T G.711) to and from 16-bit PCM."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE_HZ = 8_000
LAWS = {"g711_ulaw": "u", "pcmu": "u", "g711_alaw": "a", "pcma": "a"}
"""The names of the formats, and the law of each."""


def decoded(data: bytes, name: str) -> bytes:
    """int16 little-endian PCM of bytes in the format of this name."""
    return _values(LAWS[name])[np.frombuffer(data, dtype=np.uint8)].tobytes()


def encoded(pcm: bytes, name: str) -> bytes:
    """Bytes in the format of this name: for each sample the nearest value that there is."""
    return _codes(LAWS[name])[np.frombuffer(pcm, dtype="<i2").astype(np.int32) + 32768].tobytes()


@cache
def _values(law: str) -> NDArray[np.int16]:
    code = np.arange(256)
    if law == "u":
        code = ~code & 0xFF
        size = (((code & 0x0F) << 3) + 0x84 << ((code & 0x70) >> 4)) - 0x84
        return np.where(code & 0x80, -size, size).astype("<i2")
    code = code ^ 0x55
    segment, size = (code & 0x70) >> 4, (code & 0x0F) << 4
    size = np.where(segment == 0, size + 8, size + 0x108 << np.maximum(segment - 1, 0))
    return np.where(code & 0x80, size, -size).astype("<i2")


@cache
def _codes(law: str) -> NDArray[np.uint8]:
    """The code of each sample from -32768 on."""
    values = _values(law).astype(np.int32)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    borders = (ordered[1:] + ordered[:-1]) / 2
    return order[np.searchsorted(borders, np.arange(-32768, 32768))].astype(np.uint8)
