"""What engines for pictures and films promise. A provider implements one of these in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class PictureWish:
    """One picture."""

    prompt: str
    negative_prompt: str = ""
    size: str = ""
    """`1024x1024`; empty leaves it to the server."""
    seed: int | None = None
    sources: Sequence[Path] = ()
    """Pictures to begin with, in PNG, JPEG or WebP; with any, it is an edit."""
    mask: Path | None = None
    """Where the first source may be changed."""


@dataclass(frozen=True, slots=True)
class Painted:
    """A picture as its server gives it: one of the two."""

    content: bytes = b""
    url: str = ""


@runtime_checkable
class Painter(Protocol):
    """Answers when the picture is there."""

    base_url: str

    async def paint(self, wish: PictureWish) -> Painted:
        """Cancelling closes the connection.

        Raises EngineUnavailable, EngineTimeout or EngineRefused.
        """


@dataclass(frozen=True, slots=True)
class TaskElsewhere:
    """How a task of a service elsewhere stands."""

    status: str
    """`PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED`, `CANCELED` or `UNKNOWN`."""
    progress: float | None = None
    """0 to 1, where that service says it."""
    code: str = ""
    message: str = ""
    """Why it failed, fit to be shown."""
    output: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class TaskService(Protocol):
    """Takes tasks of the same interface as ours."""

    base_url: str

    async def create(self, path: str, body: Mapping[str, Any]) -> str:
        """The id of a task created at `/api/v1/services/<path>`; `model` is this provider's business.

        Raises EngineUnavailable, EngineTimeout or EngineRefused.
        """

    async def look(self, task_id: str) -> TaskElsewhere:
        """As `create`."""

    async def send(self, file: Path) -> str:
        """The address, good for that service alone, of a file that it was sent. As `create`."""
