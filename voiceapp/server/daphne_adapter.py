"""daphne, never bare: its protocol classes with the faults mended that only the server itself can mend.

Found on daphne 4.2.3 by probing (each has its test): bodies are taken without end and forms parsed into memory, headers
may drip for ever, a refused handshake is always 403, close codes outside autobahn's list raise, close reasons are
dropped, a stopping server cuts sockets off without a close frame, an application that ends leaves its socket open, and
neither direction of a socket pushes back. These are daphne's and Twisted's inner names: both are pinned exactly.

The socket's path is also shortened: autobahn formats log arguments for every read and write, logged or not.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

import daphne.server  # first: installs the asyncio reactor
from autobahn.util import encode_truncate
from autobahn.websocket.types import ConnectionDeny
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet import reactor
from twisted.logger import FilteringLogObserver, LogLevel, LogLevelFilterPredicate, STDLibLogObserver, globalLogBeginner
from twisted.web.http import HTTPChannel

from voiceapp.answers import Application, Message, Scope, json_headers, new_request_id, refusal_body, request_id_of

from .limits import HEADERS_TOO_SLOW, LINGER_BYTES, LINGER_S, TOO_LARGE, TOO_SLOW, Gate, Limits
from .logs import access_logger, log_socket
from .raw import raw_answer, raw_refusal

logger = logging.getLogger(__name__)

UNREAD_HIGH = 64
"""Messages waiting for the application at which a socket stops reading; it reads on at half."""


class Channel(HTTPChannel):
    """One HTTP connection: counted, and with a deadline for each request's headers."""

    _deadline: Any = None

    def connectionMade(self) -> None:
        super().connectionMade()
        self._arm()

    def dataReceived(self, data: bytes) -> None:
        if self._deadline is None and self.line_mode:
            self._arm()
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        self._disarm()
        super().allHeadersReceived()

    def connectionLost(self, reason: Any) -> None:
        self._disarm()
        super().connectionLost(reason)
        self.factory.server.gate.release(self.transport.getPeer().host)

    def _arm(self) -> None:
        self._deadline = reactor.callLater(self.factory.server.limits.header_timeout_s, self._too_slow)

    def _disarm(self) -> None:
        if self._deadline is not None and self._deadline.active():
            self._deadline.cancel()
        self._deadline = None

    def _too_slow(self) -> None:
        message = HEADERS_TOO_SLOW.format(self.factory.server.limits.header_timeout_s)
        self.transport.write(raw_refusal(408, "RequestTimeOut", message))
        self.loseConnection()


class Request(WebRequest):
    """One HTTP request, whose body is refused while it arrives and not after."""

    _response_started: bool
    _received = 0
    _refused = False
    _timer: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The application parses forms; Twisted would do it first, all in memory.
        super().__init__(*args, parsePOSTFormSubmission=False, **kwargs)
        self.limits: Limits = self.server.limits

    def gotLength(self, length: int | None) -> None:
        if length is not None and length > self.limits.body_bytes:
            super().gotLength(0)
            self._too_large()
            return
        super().gotLength(length)
        if length != 0:
            self._timer = reactor.callLater(self.limits.body_timeout_s, self._too_slow)

    def handleContentChunk(self, data: bytes) -> None:
        self._received += len(data)
        if self._refused:
            if self._received > LINGER_BYTES:
                self.channel.transport.abortConnection()
        elif self._received > self.limits.body_bytes:
            self._too_large()
        else:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        if self._refused:
            self.channel.loseConnection()
        else:
            self._stop_timer()
            super().requestReceived(command, path, version)

    def connectionLost(self, reason: Any) -> None:
        self._stop_timer()
        super().connectionLost(reason)

    def _too_large(self) -> None:
        self._refuse(413, "InvalidParameter", TOO_LARGE.format(self.limits.body_bytes))
        # What is still coming is read and thrown away: closing now would reset the connection, answer included.
        self._timer = reactor.callLater(LINGER_S, self.channel.transport.abortConnection)

    def _too_slow(self) -> None:
        self._refuse(408, "RequestTimeOut", TOO_SLOW.format(self.limits.body_timeout_s))
        self.channel.loseConnection()

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._refused = True
        self._stop_timer()
        self.requestHeaders.removeHeader(b"expect")  # no "100 Continue" after this answer
        request_id = new_request_id()
        self.channel.transport.write(raw_refusal(status, code, message, request_id))
        access_logger.info("- - %d %s - %s", status, self.channel.transport.getPeer().host, request_id)

    def _stop_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        if self._response_started:
            self.channel.transport.abortConnection()
            return
        answer = raw_refusal(status, "InternalError" if status >= 500 else "InvalidParameter", f"{body}.")
        self._response_started = True
        self.channel.transport.write(answer)
        self.channel.loseConnection()

    def handle_exception(self, exception: BaseException) -> None:
        if not self.finished and self.channel is not None:
            self.basic_error(500, b"Internal Server Error", "The server failed")

    def handle_end(self) -> None:
        """The application returned."""
        if not self.finished and self.channel is not None:
            self.basic_error(500, b"Internal Server Error", "The server gave no answer")


class Flow:
    """Told by the transport when its buffer is full and when it has drained; a socket's `send` waits on it."""

    def __init__(self) -> None:
        self.paused = False
        self._drained: asyncio.Future[None] | None = None

    def pauseProducing(self) -> None:
        self.paused = True

    def resumeProducing(self) -> None:
        self.paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def stopProducing(self) -> None:
        self.resumeProducing()

    async def drained(self) -> None:
        while self.paused:
            if self._drained is None or self._drained.done():
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)


class Socket(WebSocketProtocol):
    """One WebSocket: refused with its true status, closed with its true code, pushed back in both directions."""

    scope: Scope
    _refusal: tuple[int, list[tuple[bytes, bytes]], bytes] | None = None
    _outcome: int | None = None
    _reading_paused = False

    def connectionMade(self) -> None:
        super().connectionMade()
        self.started = time.monotonic()
        self.flow = Flow()
        self.transport.unregisterProducer()  # the HTTP channel that was here before
        self.transport.registerProducer(self.flow, True)

    def connectionLost(self, reason: Any = None) -> None:
        peer = self.transport.getPeer().host
        self.flow.stopProducing()
        super().connectionLost(reason)
        self.factory.server_class.gate.release(peer)

    # What arrives

    def dataReceived(self, data: bytes) -> None:
        self._dataReceived(data)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        if self.muted:
            return
        self.last_ping = time.time()
        message: Message
        if isBinary:
            message = {"type": "websocket.receive", "bytes": payload}
        else:
            try:
                message = {"type": "websocket.receive", "text": payload.decode()}
            except UnicodeDecodeError:
                self.end(1007, "text is not UTF-8")
                return
        queue = self.application_queue
        queue.put_nowait(message)
        if queue.qsize() >= UNREAD_HIGH and not self._reading_paused:
            self._reading_paused = True
            self.transport.pauseProducing()

    async def receive(self) -> Message:
        message: Message = await self.application_queue.get()
        if self._reading_paused and self.application_queue.qsize() <= UNREAD_HIGH // 2:
            self._reading_paused = False
            self.transport.resumeProducing()
        return message

    def onClose(self, wasClean: bool, code: int | None, reason: str | None) -> None:
        if not hasattr(self, "scope"):  # the handshake was malformed, no application ever saw it
            return
        if hasattr(self, "handshake_deferred"):
            del self.handshake_deferred
        super().onClose(wasClean, code or 1005, reason)
        log_socket(self.scope, self._outcome or code or 1005, self.started)

    # What the application says

    async def send(self, message: Message) -> None:
        if message["type"] != "websocket.send" or self.state != self.STATE_OPEN:
            self.handle_reply(message)
            return
        if self.flow.paused:
            await self.flow.drained()
            if self.state != self.STATE_OPEN:
                return
        text = message.get("text")
        if text is not None:
            self.transport.write(_frame(0x81, text.encode()))
        else:
            self.transport.write(_frame(0x82, message["bytes"]))

    def handle_reply(self, message: Message) -> None:
        kind = message["type"]
        if self.state == self.STATE_CONNECTING:
            if kind == "websocket.accept":
                headers: dict[str, list[str]] = {}
                for name, value in message.get("headers") or ():
                    headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
                deferred = self.handshake_deferred
                del self.handshake_deferred
                deferred.callback((message.get("subprotocol"), headers))
            elif kind == "websocket.http.response.start":
                self._refusal = (message["status"], list(message.get("headers", [])), b"")
            elif kind == "websocket.http.response.body" and self._refusal is not None:
                status, headers_, body = self._refusal
                self._refusal = (status, headers_, body + message.get("body", b""))
                if not message.get("more_body", False):
                    self._deny()
            elif kind == "websocket.close":
                self.serverReject()
            else:
                raise ValueError(f"{kind} before the handshake is decided")
        elif kind == "websocket.close":
            self.end(message.get("code") or 1000, message.get("reason") or "")
        elif self.state == self.STATE_OPEN:
            raise ValueError(f"{kind} on an open socket")

    def serverReject(self) -> None:
        self._refuse(403, "AccessDenied", "The connection is refused.")

    def handle_exception(self, exception: BaseException) -> None:
        if self.state == self.STATE_CONNECTING:
            self._refuse(500, "InternalError", "The server failed.")
        else:
            self.end(1011, "")

    def handle_end(self) -> None:
        """The application returned."""
        if self.state == self.STATE_CONNECTING:
            self._refuse(500, "InternalError", "The server gave no answer.")
        else:
            self.end(1000, "")

    def end(self, code: int, reason: str) -> None:
        """Send a close frame. Not autobahn's `sendClose`, which raises for codes such as 1011."""
        if self.state == self.STATE_OPEN:
            self._outcome = code
            self.sendCloseFrame(code=code, reasonUtf8=encode_truncate(reason, 123) if reason else None)

    # Refusing

    def _refuse(self, status: int, code: str, message: str) -> None:
        request_id = request_id_of(self.scope)
        body = refusal_body(code, message, request_id)
        self._refusal = (status, json_headers(body, request_id), body)
        self._deny()

    def _deny(self) -> None:
        if hasattr(self, "handshake_deferred"):
            deferred = self.handshake_deferred
            del self.handshake_deferred
            deferred.errback(ConnectionDeny(code=403))

    def failHandshake(self, reason: str, code: int = 400, responseHeaders: Any = None) -> None:
        """Called by autobahn for a malformed handshake, and after `_deny` for one that the application refused."""
        self.wasNotCleanReason = reason
        if self._refusal is not None:
            self._outcome = self._refusal[0]
            self.transport.write(raw_answer(*self._refusal))
        else:
            headers = [(name.encode(), str(value).encode()) for name, value in responseHeaders or ()]
            self.transport.write(raw_refusal(code, "InvalidParameter", reason, headers=headers))
        self.dropConnection(abort=False)


class SocketFactory(WebSocketFactory):
    protocol = Socket


class Factory(HTTPFactory):
    """Makes connections, or closes them unanswered when there are too many."""

    protocol = Channel

    def buildProtocol(self, addr: Any) -> Channel | None:
        if not self.server.gate.admit(addr.host):
            return None
        channel: Channel = super().buildProtocol(addr)
        channel.requestFactory = Request
        return channel


class Server(daphne.server.Server):
    """daphne's bookkeeping of connections and applications, with our protocols."""

    def __init__(self, application: Application, limits: Limits) -> None:
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

    def create_application(self, protocol: Request | Socket, scope: Scope) -> asyncio.Queue[Message] | None:
        scope["asgi"] = {"version": "3.0", "spec_version": "2.4"}
        queue: asyncio.Queue[Message] = asyncio.Queue()
        if isinstance(protocol, Socket):
            scope["scheme"] = "ws"
            scope["extensions"] = {"websocket.http.response": {}}
            protocol.scope = scope
            running = self._run(protocol, self.application(scope, protocol.receive, protocol.send))
        else:
            send = self._sender(protocol)
            running = self._run(protocol, self.application(scope, queue.get, send))
        self.connections[protocol]["application_instance"] = asyncio.ensure_future(running)
        return queue

    def _sender(self, protocol: Request) -> Callable[[Message], Awaitable[None]]:
        async def send(message: Message) -> None:
            await self.handle_reply(protocol, message)

        return send

    async def _run(self, protocol: Request | Socket, application: Awaitable[None]) -> None:
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

    def open_sockets(self) -> list[Socket]:
        return [protocol for protocol in self.connections if isinstance(protocol, Socket)]


class Adapter:
    """A daphne server inside the running reactor."""

    name = "daphne"

    def __init__(self, application: Application, listening: socket.socket, limits: Limits) -> None:
        self._server = Server(application, limits)
        self._listening = listening

    async def start(self) -> None:
        self._server.begin()
        listening = self._listening
        self._port = reactor.adoptStreamPort(listening.fileno(), listening.family, self._server.http_factory)

    def close_sockets(self, code: int, reason: str) -> None:
        for open_socket in self._server.open_sockets():
            open_socket.end(code, reason)

    async def stop(self) -> None:
        self._port.stopListening()
        ours = asyncio.current_task()
        rest = [task for task in asyncio.all_tasks() if task is not ours]
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=1)


def run(
    application: Application,
    listening: socket.socket,
    limits: Limits,
    live: Callable[[Adapter], Awaitable[None]],
) -> None:
    """Serve on the listening socket until `live` returns; what it raises comes out here."""
    failures: list[BaseException] = []

    async def main() -> None:
        try:
            await live(Adapter(application, listening, limits))
        except BaseException as error:
            failures.append(error)
        finally:
            reactor.stop()

    # Start-up hooks run before the loop does: the task must be made on the reactor's loop, not on a new default one.
    reactor.callWhenRunning(lambda: reactor._asyncioEventloop.create_task(main()))
    reactor.run(installSignalHandlers=False)
    for failure in failures:
        raise failure


def _frame(first_byte: int, payload: bytes) -> bytes:
    """A complete unmasked frame (RFC 6455, section 5.2)."""
    length = len(payload)
    if length < 126:
        return bytes((first_byte, length)) + payload
    if length < 65536:
        return struct.pack("!BBH", first_byte, 126, length) + payload
    return struct.pack("!BBQ", first_byte, 127, length) + payload


def _log_twisted_errors() -> None:
    """Twisted's and autobahn's errors go to the ordinary log; what they say about every lost client goes nowhere."""
    errors = LogLevelFilterPredicate(defaultLogLevel=LogLevel.error)
    observer = FilteringLogObserver(STDLibLogObserver("twisted"), [errors])
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False, discardBuffer=True)
