"""uvicorn with what only the server itself can limit: headers, connections, close codes, and a quiet handshake."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from asyncio.transports import BaseTransport
from collections.abc import Awaitable, Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from voiceapp.http.refusals import Application, Message, Receive, Scope, Send, refuse

from .front import ClientGone
from .limits import HEADERS_TOO_SLOW, MALFORMED, UNREAD_HIGH, Gate, ServerLimits
from .logs import log_socket, path_of
from .raw import frame, raw_refusal

logger = logging.getLogger(__name__)

LARGE_BYTES = 64 * 1024
"""Of a message: a socket does not read on while a larger one waits."""


class Config(uvicorn.Config):
    """uvicorn's settings, with our limits where its protocols find them."""

    def __init__(self, application: Application, limits: ServerLimits) -> None:
        super().__init__(
            application,
            http=UvicornConnection,
            ws=UvicornSocket,
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


class Parser(h11.Connection):
    """Refuses a length in two ways as well: h11 believes Transfer-Encoding then, and a proxy in front the other."""

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("Content-Length and Transfer-Encoding")
        return event


class UvicornConnection(H11Protocol):
    """One HTTP connection: counted, with a deadline for each request's headers, one request after the other."""

    config: Config
    _deadline: asyncio.TimerHandle | None = None
    _admitted = False
    _is_lost = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = Parser(h11.SERVER)
        self.app = self._when_drained

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
        self._is_lost = True
        self._disarm()
        super().connection_lost(exc)
        if self._admitted:
            self.config.gate.release(_address(self))

    async def _when_drained(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A pipelined request begins once the client has read the response before it."""

        async def send_while_connected(message: Message) -> None:
            if self._is_lost and message.get("more_body"):
                raise ClientGone
            await send(message)

        await self.flow.drain()
        await self.config.loaded_app(scope, receive, send_while_connected)

    def send_400_response(self, msg: str) -> None:
        """End a connection that is no HTTP; the application of a request whose body breaks off sees a disconnect."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.abort()
                return
        self.transport.write(raw_refusal(400, "InvalidParameter", MALFORMED))
        self.transport.close()

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


class UvicornSocket(WebSocketsSansIOProtocol):
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

    def send_receive_event_to_app(self) -> None:
        """As uvicorn's, but it goes on reading while a few messages wait: not to read costs two system calls each."""
        data = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        self.frames = []
        if self.close_sent:
            return
        message: Message
        if self.curr_msg_data_type == "text":
            try:
                message = {"type": "websocket.receive", "text": data.decode()}
            except UnicodeDecodeError:  # the client's fault, which uvicorn would log as one of ours
                self.conn.send_close(1007, "text is not UTF-8")
                self.handle_parser_exception()
                return
        else:
            message = {"type": "websocket.receive", "bytes": data}
        self.queue.put_nowait(message)  # type: ignore[arg-type]
        if not self.read_paused and (self.queue.qsize() >= UNREAD_HIGH or len(data) > LARGE_BYTES):
            self.read_paused = True
            self.transport.pause_reading()

    def handle_ping(self) -> None:
        pong = b"".join(self.conn.data_to_send())
        if self.writable.is_set():  # pongs that a client does not read would pile up
            self.transport.write(pong)

    def _result(self) -> int:
        if self.initial_response is not None:
            return self.initial_response[0]
        if close := self.conn.close_sent or self.conn.close_rcvd:
            return int(close.code)
        return 403 if self.close_sent else 1006

    async def send(self, message: Message) -> None:  # type: ignore[override]
        await self.writable.wait()
        text = message.get("text")
        if not self.handshake_complete or self.initial_response is not None:
            await super().send(message)  # type: ignore[arg-type]
        elif self.close_sent or (text is not None and self.transport.is_closing()):
            raise ClientDisconnected  # closed for a malformed frame, or by `end`: the application could not know
        elif text is not None:
            self.transport.write(frame(0x81, text.encode()))
        else:
            await super().send(message)  # type: ignore[arg-type]

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


class UvicornAdapter:
    """A uvicorn server inside a running event loop."""

    name = "uvicorn"

    def __init__(self, application: Application, listening: socket.socket, limits: ServerLimits) -> None:
        self._listening = listening
        self._server = uvicorn.Server(Config(application, limits))
        self._ticking: asyncio.Task[None] | None = None
        self._accepting: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        self._server.config.load()
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        await self._server.startup(sockets=[self._listening])
        self._ticking = asyncio.create_task(self._server.main_loop(), name="uvicorn's clock")

    def stop_listening(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = self._listening.accept()
                task = loop.create_task(loop.connect_accepted_socket(self._protocol, connection), name="accept")
                self._accepting.add(task)
                task.add_done_callback(self._accepting.discard)
        for server in self._server.servers:
            server.close()

    def _protocol(self) -> UvicornConnection:
        server = self._server
        return UvicornConnection(
            config=server.config, server_state=server.server_state, app_state=server.lifespan.state
        )

    def close_sockets(self, code: int, reason: str) -> None:
        for connection in list(self._server.server_state.connections):
            if isinstance(connection, UvicornSocket):
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
    limits: ServerLimits,
    live: Callable[[UvicornAdapter], Awaitable[None]],
) -> None:
    """Serve on the listening socket until `live` returns."""

    async def main() -> None:
        await live(UvicornAdapter(application, listening, limits))

    asyncio.run(main())


def _address(protocol: UvicornConnection | UvicornSocket) -> str:
    return protocol.client[0] if protocol.client else ""
