"""HTTP servers on loopback that respond as a test says."""

from __future__ import annotations

import asyncio
import html
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from aiohttp import web

from tests.loop_thread import LoopThread

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def everywhere(handler: Handler) -> web.RouteDef:
    """Serve every method and path with one handler."""
    return web.route("*", "/{path:.*}", handler)


@asynccontextmanager
async def listening(*routes: web.AbstractRouteDef, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The origin of a server; handlers are cancelled when their client leaves."""
    application = web.Application(client_max_size=2**24)
    application.add_routes(routes)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextmanager
def listening_beside(*routes: web.AbstractRouteDef) -> Iterator[str]:
    """The same for tests that are no coroutines: the server has a thread of its own."""
    loop, servers = LoopThread(), AsyncExitStack()
    try:
        yield loop.run(servers.enter_async_context(listening(*routes)))
    finally:
        loop.run(servers.aclose())
        loop.close()


def words_of(page: str) -> str:
    """Return the words of an HTML page as a reader finds them, each run of white space as one space."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.replace("<wbr>", ""))).split())


class Received:
    """Bodies that were posted to `origin`."""

    def __init__(self) -> None:
        self.origin = ""
        self.bodies: list[bytes] = []
        self._news = asyncio.Condition()

    async def take(self, request: web.Request) -> web.Response:
        async with self._news:
            self.bodies.append(await request.read())
            self._news.notify_all()
        return web.Response()

    async def wait_for(self, part: bytes) -> bytes:
        """All bodies together, once they hold this part."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: part in b"".join(self.bodies))
        return b"".join(self.bodies)


@asynccontextmanager
async def receiving() -> AsyncIterator[Received]:
    received = Received()
    async with listening(everywhere(received.take)) as received.origin:
        yield received
