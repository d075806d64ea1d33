"""The bridge's view of a socket, a peer connection or a relay connection."""

from __future__ import annotations

import json
from typing import Protocol

from voiceapp.protocol.forwarded.texts import ForwardedEvent
from voiceapp.protocol.wire.dialects import OWN, Dialect
from voiceapp.protocol.wire.events import ClientEvent, ServerEvent
from voiceapp.protocol.wire.reading import JsonObject

__all__ = ["OWN", "Dialect", "Disconnected", "Transport", "json_text", "text_of", "texts_of"]


class Disconnected(Exception):
    """The other side is gone; nothing can be sent any more."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
        """The close code the other side gave, 1006 when it gave none."""


def text_of(event: ServerEvent) -> str:
    """An event in our own dialect."""
    return json_text(event.to_wire())


def texts_of(event: ServerEvent, dialect: Dialect) -> list[str]:
    """The messages that tell of an event in a client's dialect."""
    if isinstance(event, ForwardedEvent):
        return [event.text]
    return [json_text(wire) for wire in dialect.write(event)]


def json_text(wire: JsonObject) -> str:
    """JSON that any encoder takes. Letters stand as they are: escaped, most take two or three times the bytes."""
    text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which an engine may send; escaped, the client joins the halves
        return json.dumps(wire, separators=(",", ":"))
    return text


class Transport(Protocol):
    """One caller's connection, already accepted."""

    async def receive(self) -> ClientEvent:
        """The next event.

        Raises:
            EventError: what came cannot be read; the next call goes on behind it.
            FloodError: the caller sends more than is allowed.
            Disconnected: the caller is gone.
        """

    async def send(self, event: ServerEvent) -> None:
        """Send one event; waits while the caller reads slowly.

        Raises:
            FloodError: the caller reads too slowly to go on.
        """

    def cut_playout(self) -> None:
        """Let what was sent and not played yet fall silent, where this side plays it against the clock."""

    async def close(self, code: int, reason: str) -> None:
        """Close the connection; harmless when it is closed already."""
