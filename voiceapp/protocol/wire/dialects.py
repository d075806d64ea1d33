"""The dialects of realtime events: what a client's text frame asks for, and how an event is written for that client.

A session has one dialect, chosen at the handshake. `Session` knows only the events of `events.py`.
"""

from __future__ import annotations

from typing import Protocol

from voiceapp.protocol.wire.events import ClientEvent, ServerEvent, parse_client_event
from voiceapp.protocol.wire.reading import JsonObject


class Dialect(Protocol):
    """A translation at the edge of one session. It may remember what it read and wrote."""

    def read(self, text: str) -> ClientEvent | None:
        """One JSON text frame of the client; None when there is nothing to do for it.

        Raises:
            EventError: if it cannot be read.
        """

    def write(self, event: ServerEvent) -> list[JsonObject]:
        """The messages, ready for JSON, that tell the client of an event: none, one, or several."""


class OwnDialect:
    """The events as `events.py` has them, which is also OpenAI's beta dialect."""

    def read(self, text: str) -> ClientEvent | None:
        return parse_client_event(text)

    def write(self, event: ServerEvent) -> list[JsonObject]:
        return [event.to_wire()]


OWN = OwnDialect()
"""Dialect of all sessions: it has no state."""
