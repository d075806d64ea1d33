"""One connection to each MCP server, made in the background when it is first wanted and kept until it fails."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from django.conf import settings
from pydantic import SecretStr

from voiceapp import tracing
from voiceapp.catalogue.mcp_servers import McpServer
from voiceapp.errors import EngineError, EngineTimeout, EngineUnavailable
from voiceapp.event_loops import per_loop
from voiceapp.protocol.wire.json_schemas import check_tools

if TYPE_CHECKING:
    from mcp import Client

logger = logging.getLogger(__name__)

MAX_BYTES = 1_000_000
"""Length of a message of a server."""
MAX_OUTPUT = 20_000
"""Characters of the output of a tool that a model is given."""
MAX_TOOLS = 64
MAX_PAGES = 4
MAX_SCHEMAS = 100_000
"""Characters of the schemas of a server's tools together."""
RETRY_S = 30.0
"""Time after which a server that could not be reached is tried again."""
MAX_DESCRIPTION = 2_000
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
Ready: TypeAlias = "asyncio.Future[tuple[Client, list[dict[str, Any]]]]"


class McpConnection:
    """The connection to one server. Calls share it; each is waited for no longer than the server's `timeout_s`."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self._task: asyncio.Task[None] | None = None
        self._ready: Ready | None = None
        self._retry_at = 0.0

    def connect(self) -> Ready:
        """Return the connection with its tools as `tools` does, or as it will be: it is made in the background."""
        loop = asyncio.get_running_loop()
        if (self._task is None or self._task.done()) and loop.time() >= self._retry_at:
            self._ready = loop.create_future()
            self._task = asyncio.create_task(self._hold(self._ready), name=f"MCP server {self.server.label}")
        assert self._ready is not None
        return self._ready

    async def tools(self) -> list[dict[str, Any]]:
        """Return the tools that the operator lets models call: {name, description, input_schema}.

        Raises:
            EngineUnavailable: if the server cannot be reached in time, or breaks off.
        """
        return (await asyncio.shield(self.connect()))[1]

    async def call(self, name: str, arguments: str) -> str:
        """Return the output of a tool, as text.

        Raises:
            EngineError: if the tool or its server fails, or takes too long.
        """
        ready = self.connect()
        client, _ = await asyncio.shield(ready)
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST

        try:
            given = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise EngineUnavailable("The arguments of a tool must be a JSON object.")
        try:
            async with asyncio.timeout(self.server.timeout_s):
                with tracing.call("execute_tool", name, **{"voiceapp.mcp_server": self.server.label}):
                    result = await client.call_tool(name, given)
        except TimeoutError:
            raise EngineTimeout(f"The tool {name} did not answer in time.") from None
        except _faults() as error:
            logger.warning("MCP server %s: the tool %s failed: %r", self.server.label, name, error)
            if isinstance(error, MCPError) and error.code not in (CONNECTION_CLOSED, INVALID_REQUEST):
                raise EngineUnavailable(f"The tool {name} failed: {error.message[:200]}") from error
            if ready is self._ready:  # others may have made a new one meanwhile
                await self.close()
            raise EngineUnavailable(f"The tool {name} failed.") from error
        texts = [block.text for block in result.content if block.type == "text"]
        said = "\n".join(texts) or json.dumps(result.structured_content or {}, ensure_ascii=False)
        if result.is_error:
            raise EngineUnavailable(said[:MAX_OUTPUT] or f"The tool {name} failed.")
        return said[:MAX_OUTPUT]

    async def close(self) -> None:
        """End the connection, or the program."""
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait((task,))

    async def _hold(self, ready: Ready) -> None:
        """Keep the connection open until cancelled: the library wants it opened and closed by one task."""
        why = f"The MCP server {self.server.label} cannot be reached, or broke off."
        try:
            async with asyncio.timeout(self.server.timeout_s) as limit, _client(self.server) as client:
                ready.set_result((client, await self._listed(client)))
                limit.reschedule(None)
                await asyncio.Event().wait()
        except* _faults() as failed:
            logger.warning("%s %s", why, failed.exceptions[0])
        finally:
            if not ready.done():
                self._retry_at = asyncio.get_running_loop().time() + RETRY_S
                ready.set_exception(EngineUnavailable(why))
                ready.exception()  # asked for, as its waiters may have left

    async def _listed(self, client: Client) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        room = MAX_SCHEMAS
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                if self.server.asks(tool.name) is None or not self._is_fit(tool.name, tool.input_schema):
                    continue
                room -= len(json.dumps(tool.input_schema))
                if room < 0 or len(found) == MAX_TOOLS:
                    logger.warning("MCP server %s has too many tools; the rest are left out", self.server.label)
                    return found
                about = (tool.description or "")[:MAX_DESCRIPTION]
                found.append({"name": tool.name, "description": about, "input_schema": tool.input_schema})
            if (cursor := page.next_cursor) is None:
                break
        return found

    def _is_fit(self, name: str, schema: dict[str, Any]) -> bool:
        try:
            check_tools((schema,))
        except ValueError as error:
            logger.warning("MCP server %s: the tool %r is left out: %s", self.server.label, name[:64], error)
            return False
        return NAME.fullmatch(name) is not None


@asynccontextmanager
async def _client(server: McpServer) -> AsyncIterator[Client]:
    import httpx2
    from mcp import Client, StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    if server.command:
        program, *arguments = server.command
        started = StdioServerParameters(command=program, args=arguments, env=_open(server.env))
        async with Client(started) as client:
            yield client
        return

    class Bounded(httpx2.AsyncByteStream):
        """The body of a response, which may not be endless."""

        def __init__(self, stream: httpx2.AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > MAX_BYTES:
                    raise httpx2.ReadError("The response is too long.")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await super().handle_async_request(request)
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = Bounded(response.stream)
            return response

    http = httpx2.AsyncClient(
        transport=Transport(), headers=_open(server.headers), timeout=2 * server.timeout_s, trust_env=False
    )
    async with http, Client(streamable_http_client(server.url, http_client=http)) as client:
        yield client


def _open(sealed: dict[str, SecretStr]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in sealed.items()}


def _faults() -> tuple[type[Exception], ...]:
    """Errors of servers that are gone, or that break the protocol."""
    import anyio
    import httpx2
    from mcp import MCPError

    closed = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
    return (MCPError, OSError, ValueError, RuntimeError, EngineError, httpx2.HTTPError, *closed)


@per_loop
def connections() -> dict[str, McpConnection]:
    """The connections of this process, by the label of their server."""
    return {server.label: McpConnection(server) for server in settings.MCP_SERVERS}
