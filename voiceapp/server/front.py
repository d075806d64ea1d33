"""The outermost ASGI application: everything between the server and Django.

It says who is calling, answers health probes, refuses what comes while stopping, writes one line per request, and tells
the drain who is being served. A WebSocket passes through it once, at the handshake: `receive` is handed on untouched
and `send` looks at the type only, so a message costs next to nothing here.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time

from django.conf import settings
from prometheus_client import CONTENT_TYPE_LATEST

from voiceapp import formats, tracing
from voiceapp.database.patience import Patience, waits_at_most
from voiceapp.drain import Drain
from voiceapp.health import Readiness, readiness_answer
from voiceapp.http import error_responses
from voiceapp.http.refusals import (
    Application,
    Message,
    Receive,
    Scope,
    Send,
    cors_headers,
    json_headers,
    refuse,
    request_id_of,
)
from voiceapp.metrics import requests

from .client_address import client_address, forwarded_scheme, is_operator
from .limits import Gate, ServerLimits
from .logs import log_request, path_of
from .scrape import scrape

logger = logging.getLogger(__name__)

UNANSWERED = 499
"""In the log: the client left before it was answered."""


class ClientGone(ConnectionError):
    """Ends what sends a stream to a client that has gone, and never looks whether it has."""


class Front:
    """Wraps an application for one process."""

    def __init__(self, application: Application, limits: ServerLimits, drain: Drain, readiness: Readiness) -> None:
        self._application = application
        self._limits = limits
        self._drain = drain
        self._readiness = readiness
        # Without a proxy the adapter already counts connections per address.
        self._gate = Gate(limits.connections, limits.connections_per_address) if limits.trusted_proxies else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._prepare(scope)
            with waits_at_most(self._limits.database_wait_s_at(scope["path"])) as patience:
                await self._http(scope, receive, send, patience)
        elif scope["type"] == "websocket":
            self._prepare(scope)
            await self._socket(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    def _prepare(self, scope: Scope) -> None:
        """Replace what a client could claim by what we know. In place: the adapter's log line reads the same scope."""
        scope["root_path"] = ""  # daphne believes a client's Daphne-Root-Path, which then prefixes every reversed URL
        scope.setdefault("state", {})["request_id"] = request_id = formats.request_id()
        tracing.request_id.set(request_id)
        scope["state"]["peer"] = scope["client"][0] if scope.get("client") else ""
        address = client_address(scope, self._limits.trusted_proxies)
        if address is not None:
            scope["client"] = (address, scope["client"][1])
        if scheme := forwarded_scheme(scope, self._limits.trusted_proxies):
            scope["scheme"] = scheme if scope["type"] == "http" else scheme.replace("http", "ws")

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._drain.begun:
            await refuse(scope, send, 503, "ServiceUnavailable", "The server is stopping; connect again in a moment.")
            return
        address = self._address(scope)
        if self._gate and not self._gate.admit(address):
            await self._too_many(scope, send)
            return
        try:
            with self._drain.work():
                await self._handshake(scope, receive, send)
        finally:
            if self._gate:
                self._gate.release(address)

    async def _handshake(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a socket on. Until the application has accepted or refused it, a database that is away does."""
        with waits_at_most(self._limits.database_wait_s) as patience:

            async def answer(message: Message) -> None:
                if message["type"] != "websocket.send":
                    patience.lift()
                await send(message)

            try:
                async with patience.deadline():
                    await self._application(scope, receive, answer)
            except Exception as error:
                refusal = error_responses.error_response_of(error)
                if patience.is_lifted or refusal.status != 503:
                    raise
                logger.warning("A socket is refused: %s", error)
                headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
                await refuse(scope, send, refusal.status, refusal.code, refusal.message, headers)

    async def _http(self, scope: Scope, receive: Receive, send: Send, patience: Patience) -> None:
        started = time.monotonic()
        status = UNANSWERED

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                patience.lift()
                status = message["status"]
                headers = list(message.get("headers", []))
                present = {name.lower() for name, _ in headers}
                if b"x-request-id" not in present:
                    headers.append((b"x-request-id", request_id_of(scope).encode()))
                if origin := dict(scope["headers"]).get(b"origin"):
                    cors = cors_headers(scope["path"], origin.decode("latin-1"))
                    headers += [header for header in cors if header[0] not in present]
                message = {**message, "headers": headers}
            await send(message)
            if message.get("more_body"):
                # A stream that waits for nothing must leave the loop to others, all the more when its client has gone.
                await asyncio.sleep(0)

        try:
            if scope["path"] in ("/healthz", "/readyz"):
                await self._health(scope, answer)
            elif scope["path"] == "/metrics":
                await self._metrics(scope, answer)
            else:
                await self._request(scope, receive, answer)
        except ClientGone:
            logger.debug("The client of %s went away", path_of(scope))
        except Exception:
            logger.exception("The application failed on %s", path_of(scope))
            if status != UNANSWERED:
                raise  # the server cuts the answer off
            await refuse(scope, answer, 500, "InternalError", "The server failed.", [(b"connection", b"close")])
        finally:
            log_request(scope, status, started)
            requests.labels(status).observe(time.monotonic() - started)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = self._address(scope)
        if self._gate and not self._gate.admit(address):
            await self._too_many(scope, send)
            return
        try:
            with self._drain.work():
                await self._application(scope, receive, send)
        finally:
            if self._gate:
                self._gate.release(address)

    async def _health(self, scope: Scope, send: Send) -> None:
        status, answer = 200, {"status": "ok"}
        if scope["path"] == "/readyz":
            status, answer = await readiness_answer(self._readiness, for_operators=await is_operator(scope))
        body = json.dumps(answer).encode()
        headers = json_headers(body, request_id_of(scope))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _metrics(self, scope: Scope, send: Send) -> None:
        given, token = dict(scope["headers"]).get(b"authorization", b""), f"Bearer {settings.METRICS_TOKEN}".encode()
        is_prometheus = bool(settings.METRICS_TOKEN) and hmac.compare_digest(given, token)
        if not (is_prometheus or await is_operator(scope)):
            message = "Metrics need the header Authorization with METRICS_TOKEN or an API key of the scope 'admin'."
            await refuse(scope, send, 401, "InvalidApiKey", message)
            return
        body = await scrape(self._readiness)
        headers = [(b"content-type", CONTENT_TYPE_LATEST.encode()), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _too_many(self, scope: Scope, send: Send) -> None:
        message = "Too many connections from this address."
        await refuse(scope, send, 429, "Throttling.Concurrency", message, [(b"retry-after", b"1")])

    @staticmethod
    def _address(scope: Scope) -> str:
        return str(scope["client"][0]) if scope.get("client") else ""
