"""A small server with buckets, as S3 speaks: enough to put, look at, get and delete, for those who sign."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from aiohttp import web

from tests.web import everywhere, listening_beside

KEY_ID = "AKIATESTS"
NO_KEY = b"<Error><Code>NoSuchKey</Code><Message>There is no such key.</Message></Error>"
SIGNED = f"AWS4-HMAC-SHA256 Credential={KEY_ID}/"


class Buckets:
    def __init__(self) -> None:
        self.url = ""
        self.objects: dict[str, bytes] = {}
        """By path: `/bucket/folder/name`."""
        self.ranges: list[str] = []
        """That were asked for, as their headers say it."""
        self.is_broken = False
        """Keeps what it is given and has, and says that it failed."""
        self._is_put = threading.Event()
        self._may_answer = threading.Event()
        self._may_answer.set()

    @contextmanager
    def held(self) -> Iterator[threading.Event]:
        """What is put is kept, but not answered until the end of the block; the event is set when it is there."""
        self._is_put.clear()
        self._may_answer.clear()
        try:
            yield self._is_put
        finally:
            self._may_answer.set()

    async def serve(self, request: web.Request) -> web.Response:
        path = request.rel_url.raw_path
        if not request.headers.get("Authorization", "").startswith(SIGNED):
            return _answer(HTTPStatus.FORBIDDEN)
        if request.method == "PUT":
            self.objects[path] = await request.read()
            self._is_put.set()
            await asyncio.to_thread(self._may_answer.wait, 60)
            return _answer(HTTPStatus.FORBIDDEN if self.is_broken else HTTPStatus.OK)
        if request.method == "DELETE":
            if not self.is_broken:
                self.objects.pop(path, None)
            return _answer(HTTPStatus.FORBIDDEN if self.is_broken else HTTPStatus.NO_CONTENT)
        if path not in self.objects:
            return _answer(HTTPStatus.NOT_FOUND, NO_KEY)
        if wanted := request.headers.get("Range"):
            self.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            return _answer(HTTPStatus.PARTIAL_CONTENT, self.objects[path][start:])
        return _answer(HTTPStatus.OK, self.objects[path])


def _answer(status: HTTPStatus, body: bytes = b"") -> web.Response:
    headers = {"ETag": '"0"', "Last-Modified": "Sat, 21 Nov 2026 07:00:00 GMT"}
    return web.Response(status=status, body=body, headers=headers)


@contextmanager
def buckets() -> Iterator[Buckets]:
    server = Buckets()
    with listening_beside(everywhere(server.serve)) as server.url:
        yield server
