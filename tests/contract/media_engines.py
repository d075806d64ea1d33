"""Small honest engines for images and videos: one has its picture ready, the other is a service that takes tasks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.tasks.test_images import PNG
from voiceapp.engines.image_interfaces import GeneratedImage, ImageRequest, UpstreamTask

VIDEO_S = 5


class ReadyPainter:
    """A `Painter`."""

    def __init__(self) -> None:
        self.base_url = "http://127.0.0.1:9"
        self.asked: list[ImageRequest] = []

    async def paint(self, request: ImageRequest) -> GeneratedImage:
        self.asked.append(request)
        return GeneratedImage(content=PNG)


class VideoService:
    """A `TaskService` whose videos lie on a server of files."""

    def __init__(self, *, base_url: str) -> None:
        self.base_url = base_url
        self.asked: list[Mapping[str, Any]] = []

    async def create(self, path: str, body: Mapping[str, Any]) -> str:
        self.asked.append(body)
        return "there-1"

    async def look(self, task_id: str) -> UpstreamTask:
        output = {"video_url": f"{self.base_url}/made.mp4"}
        return UpstreamTask("SUCCEEDED", output=output, usage={"video_count": 1, "video_duration": VIDEO_S})

    async def cancel(self, task_id: str) -> bool:
        return False

    async def send(self, file: Path) -> str:
        raise AssertionError("no file is sent in these tests")
