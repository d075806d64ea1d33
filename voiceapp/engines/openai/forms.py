"""Bodies of `multipart/form-data`."""

from __future__ import annotations

import mimetypes
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class MultipartForm:
    """Whole in memory, so that it can be sent twice."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._boundary = secrets.token_hex(16)
        self._parts = [(f'name="{name}"', str(value).encode()) for name, value in fields.items()]

    @property
    def content_type(self) -> str:
        return f"multipart/form-data; boundary={self._boundary}"

    def add_file(self, name: str, path: Path) -> None:
        """`path` has a name of ours, whose ending says what it is. Blocks while it is read."""
        kind = mimetypes.guess_type(path.name, strict=False)[0] or "application/octet-stream"
        self.add_content(name, path.name, kind, path.read_bytes())

    def add_content(self, name: str, file_name: str, kind: str, content: bytes) -> None:
        """A file that is not on a disk, or without `file_name` a field of some kind; both are ours."""
        of_file = f'; filename="{file_name}"' if file_name else ""
        self._parts.append((f'name="{name}"{of_file}\r\nContent-Type: {kind}', content))

    def body(self) -> bytes:
        return b"".join(self._pieces())

    def _pieces(self) -> Iterator[bytes]:
        for head, content in self._parts:
            yield f"--{self._boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode()
            yield content
            yield b"\r\n"
        yield f"--{self._boundary}--\r\n".encode()
