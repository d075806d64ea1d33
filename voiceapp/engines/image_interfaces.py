"""Interfaces of engines for pictures and films. A provider implements one of these in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class ImageRequest:
    prompt: str
    negative_prompt: str = ""
    size: str = ""
    """`1024x1024`; empty leaves it to the server."""
    seed: int | None = None
    sources: Sequence[Path] = ()
    """Pictures to begin with, in PNG, JPEG or WebP; with any, it is an edit."""
    mask: Path | None = None


@dataclass(frozen=True, slots=True)
class GeneratedImage:
    """A picture as its server gives it: one of the two."""

    content: bytes = b""
    url: str = ""


@runtime_checkable
class ImageGenerator(Protocol):
    """Returns when the picture is there."""

    base_url: str

    async def paint(self, request: ImageRequest) -> GeneratedImage:
        """The image. Cancelling closes the connection.

        Raises:
            EngineUnavailable: if the engine cannot serve now.
            EngineTimeout: if the engine takes too long.
            EngineRefused: if the engine does not accept the request.
        """


@dataclass(frozen=True, slots=True)
class UpstreamTask:
    """State of a task at another service."""

    status: str
    """`PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED`, `CANCELED` or `UNKNOWN`."""
    progress: float | None = None
    """0 to 1, where that service says it."""
    code: str = ""
    message: str = ""
    """Reason why it failed, fit to be shown."""
    output: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class TaskService(Protocol):
    """Takes tasks of the same interface as ours."""

    base_url: str

    async def create(self, path: str, body: Mapping[str, Any]) -> str:
        """The id of a task created at `/api/v1/services/<path>`; `model` is the name that the service knows.

        Raises:
            EngineUnavailable: if the service cannot serve now.
            EngineTimeout: if the service takes too long.
            EngineRefused: if the service does not accept the request.
        """

    async def look(self, task_id: str) -> UpstreamTask:
        """As `create`."""

    async def cancel(self, task_id: str) -> bool:
        """Cancel a task that has not begun at the service; true if it was. As `create`."""

    async def send(self, file: Path) -> str:
        """The address, good for that service alone, of a file that it was sent. As `create`."""
