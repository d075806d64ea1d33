"""A small server elsewhere: pictures as OpenAI's interface has them, films and files as the hosted service has them."""

from __future__ import annotations

import base64
import email
import email.policy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.tasks.test_images import MP4, PNG

FILM = {"task_id": "film-1", "task_status": "SUCCEEDED", "orig_prompt": "a cat", "actual_prompt": "a very fine cat"}
FOLDER = "uploads/there"


class Elsewhere(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: dict[str, list[dict[str, Any]]] = {}
        """By path, the fields of each body; a file is its content."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path: str) -> dict[str, Any] | bytes:
        if path.startswith("/v1/images/"):
            return {"data": [{"b64_json": base64.b64encode(PNG).decode()}]}
        if path.endswith("/video-synthesis"):
            return {"output": {"task_id": "film-1", "task_status": "PENDING"}, "request_id": "r"}
        if path == "/api/v1/tasks/film-1":
            output = {**FILM, "video_url": f"{self.url}/film.mp4"}
            return {"output": output, "usage": {"video_count": 1, "duration": 1, "SR": 720}, "request_id": "r"}
        if path.startswith("/api/v1/uploads?action=getPolicy"):
            names = ("policy", "signature", "oss_access_key_id", "x_oss_object_acl", "x_oss_forbid_overwrite")
            where = {"upload_dir": FOLDER, "upload_host": f"{self.url}/store"}
            return {"data": dict.fromkeys(names, "some") | where, "request_id": "r"}
        return MP4 if path == "/film.mp4" else b""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Elsewhere

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.setdefault(self.path, []).append(_fields(self.headers["Content-Type"], body))
        self.do_GET()

    def do_GET(self) -> None:
        answer = self.server.answer(self.path)
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _fields(content_type: str, body: bytes) -> dict[str, Any]:
    if not content_type.startswith("multipart/"):
        found: dict[str, Any] = json.loads(body)
        return found
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    form = email.message_from_bytes(head + body, policy=email.policy.HTTP)
    return {
        str(part.get_param("name", header="Content-Disposition")): part.get_payload(decode=True)
        for part in form.iter_parts()
    }


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
