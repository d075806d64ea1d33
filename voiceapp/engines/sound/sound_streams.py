"""Compressed sound that arrives piece by piece, made PCM as it comes: mono int16 at 16 kHz."""

from __future__ import annotations

import av
import numpy as np

from voiceapp.engines.sound.opus import Decoder, OpusError
from voiceapp.engines.sound.sound_files import MonoResampler
from voiceapp.errors import InvalidParameter

PARSED = {"mp3": "mp3float", "aac": "aac"}
"""Codecs by the name of a format: their frames can be found in the stream itself."""
OGG_MAGIC = b"OggS"
OGG_HEADER_BYTES = 27
MAX_WAITING_BYTES = 256 * 1024
"""Bytes of an incomplete page or frame; an Ogg page has 65,307 at most."""
MAX_UNREAD_BYTES = 16 * 1024
"""Bytes in a row that do not form a frame."""
HEADERS = (b"OpusHead", b"OpusTags")
BROKEN = "The audio cannot be read: it is not {}."


class FrameStream:
    """A stream of frames without a container: mp3, or aac in ADTS."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._unread_bytes = 0
        self._codec = av.CodecContext.create(PARSED[kind], "r")
        self._resampler = MonoResampler("s16")

    def feed(self, data: bytes) -> bytes:
        """The sound of what is complete with this piece.

        Raises:
            InvalidParameter: if the data is not in this format.
        """
        pcm = []
        try:
            for packet in self._codec.parse(data):
                for frame in self._frames(packet):
                    frame.pts = None
                    pcm += [part.astype("<i2") for part in self._resampler.resample(frame)]
        except (av.FFmpegError, ValueError) as error:
            raise InvalidParameter(BROKEN.format(self._kind), param="audio") from error
        return np.concatenate(pcm).tobytes() if pcm else b""

    def _frames(self, packet: av.Packet) -> list[av.AudioFrame]:
        try:
            frames: list[av.AudioFrame] = self._codec.decode(packet)
        except (av.FFmpegError, ValueError):  # a tag, or a damaged frame, among good ones
            self._unread_bytes += packet.size
            if self._unread_bytes > MAX_UNREAD_BYTES:
                raise
            return []
        self._unread_bytes = 0
        return frames


class OggOpusStream:
    """Opus in Ogg (RFC 3533, RFC 7845): pages to packets to sound."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._packet = bytearray()
        self._decoder = Decoder()

    def feed(self, data: bytes) -> bytes:
        """The sound of what is complete with this piece.

        Raises:
            InvalidParameter: if the data is not Opus in Ogg.
        """
        self._waiting += data
        pcm = bytearray()
        while (page := self._next_page()) is not None:
            for packet in self._packets(*page):
                if not packet.startswith(HEADERS):
                    try:
                        pcm += self._decoder.decode(packet)
                    except OpusError as error:
                        raise InvalidParameter(BROKEN.format("Opus in Ogg"), param="audio") from error
        return bytes(pcm)

    def _next_page(self) -> tuple[bytes, bytes] | None:
        """Segment table and body of the next complete page."""
        waiting = self._waiting
        if not OGG_MAGIC.startswith(waiting[:4]) and not waiting.startswith(OGG_MAGIC):
            raise InvalidParameter(BROKEN.format("Opus in Ogg"), param="audio")
        if len(waiting) < OGG_HEADER_BYTES:
            return None
        body_at = OGG_HEADER_BYTES + waiting[26]
        table = bytes(waiting[OGG_HEADER_BYTES:body_at])
        end = body_at + sum(table)
        if len(table) < waiting[26] or len(waiting) < end:
            return None
        body = bytes(waiting[body_at:end])
        del waiting[:end]
        return table, body

    def _packets(self, table: bytes, body: bytes) -> list[bytes]:
        """Packets that end in a page; one that goes on waits for the next."""
        found, at = [], 0
        for length in table:
            self._packet += body[at : at + length]
            at += length
            if length < 255:
                found.append(bytes(self._packet))
                self._packet.clear()
        if len(self._packet) > MAX_WAITING_BYTES:
            raise InvalidParameter(BROKEN.format("Opus in Ogg"), param="audio")
        return [packet for packet in found if packet]


def stream_of(kind: str) -> FrameStream | OggOpusStream | None:
    """Return the decoder of a format; None for PCM, which needs no decoding.

    Raises:
        InvalidParameter: if the format is not read here.
    """
    if kind in ("pcm", "wav"):
        return None
    if kind in PARSED:
        return FrameStream(kind)
    if kind in ("opus", "ogg"):
        try:
            return OggOpusStream()
        except OpusError:
            raise InvalidParameter("Opus is not read here: libopus is missing.", param="format") from None
    known = ", ".join(("pcm", "wav", *PARSED, "opus"))
    raise InvalidParameter(f"format must be one of {known}.", param="format")
