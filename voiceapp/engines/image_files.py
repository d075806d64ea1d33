"""Pictures and films in files: what they really are, whatever they are called.

Everything here blocks. As with sound, only containers that hold nothing but themselves are opened, each by the one
demuxer for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import av

from voiceapp.errors import InvalidParameter

HEAD_BYTES = 12
MAX_PIXELS = 100_000_000


@dataclass(frozen=True, slots=True)
class ImageFormat:
    ending: str
    content_type: str
    demuxer: str
    family: Literal["picture", "film"]


PNG = ImageFormat("png", "image/png", "png_pipe", "picture")
JPEG = ImageFormat("jpg", "image/jpeg", "jpeg_pipe", "picture")
WEBP = ImageFormat("webp", "image/webp", "webp_pipe", "picture")
MP4 = ImageFormat("mp4", "video/mp4", "mov", "film")
WEBM = ImageFormat("webm", "video/webm", "matroska", "film")


def form_of(head: bytes) -> ImageFormat | None:
    """Return the format of a file that begins with these 12 bytes; None for an unknown one."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return WEBP
    if head[4:8] == b"ftyp":
        return MP4
    return WEBM if head.startswith(b"\x1aE\xdf\xa3") else None


def probe(path: Path, family: Literal["picture", "film"]) -> ImageFormat:
    """Return the format of a picture or film, whose first frame is decoded.

    Raises:
        InvalidParameter: if it is none of those that are taken, is broken, or too large.
    """
    with path.open("rb") as file:
        form = form_of(file.read(HEAD_BYTES))
        if form is None or form.family != family:
            known = "PNG, JPEG or WebP" if family == "picture" else "MP4 or WebM"
            raise InvalidParameter(f"The file is no {family} in {known}.")
        file.seek(0)
        try:
            with av.open(file, format=form.demuxer) as container:
                seen = container.streams.video[0].codec_context
                if seen.width * seen.height > MAX_PIXELS:
                    raise InvalidParameter(f"The {family} has more than {MAX_PIXELS} pixels.")
                frame = next(container.decode(container.streams.video[0]))
                if not frame.width or not frame.height:
                    raise InvalidParameter(f"The {family} is empty.")
        except (av.error.FFmpegError, LookupError, StopIteration, ValueError) as error:
            raise InvalidParameter(f"The file is a broken {family}.") from error
    return form
