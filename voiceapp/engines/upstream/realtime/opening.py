"""The first exchange of a session at a service elsewhere: its settings, and the items that it goes on from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from voiceapp.engines.upstream.realtime.connection import EventLine, LineLost, wire_of
from voiceapp.errors import EngineRefused, EngineTimeout

BEGIN_S = 15.0
"""For the whole exchange."""
ITEMS_AT_ONCE = 20
"""So many are created before their answers are waited for: the service may be far away."""


async def begin(
    line: EventLine, settings: Mapping[str, Any], items: Sequence[Mapping[str, Any]]
) -> tuple[EventLine, dict[str, Any]]:
    """The line, and the `session.created` of its session with the settings that it has taken.

    What the service does not take is left out. The line is closed when this raises.

    Raises:
        EngineRefused: the service says an error before the session begins.
        EngineTimeout: it takes too long.
        LineLost: it ends the session.
    """
    try:
        async with asyncio.timeout(BEGIN_S):
            return line, await _begin(line, settings, items)
    except TimeoutError:
        await line.close()
        raise EngineTimeout("The service that runs this model did not begin the session in time.") from None
    except (EngineRefused, LineLost, asyncio.CancelledError):
        await line.close()
        raise


async def _begin(line: EventLine, settings: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    created = await _next(line, ("session.created", "error"))
    if created["type"] == "error" or not isinstance(created.get("session"), dict):
        raise EngineRefused("The service that runs this model did not begin the session.")
    if settings:
        await line.send(json.dumps({"type": "session.update", "session": dict(settings)}))
        updated = await _next(line, ("session.updated", "error"))
        if isinstance(updated.get("session"), dict):
            created = {**created, "session": updated["session"]}
    for start in range(0, len(items), ITEMS_AT_ONCE):
        some = items[start : start + ITEMS_AT_ONCE]
        for item in some:
            await line.send(json.dumps({"type": "conversation.item.create", "item": item}))
        for _ in some:
            await _next(line, ("conversation.item.created", "error"))
    return created


async def _next(line: EventLine, kinds: tuple[str, ...]) -> dict[str, Any]:
    """The next event of one of these kinds."""
    while True:
        wire = wire_of(await line.receive())
        if wire is not None and wire["type"] in kinds:
            return wire
