"""A small server with buckets, as S3 speaks: enough to put, look at, get and delete, for those who sign."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY_ID = "AKIATESTS"
NO_KEY = b"<Error><Code>NoSuchKey</Code><Message>There is no such key.</Message></Error>"
SIGNED = f"AWS4-HMAC-SHA256 Credential={KEY_ID}/"


class Buckets(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
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

    def put(self, path: str, body: bytes) -> HTTPStatus:
        self.objects[path] = body
        self._is_put.set()
        self._may_answer.wait(60)
        return HTTPStatus.FORBIDDEN if self.is_broken else HTTPStatus.OK

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Buckets

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self._may_enter():
            self._answer(self.server.put(self.path, body))

    def do_GET(self) -> None:
        if self._may_enter():
            found = self.server.objects.get(self.path)
            if found is None:
                self._answer(HTTPStatus.NOT_FOUND, NO_KEY)
            elif wanted := self.headers.get("Range"):
                self.server.ranges.append(wanted)
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                self._answer(HTTPStatus.PARTIAL_CONTENT, found[start:])
            else:
                self._answer(HTTPStatus.OK, found)

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        if self._may_enter() and self.server.is_broken:
            self._answer(HTTPStatus.FORBIDDEN)
        elif self._may_enter():
            self.server.objects.pop(self.path, None)
            self._answer(HTTPStatus.NO_CONTENT)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _may_enter(self) -> bool:
        may = self.headers.get("Authorization", "").startswith(SIGNED)
        if not may:
            self._answer(HTTPStatus.FORBIDDEN)
        return may

    def _answer(self, status: HTTPStatus, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"0"')
        self.send_header("Last-Modified", "Sat, 21 Nov 2026 07:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def buckets() -> Iterator[Buckets]:
    with Buckets() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
