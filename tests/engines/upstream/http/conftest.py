"""A service elsewhere that does what a test tells it, faults included."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.web import everywhere, listening
from voiceapp.engines.upstream.http.client import Address, services

KEY = "canary-of-the-operator-0123456789"
"""Not in the form of a key: nothing but the text itself gives it away."""
PATIENCE_S = 20.0


@dataclass
class Reply:
    """What the service does with one request."""

    body: Any = None
    """Bytes as they are, anything else as JSON."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    ends: str = "well"
    """`well`; `cut`: the connection breaks after the body; `never`: it stays open; `endless`: the body is repeated."""


@dataclass
class FaultyService:
    """Replies to the next requests with `replies`, to further ones with the last of them; remembers the requests."""

    base_url: str = ""
    replies: list[Reply] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    """Method, path, headers and JSON of each request."""

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.asked]

    def will(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def address(self, **more: Any) -> dict[str, Any]:
        """The options of a model that it serves."""
        return {"base_url": self.base_url, "api_key": KEY, "timeout_s": PATIENCE_S, **more}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        self.asked.append((request.method, request.path, dict(request.headers), json.loads(text) if text else None))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        if reply.ends == "well":
            return web.Response(body=body, status=reply.status, headers=reply.headers, content_type=reply.content_type)
        response = web.StreamResponse(
            status=reply.status, headers={"Content-Type": reply.content_type, **reply.headers}
        )
        await response.prepare(request)
        await response.write(body)
        while reply.ends == "endless":
            await response.write(body)
        if reply.ends == "never":
            await asyncio.Event().wait()
        assert request.transport is not None
        request.transport.abort()
        return response


@pytest_asyncio.fixture
async def service() -> AsyncIterator[FaultyService]:
    found = FaultyService()
    async with listening(everywhere(found.handle)) as found.base_url:
        services.cache_clear()
        yield found
        for server in services().all():
            await server.close()
        services.cache_clear()


@pytest.fixture
def address(service: FaultyService) -> Address:
    return Address(**service.address())
