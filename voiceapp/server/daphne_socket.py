"""daphne's WebSocket side, mended: true refusals, true close codes, and pressure back in both directions.

Its path is also shortened: autobahn formats log arguments for every read and write, logged or not.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from autobahn.util import encode_truncate
from autobahn.websocket.types import ConnectionDeny
from daphne.ws_protocol import WebSocketProtocol

from voiceapp.http.error_responses import ErrorResponse, error_json
from voiceapp.http.refusals import Message, Scope, json_headers, request_id_of

from .daphne_flow import Flow
from .limits import UNREAD_BYTES, UNREAD_HIGH
from .logs import log_socket
from .raw import frame, raw_answer, raw_refusal


def _size(message: Message) -> int:
    return len(message.get("bytes") or message.get("text") or "")


class DaphneSocket(WebSocketProtocol):
    """One WebSocket: refused with its true status, closed with its true code, pushed back in both directions."""

    scope: Scope
    _refusal: tuple[int, list[tuple[bytes, bytes]], bytes] | None = None
    _outcome: int | None = None
    _reading_paused = False
    _unread_bytes = 0

    def connectionMade(self) -> None:
        super().connectionMade()
        self.started = time.monotonic()
        self.flow = Flow()
        self.lost: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The close code, as soon as the connection has ended: the message about it waits behind those before it."""
        self.transport.unregisterProducer()  # the HTTP channel that was here before
        self.transport.registerProducer(self.flow, True)

    def connectionLost(self, reason: Any = None) -> None:
        peer = self.transport.getPeer().host
        self.flow.stopProducing()
        super().connectionLost(reason)
        self.factory.server_class.gate.release(peer)

    def onOpen(self) -> None:
        super().onOpen()
        self.http_headers.clear()  # the scope has them
        self.http_request_data = b""

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
        self._unread_bytes += _size(message)
        if not self._reading_paused and (queue.qsize() >= UNREAD_HIGH or self._unread_bytes >= UNREAD_BYTES):
            self._reading_paused = True
            self.transport.pauseProducing()

    def onPing(self, payload: bytes) -> None:
        if not self.flow.paused:  # pongs that a client does not read would pile up
            super().onPing(payload)

    async def receive(self) -> Message:
        message: Message = await self.application_queue.get()
        self._unread_bytes -= _size(message)
        if self._reading_paused and (
            self.application_queue.qsize() <= UNREAD_HIGH // 2 and self._unread_bytes <= UNREAD_BYTES // 2
        ):
            self._reading_paused = False
            self.transport.resumeProducing()
        return message

    def onAutoPingTimeout(self) -> None:
        if not self._reading_paused:  # else the pong may be what was not read
            super().onAutoPingTimeout()

    def onClose(self, wasClean: bool, code: int | None, reason: str | None) -> None:
        if not hasattr(self, "scope"):  # the handshake was malformed, no application ever saw it
            return
        if hasattr(self, "handshake_deferred"):
            del self.handshake_deferred
        super().onClose(wasClean, code or 1005, reason)
        if not self.lost.done():
            self.lost.set_result(code or 1005)
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
            self.transport.write(frame(0x81, text.encode()))
        else:
            self.transport.write(frame(0x82, message["bytes"]))

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
        body = error_json("", ErrorResponse(status, code, message), request_id)
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
