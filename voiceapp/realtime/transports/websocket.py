"""The WebSocket door: one JSON event per text frame.

Two consumers share it. `ApiSocket` knows its caller by the Bearer key of the handshake alone; `PageSocket` by the
page's cookie, and therefore insists on the page's own origin. Both take over the whole connection instead of Channels'
default dispatch, which hops to one shared thread for every message and awaits each handler in turn: audio must not
wait there.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from channels.consumer import AsyncConsumer
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from voiceapp.accounts.addresses import address_of_scope
from voiceapp.accounts.auth import Caller, caller_from_bearer, caller_from_user, guest_caller
from voiceapp.accounts.guests import guest_of
from voiceapp.accounts.limits import session_limits
from voiceapp.accounts.metering import require_model
from voiceapp.answers import Receive, Scope, Send, refuse
from voiceapp.engines.catalogue import catalogue
from voiceapp.errors import (
    AccessDenied,
    EngineError,
    FloodError,
    InvalidParameter,
    NotFound,
    RequestRefused,
    Throttled,
)
from voiceapp.formats import identifier
from voiceapp.protocol.audio import Meter
from voiceapp.protocol.events import ClientEvent, EventError, ServerEvent, parse_client_event
from voiceapp.realtime import bridge
from voiceapp.realtime.elsewhere import held_elsewhere
from voiceapp.realtime.models import Door
from voiceapp.realtime.opening import call_of, limits_of
from voiceapp.realtime.records import Beginning, Recorder
from voiceapp.realtime.transports.interface import Disconnected, text_of

MESSAGES_PER_S = 100
SEND_TIMEOUT_S = 10.0
"""A caller who does not read for this long has lost the conversation."""
CLOSE_TIMEOUT_S = 1.0
CLOSE_REASON_LENGTH = 100
"""Characters; a close frame has room for 123 bytes."""


class WebSocketTransport:
    """An accepted ASGI WebSocket as a `Transport`."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._now = asyncio.get_running_loop().time
        self._meter = Meter(rate_per_s=MESSAGES_PER_S)
        self._is_open = True
        self._is_slow = False

    async def receive(self) -> ClientEvent:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._is_open = False
            raise Disconnected(message.get("code") or 1006)
        if not self._meter.accept(1, self._now()):
            raise FloodError(f"More than {MESSAGES_PER_S} messages a second.", code="too_many_messages")
        text = message.get("text")
        if text is None:
            raise EventError("Send JSON text frames: binary frames are not understood.", code="invalid_frame")
        return parse_client_event(text)

    async def send(self, event: ServerEvent) -> None:
        if not self._is_open or self._is_slow:
            return
        text = text_of(event)
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._send({"type": "websocket.send", "text": text})
        except TimeoutError:
            self._is_slow = True  # a second wait would end no better
            raise FloodError("The connection is too slow for this conversation.", code="too_slow") from None
        except OSError:  # how uvicorn says that the caller is gone; daphne drops the message
            self._is_open = False

    async def close(self, code: int, reason: str) -> None:
        if not self._is_open:
            return
        self._is_open = False
        with suppress(OSError):  # a timeout is one of them
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._send(
                    {"type": "websocket.close", "code": _sendable(code), "reason": reason[:CLOSE_REASON_LENGTH]}
                )


def _sendable(code: int) -> int:
    """Codes such as 1005 and 1006 may not stand in a close frame (RFC 6455, 7.4.1)."""
    return code if code == 1000 or 3000 <= code <= 4999 else 1000


class _Socket(AsyncConsumer, ABC):
    """From handshake to conversation; subclasses say who the caller is."""

    door: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the connection from its handshake to its end."""
        await receive()  # websocket.connect
        try:
            await self._converse(scope, receive, send)
        except (RequestRefused, EngineError) as refused:
            headers = [(b"retry-after", str(refused.retry_after_s).encode())] if isinstance(refused, Throttled) else []
            await refuse(scope, send, refused.http_status, refused.code, refused.message, headers)

    @abstractmethod
    async def caller(self, scope: Scope) -> Caller:
        """Who knocks. Raises RequestRefused."""

    def session_key(self, scope: Scope) -> str:
        """Of the login by which the caller is known; empty without one."""
        return ""

    async def _converse(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await self.caller(scope)
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        name = query.get("model", [""])[0]
        if not name:
            raise InvalidParameter("The query parameter 'model' is missing.", param="model")
        card = catalogue().get(name, "realtime")
        require_model(caller, name, card.kind)
        provider = catalogue().provider(card)
        provider.check()
        address = address_of_scope(scope)
        with session_limits().admit(caller, address, await held_elsewhere(caller)) as admission:
            session_id = identifier("sess")
            await send({"type": "websocket.accept"})
            await bridge.run(
                WebSocketTransport(receive, send),
                provider,
                call_of(session_id, name, query.get("time_zone", [""])[0]),
                Recorder(Beginning(session_id, caller, name, self.door, address)),
                limits_of(admission, caller, self.session_key(scope)),
            )


class ApiSocket(_Socket):
    """`/api-ws/v1/realtime`: any program with a key. No cookie counts here, so no origin matters."""

    door = str(Door.WEBSOCKET)

    async def caller(self, scope: Scope) -> Caller:
        caller = await caller_from_bearer(_header(scope, b"authorization"))
        caller.require("realtime")
        return caller


class PageSocket(_Socket):
    """`/voice/socket`: our own page, known by its cookies. Sits behind Channels' session and auth middleware."""

    door = str(Door.PAGE)

    def session_key(self, scope: Scope) -> str:
        return scope["session"].session_key or ""

    async def caller(self, scope: Scope) -> Caller:
        if settings.PUBLIC_PAGE == "off":
            raise NotFound("The page is switched off.")
        require_own_origin(scope)
        user = scope["user"]
        if user.is_authenticated:
            return await caller_from_user(user)
        guest = guest_of(scope["cookies"])
        if settings.PUBLIC_PAGE != "guest" or not guest:
            raise AccessDenied("Sign in to talk.")
        return await guest_caller(guest)


def require_own_origin(scope: Scope) -> None:
    """A cookie is the credential, so only a page of ours may use it: scheme, host and port must be our own.

    Raises:
        AccessDenied: another origin, none at all, or a host that is not ours.
    """
    origin = _header(scope, b"origin") or ""
    host = _header(scope, b"host") or ""
    domain, _ = split_domain_port(host)
    allowed_hosts = settings.ALLOWED_HOSTS
    if not domain or not validate_host(domain, allowed_hosts):
        raise AccessDenied("This host name is not served here (ALLOWED_HOSTS).")
    scheme = "https" if scope.get("scheme") in ("wss", "https") else "http"
    if _normal(origin) not in {_normal(f"{scheme}://{host}"), *map(_normal, settings.CSRF_TRUSTED_ORIGINS)}:
        raise AccessDenied("This page may not open a conversation here: its origin is not ours.")


def _normal(origin: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(origin)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return ("", origin, None)
    return (parts.scheme, (parts.hostname or "").lower(), port)


def _header(scope: Scope, name: bytes) -> str | None:
    for key, value in scope.get("headers", ()):
        if key.lower() == name:
            return str(value.decode("latin-1"))
    return None
