"""Model servers on this machine, found at their usual ports."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import aiohttp
from django.conf import settings

from voiceapp.engines.openai.client import read
from voiceapp.outbound.model_servers import WELL_KNOWN

LOOK_S = 1.0
"""Longest look at all ports."""
MAX_BYTES = 256 * 1024
MOST_MODELS = 20
MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class LocalServer:
    title: str
    address: str
    models: tuple[str, ...]

    @property
    def line(self) -> str:
        """The line that operators read about it."""
        return (
            f"{self.title} with {self.models[0]} answers here. Use it: "
            f"CHAT_BASE_URL={self.address} CHAT_MODEL={self.models[0]}, or Agents in the admin."
        )


async def local_servers() -> list[LocalServer]:
    """Look at the usual ports of this machine, all at once."""
    timeout = aiohttp.ClientTimeout(total=LOOK_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
        looks = (_look(session, port, title) for port, title in WELL_KNOWN.items() if port != settings.PORT)
        return [found for found in await asyncio.gather(*looks) if found is not None]


async def _look(session: aiohttp.ClientSession, port: int, title: str) -> LocalServer | None:
    address = f"http://127.0.0.1:{port}/v1"
    try:
        async with session.get(f"{address}/models", allow_redirects=False) as response:
            if response.status != 200:
                return None
            listed = json.loads(await read(response, MAX_BYTES))
        names = [name for entry in listed["data"] if isinstance(name := entry.get("id"), str)]
    except (TimeoutError, aiohttp.ClientError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    known = [name for name in names if name.isprintable() and 0 < len(name) <= MAX_NAME and "embed" not in name.lower()]
    return LocalServer(title, address, tuple(known[:MOST_MODELS])) if known else None
