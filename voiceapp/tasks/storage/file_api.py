"""The operations on files that tasks made, by signed links."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import IO

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from ninja import Path, Router

from voiceapp.database.thread import run_in_db_thread
from voiceapp.http.error_responses import ErrorResponse
from voiceapp.http.middleware import http_response
from voiceapp.http.schemas import CleanStr
from voiceapp.tasks.models import TaskFile
from voiceapp.tasks.storage import files

CHUNK_BYTES = 64 * 1024

BYTES = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))")
"""One range of a file; several at once are answered with all of it."""

FILE = {
    "responses": {
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    }
}

router = Router(tags=["Tasks"])


@router.get("/files/{token}/{name}", summary="Fetch a result", auth=None, openapi_extra=FILE)
async def fetch_file(request: HttpRequest, token: Path[CleanStr], name: Path[CleanStr]) -> HttpResponseBase:
    """A file that a task made, or one range of its bytes. The link is signed and good for a day; it needs no key."""
    row = await run_in_db_thread(files.file_of, token)
    return await served(request, row.size, partial(files.opened, row.name), _described(row))


@router.api_operation(["HEAD"], "/files/{token}/{name}", summary="Look at a result", auth=None)
async def look_at_file(request: HttpRequest, token: Path[CleanStr], name: Path[CleanStr]) -> HttpResponse:
    """Return the headers of a file: its type and length."""
    row = await run_in_db_thread(files.file_of, token)
    (await files.at_the_storage(lambda: files.opened(row.name, 0))).close()
    return HttpResponse(headers={**_described(row), "Content-Length": str(row.size)})


async def served(
    request: HttpRequest, size: int, opened: Callable[[int], IO[bytes]], headers: dict[str, str]
) -> HttpResponseBase:
    """Return a file, or the range of its bytes that is asked for; `opened` opens it at a byte.

    Raises:
        NotFound: if `opened` does.
    """
    wanted = _range(request, size)
    if wanted is not None and not wanted:
        outside = f"The file has {size} bytes; the range lies behind them."
        return http_response(
            request, ErrorResponse(416, "InvalidParameter", outside, headers={"Content-Range": f"bytes */{size}"})
        )
    span = range(size) if wanted is None else wanted
    source = await files.at_the_storage(partial(opened, span.start))
    response = StreamingHttpResponse(
        _chunks(source, len(span)), headers={**headers, "Accept-Ranges": "bytes", "Content-Length": str(len(span))}
    )
    if wanted is not None:
        response.status_code = 206
        response.headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{size}"
    return response


async def _chunks(source: IO[bytes], length: int) -> AsyncIterator[bytes]:
    """So many bytes of a file, which is closed then."""
    try:
        while length > 0:
            chunk = await files.at_the_storage(partial(source.read, min(CHUNK_BYTES, length)))
            if not chunk:
                return
            length -= len(chunk)
            yield chunk
    finally:
        source.close()


def _described(row: TaskFile) -> dict[str, str]:
    return {
        "Content-Type": row.content_type,
        "Content-Disposition": f'attachment; filename="{row.name.rpartition("/")[2]}"',
        "Accept-Ranges": "bytes",
    }


def _range(request: HttpRequest, size: int) -> range | None:
    """The bytes that are asked for, none of them if they lie behind the end; None asks for the whole file."""
    found = BYTES.fullmatch(request.headers.get("Range", ""))
    if found is None or "If-Range" in request.headers:  # which names a version, and files have none
        return None
    first, last, from_end = found.groups()
    if from_end is not None:
        return range(max(0, size - int(from_end)), size)
    if last and int(last) < int(first):  # no range at all
        return None
    return range(int(first), min(size, int(last) + 1) if last else size)
