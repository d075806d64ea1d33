"""daphne, never bare: its protocol classes with the faults mended that only the server itself can mend.

Found on daphne 4.2.3 by probing (each has its test): bodies are taken without end and forms parsed into memory, headers
may drip for ever, a refused handshake is always 403, close codes outside autobahn's list raise, close reasons are
dropped, a stopping server cuts sockets off without a close frame, an application that ends leaves its socket open,
responses are buffered without end, and neither direction of a socket pushes back. These are daphne's and Twisted's
inner names: both are pinned exactly.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

import daphne.server  # first: installs the asyncio reactor
from daphne.http_protocol import HTTPFactory
from daphne.ws_protocol import WebSocketFactory
from twisted.internet import reactor
from twisted.logger import FilteringLogObserver, LogLevel, LogLevelFilterPredicate, STDLibLogObserver, globalLogBeginner

from voiceapp.http.refusals import LOST, Application, Message, Receive, Scope, Send

from .daphne_http import Channel, Request
from .daphne_socket import DaphneSocket
from .front import ClientGone
from .limits import BACKLOG, Gate, ServerLimits

logger = logging.getLogger(__name__)

GOODBYE_S = 1.0
"""Longest wait for the answer to a close frame."""


class SocketFactory(WebSocketFactory):
    protocol = DaphneSocket


class Factory(HTTPFactory):
    """Makes connections, or closes them unanswered when there are too many."""

    protocol = Channel

    def buildProtocol(self, addr: Any) -> Channel | None:
        if not self.server.gate.admit(addr.host):
            return None
        channel: Channel = super().buildProtocol(addr)
        channel.requestFactory = Request
        return channel

    def log(self, request: Request) -> None:
        """Write no line: `Front` does."""


class Server(daphne.server.Server):
    """daphne's bookkeeping of connections and applications, with our protocols."""

    def __init__(self, application: Application, limits: ServerLimits) -> None:
        super().__init__(
            application,
            endpoints=["given by who listens"],
            websocket_timeout=-1,  # a session's lifetime is the session's business
            ping_interval=limits.ping_s,
            ping_timeout=limits.ping_s,
            websocket_max_message_size=limits.message_bytes,
            websocket_max_frame_size=limits.message_bytes,
            server_name="",
        )
        self.limits = limits
        self.gate = Gate.for_connections(limits)
        self.connections: dict[Any, dict[str, Any]] = {}
        self.http_factory = Factory(self)
        self.ws_factory = SocketFactory(self, server="")
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=limits.ping_s,
            allowNullOrigin=True,  # the application judges origins
            openHandshakeTimeout=self.websocket_handshake_timeout,
            maxMessagePayloadSize=limits.message_bytes,
            maxFramePayloadSize=limits.message_bytes,
            failByDrop=False,  # say 1009 or 1002 instead of hanging up
            utf8validateIncoming=False,  # decoding the text is validation enough
        )

    def begin(self) -> None:
        """Start daphne's two clocks: reaping applications that ended, and pinging sockets."""
        _log_twisted_errors()
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)

    def create_application(self, protocol: Request | DaphneSocket, scope: Scope) -> asyncio.Queue[Message] | None:
        scope["asgi"] = {"version": "3.0", "spec_version": "2.4"}
        queue: asyncio.Queue[Message] = asyncio.Queue()
        if isinstance(protocol, DaphneSocket):
            scope["scheme"] = "ws"
            scope["extensions"] = {"websocket.http.response": {}, LOST: {"code": protocol.lost}}
            protocol.scope = scope
            running = self._run(protocol, self.application(scope, protocol.receive, protocol.send))
        else:
            send = self._sender(protocol)
            running = self._run(protocol, self._when_drained(protocol, scope, queue.get, send))
        # In a context of its own: a pipelined request is begun within that of the request before it.
        task = asyncio.get_running_loop().create_task(running, context=Context())
        self.connections[protocol]["application_instance"] = task
        return queue

    def _sender(self, protocol: Request) -> Send:
        async def send(message: Message) -> None:
            await protocol.flow.drained()
            if message.get("more_body") and "disconnected" in self.connections.get(protocol, ()):
                raise ClientGone
            await self.handle_reply(protocol, message)

        return send

    async def _when_drained(self, protocol: Request, scope: Scope, receive: Receive, send: Send) -> None:
        """A pipelined request begins once the client has read the response before it."""
        await protocol.flow.drained()
        await self.application(scope, receive, send)

    async def _run(self, protocol: Request | DaphneSocket, application: Awaitable[None]) -> None:
        try:
            await application
        except Exception as error:
            logger.exception("The application failed")
            protocol.handle_exception(error)
        else:
            protocol.handle_end()

    def protocol_disconnected(self, protocol: Any) -> None:
        if protocol in self.connections:
            super().protocol_disconnected(protocol)

    def open_sockets(self) -> list[DaphneSocket]:
        return [protocol for protocol in self.connections if isinstance(protocol, DaphneSocket)]


class DaphneAdapter:
    """A daphne server inside the running reactor."""

    name = "daphne"

    def __init__(self, application: Application, listening: socket.socket, limits: ServerLimits) -> None:
        self._server = Server(application, limits)
        self._listening = listening
        self._is_listening = True

    async def start(self) -> None:
        self._server.begin()
        listening = self._listening
        listening.listen(BACKLOG)
        self._port = reactor.adoptStreamPort(listening.fileno(), listening.family, self._server.http_factory)

    def stop_listening(self) -> None:
        waiting = select.poll()
        waiting.register(self._listening, select.POLLIN)
        while waiting.poll(0):
            self._port.doRead()
        self._port.stopReading()
        self._port.connectionLost(None)  # `stopListening` closes a round of the loop later: who comes then is reset
        self._listening.close()
        self._is_listening = False

    def close_sockets(self, code: int, reason: str) -> None:
        for open_socket in self._server.open_sockets():
            open_socket.end(code, reason)

    async def stop(self) -> None:
        if self._is_listening:
            self._port.stopListening()
        await self._goodbyes()
        ours = asyncio.current_task()
        rest = [task for task in asyncio.all_tasks() if task is not ours]
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=1)

    async def _goodbyes(self) -> None:
        """Until clients have answered their close frames, or have had time to.

        The end of the process resets connections on which something lies unread, and the close frame would be lost.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + GOODBYE_S
        while self._server.open_sockets() and clock() < until:  # noqa: ASYNC110 - daphne has no event for it
            await asyncio.sleep(0.02)


def run(
    application: Application,
    listening: socket.socket,
    limits: ServerLimits,
    live: Callable[[DaphneAdapter], Awaitable[None]],
) -> None:
    """Serve on the listening socket until `live` returns; what it raises comes out here."""
    failures: list[BaseException] = []

    async def main() -> None:
        try:
            await live(DaphneAdapter(application, listening, limits))
        except BaseException as error:
            failures.append(error)
        finally:
            reactor.stop()

    # Start-up hooks run before the loop does: the task must be made on the reactor's loop, not on a new default one.
    reactor.callWhenRunning(lambda: reactor._asyncioEventloop.create_task(main()))
    reactor.run(installSignalHandlers=False)
    for failure in failures:
        raise failure


def _log_twisted_errors() -> None:
    """Twisted's and autobahn's errors go to the ordinary log; what they say about every lost client goes nowhere."""
    errors = LogLevelFilterPredicate(defaultLogLevel=LogLevel.error)
    observer = FilteringLogObserver(STDLibLogObserver("twisted"), [errors])
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False, discardBuffer=True)
