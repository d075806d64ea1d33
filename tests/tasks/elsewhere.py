"""A small server elsewhere: pictures as OpenAI's interface has them, films and files as the hosted service has them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import BodyPartReader, web

from tests.tasks.test_images import MP4, PNG
from tests.web import everywhere, listening_beside

FILM = {"task_id": "film-1", "task_status": "SUCCEEDED", "orig_prompt": "a cat", "actual_prompt": "a very fine cat"}
FOLDER = "uploads/there"


class Elsewhere:
    def __init__(self) -> None:
        self.url = ""
        self.asked: dict[str, list[dict[str, Any]]] = {}
        """By path, the fields of each body; a file is its content."""

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

    async def serve(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            self.asked.setdefault(request.path_qs, []).append(await _fields(request))
        answer = self.answer(request.path_qs)
        return web.Response(body=answer) if isinstance(answer, bytes) else web.json_response(answer)


async def _fields(request: web.Request) -> dict[str, Any]:
    if not request.content_type.startswith("multipart/"):
        found: dict[str, Any] = await request.json()
        return found
    parts = await request.multipart()
    return {str(part.name): bytes(await part.read()) async for part in parts if isinstance(part, BodyPartReader)}


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    server = Elsewhere()
    with listening_beside(everywhere(server.serve)) as server.url:
        yield server
