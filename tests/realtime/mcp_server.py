"""A server of tools, good and bad, by the protocol's own library: with a port over HTTP, else by stdio."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp import MCPError
from mcp.server.mcpserver import MCPServer
from mcp.types import INVALID_PARAMS

server = MCPServer("home", log_level="CRITICAL")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def shout(word: str) -> str:
    """Say it loudly."""
    return word.upper()


@server.tool()
def unlock() -> str:
    """Open the door."""
    return "The door is open."


@server.tool()
async def hang() -> str:
    """Never come back."""
    await asyncio.Event().wait()
    return ""


@server.tool()
def huge() -> str:
    """Say too much."""
    return "x" * 5_000_000


@server.tool()
def quit() -> str:
    """End the whole server."""
    os._exit(1)


@server.tool()
def refuse() -> str:
    """Say no by the protocol."""
    raise MCPError(INVALID_PARAMS, "Not today.")


@server.tool()
def process() -> str:
    """Tell which process this is."""
    return str(os.getpid())


@server.tool()
def secret() -> str:
    """Not for models."""
    return "secret"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
