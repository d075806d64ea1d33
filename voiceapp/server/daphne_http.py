"""daphne's HTTP side, mended: header deadlines, bodies refused while they arrive and not after, and backpressure."""

from __future__ import annotations

from typing import Any

import daphne.server  # noqa: F401  first: installs the asyncio reactor
from daphne.http_protocol import WebRequest
from twisted.internet import reactor
from twisted.web.http import HTTPChannel

from voiceapp.formats import request_id as new_request_id
from voiceapp.http.refusals import cors_headers

from .daphne_flow import Flow
from .limits import HEADERS_TOO_SLOW, LINGER_BYTES, MALFORMED, TOO_LARGE, TOO_SLOW, ServerLimits
from .logs import access_logger
from .raw import raw_refusal


class Channel(HTTPChannel):
    """One HTTP connection: counted, with a deadline for each request's headers, and told to wait for slow clients."""

    _deadline: Any = None

    def connectionMade(self) -> None:
        self.flow = Flow()
        super().connectionMade()
        self._arm()

    def dataReceived(self, data: bytes) -> None:
        if self._deadline is None and self.line_mode:
            self._arm()
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        self._disarm()
        super().allHeadersReceived()

    def pauseProducing(self) -> None:
        super().pauseProducing()
        self.flow.pauseProducing()

    def resumeProducing(self) -> None:
        super().resumeProducing()
        self.flow.resumeProducing()

    def connectionLost(self, reason: Any) -> None:
        self._disarm()
        self.flow.stopProducing()
        super().connectionLost(reason)
        self.factory.server.gate.release(self.transport.getPeer().host)

    def _maybeChooseTransferDecoder(self, header: bytes, data: bytes) -> bool:
        if header == b"Transfer-Encoding" and data.lower() != b"chunked":  # Twisted skips over `identity`
            return bool(self._failChooseTransferDecoder())
        return bool(super()._maybeChooseTransferDecoder(header, data))

    def _respondToBadRequestAndDisconnect(self) -> None:
        self.transport.write(raw_refusal(400, "InvalidParameter", MALFORMED))
        self.loseConnection()

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
    _allowed = 0
    _refused = False
    _timer: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The application parses forms; Twisted would do it first, all in memory.
        super().__init__(*args, parsePOSTFormSubmission=False, **kwargs)
        self.limits: ServerLimits = self.server.limits
        self.flow: Flow = self.channel.flow

    def gotLength(self, length: int | None) -> None:
        self._allowed = self.limits.body_bytes_at(self._path().partition("?")[0])
        if length is not None and length > self._allowed:
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
        elif self._received > self._allowed:
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
        self._refuse(413, "InvalidParameter", TOO_LARGE.format(self._allowed))
        # What is still coming is read and thrown away: closing now would reset the connection, answer included.
        self._timer = reactor.callLater(self.limits.linger_s, self.channel.transport.abortConnection)

    def _too_slow(self) -> None:
        self._refuse(408, "RequestTimeOut", TOO_SLOW.format(self.limits.body_timeout_s))
        self.channel.loseConnection()

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._refused = True
        self._stop_timer()
        self.requestHeaders.removeHeader(b"expect")  # no "100 Continue" after this answer
        request_id = new_request_id()
        path, origin = self._path(), (self.getHeader(b"origin") or b"").decode("latin-1")
        headers = cors_headers(path, origin)
        self.channel.transport.write(raw_refusal(status, code, message, request_id, headers, path=path))
        access_logger.info("- - %d %s - %s", status, self.channel.transport.getPeer().host, request_id)

    def _path(self) -> str:
        """From the channel: the request itself learns its address only after its body."""
        return str(self.channel._path.decode("latin-1"))

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
        if not self.finished and self.channel is not None:
            self.basic_error(500, b"Internal Server Error", "The server gave no answer")
