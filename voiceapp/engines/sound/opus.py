"""Opus for speech, by libopus itself: decoded straight to the engines' rate, encoded straight from the voices' rate.

FFmpeg's decoder knows only 48 kHz; libopus resamples inside its transform, which is better and costs half. The library
comes with PyAV's wheels, or from the system. Its calls take some ten to a hundred microseconds, so they keep the
interpreter's lock: giving it up would put every frame in the queue behind the engines' threads.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from pathlib import Path

import av

DECODED_RATE_HZ = 16_000
ENCODED_RATE_HZ = 24_000
FRAME_MS = 20
FRAME_BYTES = ENCODED_RATE_HZ * FRAME_MS // 1000 * 2
"""PCM that makes one packet."""
MAX_FRAME_MS = 120
"""The longest packet (RFC 6716, 2.1.4)."""
MAX_PACKET_BYTES = 1275
BITRATE = 32_000
COMPLEXITY = 5

_RESTRICTED_LOWDELAY = 2051
_SET_BITRATE, _SET_COMPLEXITY = 4002, 4010


class OpusError(Exception):
    """A packet that is not Opus, or a library that cannot work."""


class Decoder:
    """Packets of one stream to mono int16 PCM at 16 kHz."""

    def __init__(self) -> None:
        """Make a state of libopus for one stream.

        Raises:
            OpusError: if libopus is not installed.
        """
        self._library = library()
        self._state = ctypes.create_string_buffer(self._library.opus_decoder_get_size(1))
        _check(self._library.opus_decoder_init(self._state, DECODED_RATE_HZ, 1))
        self._pcm = ctypes.create_string_buffer(DECODED_RATE_HZ * MAX_FRAME_MS // 1000 * 2)

    def decode(self, packet: bytes) -> bytes:
        """The sound of the next packet.

        Raises:
            OpusError: if libopus cannot read it.
        """
        return self._decode(packet, len(self._pcm) // 2, 0)

    def conceal(self, length_ms: int, following: bytes | None) -> bytes:
        """Sound in the place of a lost packet of `length_ms`.

        From the copy that the `following` packet may carry of it (RFC 6716, 2.1.7), else a continuation of what was
        heard before, which fades when the loss goes on.
        """
        samples = DECODED_RATE_HZ * length_ms // 1000
        if following:
            return self._decode(following, samples, 1)
        return self._decode(None, samples, 0)

    def _decode(self, packet: bytes | None, samples: int, from_copy: int) -> bytes:
        size = len(packet) if packet else 0
        decoded = self._library.opus_decode(self._state, packet, size, self._pcm, samples, from_copy)
        return self._pcm.raw[: _check(decoded) * 2]


class Encoder:
    """Mono int16 PCM at 24 kHz to packets of 20 ms, without look-ahead."""

    def __init__(self) -> None:
        """Make a state of libopus for one stream.

        Raises:
            OpusError: if libopus is not installed.
        """
        self._library = library()
        self._state = ctypes.create_string_buffer(self._library.opus_encoder_get_size(1))
        _check(self._library.opus_encoder_init(self._state, ENCODED_RATE_HZ, 1, _RESTRICTED_LOWDELAY))
        self._set(_SET_BITRATE, BITRATE)
        self._set(_SET_COMPLEXITY, COMPLEXITY)
        self._packet = ctypes.create_string_buffer(MAX_PACKET_BYTES)

    def encode(self, pcm: bytes) -> bytes:
        """One packet of exactly FRAME_BYTES of sound."""
        assert len(pcm) == FRAME_BYTES
        size = self._library.opus_encode(self._state, pcm, FRAME_BYTES // 2, self._packet, MAX_PACKET_BYTES)
        return self._packet.raw[: _check(size)]

    def _set(self, request: int, value: int) -> None:
        _check(self._library.opus_encoder_ctl(self._state, request, ctypes.c_int(value)))


def available() -> bool:
    try:
        library()
    except OpusError:
        return False
    return True


@cache
def library() -> ctypes.PyDLL:
    """libopus with the types of what is used of it.

    Raises:
        OpusError: if it is not installed.
    """
    for name in _candidates():
        try:
            found = ctypes.PyDLL(name)
        except OSError:
            continue
        return _typed(found)
    raise OpusError("libopus was found neither in PyAV's wheel nor in the system.")


def _candidates() -> list[str]:
    package = Path(av.__file__).parent
    bundled = [*package.parent.glob("av.libs/libopus-*"), *package.glob(".dylibs/libopus*")]
    system = ctypes.util.find_library("opus")
    return [*map(str, bundled), *([system] if system else [])]


def _typed(found: ctypes.PyDLL) -> ctypes.PyDLL:
    state, data, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    found.opus_decoder_get_size.argtypes = [size]
    found.opus_decoder_init.argtypes = [state, size, size]
    found.opus_decode.argtypes = [state, data, size, state, size, size]
    found.opus_encoder_get_size.argtypes = [size]
    found.opus_encoder_init.argtypes = [state, size, size, size]
    found.opus_encode.argtypes = [state, data, size, state, size]
    found.opus_encoder_ctl.argtypes = [state, size]  # what follows is variadic
    found.opus_strerror.argtypes = [size]
    found.opus_strerror.restype = data
    return found


def _check(result: int) -> int:
    if result < 0:
        raise OpusError(library().opus_strerror(result).decode())
    return result
