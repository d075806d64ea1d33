"""Server-sent events, as a server of chat completions streams them. No I/O: bytes in, the data of events out."""

from __future__ import annotations

from voiceapp.errors import EngineUnavailable

MAX_LINE_BYTES = 1 << 20


class EventStream:
    """Reads `data:` fields; names, ids and comments of events are of no use here and are skipped."""

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._rest = bytearray()
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        """The data of each event that is complete now.

        Raises:
            EngineUnavailable: if a line, or one event, is longer than the limit.
        """
        self._rest += chunk
        # A carriage return at the end may be half of a line's end: it waits for the next chunk.
        held = b"\r" if self._rest.endswith(b"\r") else b""
        lines = bytes(self._rest).removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = bytearray(lines.pop() + held)
        events = [event for line in lines if (event := self._line(line)) is not None]
        if len(self._rest) > self._max_line_bytes:
            raise EngineUnavailable("The chat server sent a line that is too long.")
        return events

    def finish(self) -> list[str]:
        """The stream has ended: an event whose closing blank line was left out still counts."""
        return self.feed(b"\n\n")

    def _line(self, line: bytes) -> str | None:
        if len(line) > self._max_line_bytes or sum(map(len, self._data)) > self._max_line_bytes:
            raise EngineUnavailable("The chat server sent a line that is too long.")
        if not line:
            event = "\n".join(self._data) if self._data else None
            self._data = []
            return event
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        return None
