"""Files of texts, one a line, that a task works on one by one."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from voiceapp.errors import InvalidParameter, VoiceError
from voiceapp.http.schemas import UNWRITABLE
from voiceapp.tasks.work.context import TaskContext
from voiceapp.tasks.work.retries import with_patience

MAX_LINES_BYTES = 50_000_000
MAX_LINES = 50_000
MAX_LINE_BYTES = 256 * 1024
AT_ONCE = 4
"""Lines of one file that are worked on at once: another server answers several in parallel."""


def lines_of(path: Path) -> Iterator[bytes]:
    """Lines that hold something; of one that is longer than `MAX_LINE_BYTES`, its beginning and one byte more.

    Raises:
        InvalidParameter: if there are too many.
    """
    count = 0
    with path.open("rb") as source:
        if source.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            source.seek(0)
        while line := source.readline(MAX_LINE_BYTES + 1):
            rest = line
            while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
                rest = source.readline(MAX_LINE_BYTES + 1)
            if len(line) <= MAX_LINE_BYTES and not line.strip():
                continue
            count += 1
            if count > MAX_LINES:
                raise InvalidParameter(f"The file has more than {MAX_LINES} lines.")
            yield line


async def results_of(
    part: TaskContext, path: Path, work: Callable[[int, str], Awaitable[Mapping[str, Any]]]
) -> AsyncIterator[Mapping[str, Any]]:
    """The result of each line of a file, in order. What is refused becomes `{"error": {"code", "message"}}`.

    Each has the number of its line, from 0 and without empty ones.

    Raises:
        InvalidParameter: if the file has no lines, or too many.
        VoiceError: at the end, the refusal of the first line, if every line was refused.
    """
    total = await asyncio.to_thread(lambda: sum(1 for _ in lines_of(path)))
    if not total:
        raise InvalidParameter("The file holds no lines.")

    async def one(number: int, line: bytes) -> Mapping[str, Any]:
        try:
            text = read_text(line)
            return {"line": number, **await with_patience(lambda: work(number, text))}
        except VoiceError as refusal:
            refusals[number] = refusal
            return {"line": number, "error": {"code": refusal.code, "message": refusal.message}}

    lines = lines_of(path)
    done = 0
    refusals: dict[int, VoiceError] = {}
    while some := [line for _, line in zip(range(AT_ONCE), lines, strict=False)]:
        for found in await asyncio.gather(*(one(done + number, line) for number, line in enumerate(some))):
            yield found
        done += len(some)
        part.progress(done / total)
    if len(refusals) == total:
        raise refusals[0]


def read_text(line: bytes) -> str:
    """A line of a file as text.

    Raises:
        InvalidParameter: if it is too long, not UTF-8, or holds a NUL character.
    """
    if len(line) > MAX_LINE_BYTES:
        raise InvalidParameter(f"The line is longer than {MAX_LINE_BYTES} bytes.")
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidParameter("The line is not UTF-8.") from None
    if UNWRITABLE.search(text):
        raise InvalidParameter("The line holds a NUL character.")
    return text
