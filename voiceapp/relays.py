"""AOQ relays to which a page may connect: rows of another room, which registers here how to look them up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relay:
    """A relay that takes new sessions."""

    origin: str
    """Such as https://192.0.2.7:8443."""
    process: str
    """Identifier of its server process; another one after a restart."""


Relays = Callable[[], Awaitable[list[Relay]]]


async def _none() -> list[Relay]:
    return []


_relays: Relays = _none


def look_up(relays: Relays) -> None:
    """Ask this function from now on."""
    global _relays
    _relays = relays


async def open_relays() -> list[Relay]:
    return await _relays()
