"""uvicorn with what only the server itself can limit: headers, connections, close codes, and a quiet handshake."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from asyncio.transports import BaseTransport
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from voiceapp.answers import Application, Message, refuse

from .limits import HEADERS_TOO_SLOW, Gate, Limits
from .logs import log_socket, path_of
from .raw import raw_refusal

logger = logging.getLogger(__name__)


class Config(uvicorn.Config):
    """uvicorn's settings, with our limits where its protocols find them."""

    def __init__(self, application: Application, limits: Limits) -> None:
        super().__init__(
            application,
            http=Connection,
            ws=Socket,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            log_level="warning",  # its own lines about sockets show their queries
            server_header=False,
            proxy_headers=False,
            ws_max_size=limits.message_bytes,
            ws_ping_interval=limits.ping_s,
            ws_ping_timeout=limits.ping_s,
            ws_per_message_deflate=False,
            timeout_keep_alive=60,
        )
        self.limits = limits
        self.gate = Gate.for_connections(limits)


class Connection(H11Protocol):
    """One HTTP connection: counted, and with a deadline for each request's headers."""

    config: Config
    _deadline: asyncio.TimerHandle | None = None
    _admitted = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._admitted = self.config.gate.admit(_address(self))
        if self._admitted:
            self._arm()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and self._between_requests():
            self._arm()
        super().data_received(data)
        if not self._between_requests():
            self._disarm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)
        if self._admitted:
            self.config.gate.release(_address(self))

    def _between_requests(self) -> bool:
        return str(self.conn.their_state) == "IDLE"

    def _arm(self) -> None:
        self._deadline = self.loop.call_later(self.config.limits.header_timeout_s, self._too_slow)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        message = HEADERS_TOO_SLOW.format(self.config.limits.header_timeout_s)
        self.transport.write(raw_refusal(408, "RequestTimeOut", message))
        self.transport.close()


class Socket(WebSocketsSansIOProtocol):
    """One WebSocket: counted, logged once, and closed with a code that says why."""

    config: Config

    def connection_made(self, transport: BaseTransport) -> None:
        self._started = time.monotonic()
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.config.gate.release(_address(self))
        if hasattr(self, "scope"):
            log_socket(self.scope, self._result(), self._started)  # type: ignore[arg-type]

    def _result(self) -> int:
        if self.initial_response is not None:
            return self.initial_response[0]
        if close := self.conn.close_sent or self.conn.close_rcvd:
            return int(close.code)
        return 403 if self.close_sent else 1006

    async def run_asgi(self) -> None:
        scope: Any = self.scope
        try:
            await self.app(scope, self.receive, self.send)
        except ClientDisconnected:
            return
        except Exception:
            logger.exception("The application failed on %s", path_of(scope))
            await self._end(1011)
        else:
            await self._end(1000)
        finally:
            if self.close_timer is None:
                self.transport.close()

    async def _end(self, code: int) -> None:
        """End what the application left open."""
        if self.disconnected or self.close_sent:
            return
        if self.handshake_complete:
            await self.send({"type": "websocket.close", "code": code})
        elif self.initial_response is None:
            await refuse(self.scope, self.send, 500, "InternalError", "The server failed.")  # type: ignore[arg-type]

    def end(self, code: int, reason: str) -> None:
        """Close from outside the application, which sees the disconnect."""
        if self.handshake_complete and not self.close_sent:
            message: Message = {"type": "websocket.disconnect", "code": code, "reason": reason}
            self.queue.put_nowait(message)  # type: ignore[arg-type]
            self.conn.send_close(code, reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self.close_timer = self.loop.call_later(self.close_timeout, self.transport.close)


class Adapter:
    """A uvicorn server inside a running event loop."""

    name = "uvicorn"

    def __init__(self, application: Application, listening: socket.socket, limits: Limits) -> None:
        self._listening = listening
        self._server = uvicorn.Server(Config(application, limits))
        self._ticking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._server.config.load()
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        await self._server.startup(sockets=[self._listening])
        self._ticking = asyncio.create_task(self._server.main_loop(), name="uvicorn's clock")

    def close_sockets(self, code: int, reason: str) -> None:
        for connection in list(self._server.server_state.connections):
            if isinstance(connection, Socket):
                connection.end(code, reason)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._ticking is not None:
            await self._ticking
        # The drain has waited already; what is cut off now, the runner has said.
        self._server.config.timeout_graceful_shutdown = 1
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await self._server.shutdown(sockets=[self._listening])


def run(
    application: Application,
    listening: socket.socket,
    limits: Limits,
    live: Callable[[Adapter], Awaitable[None]],
) -> None:
    """Serve on the listening socket until `live` returns."""

    async def main() -> None:
        await live(Adapter(application, listening, limits))

    asyncio.run(main())


def _address(protocol: Connection | Socket) -> str:
    return protocol.client[0] if protocol.client else ""
