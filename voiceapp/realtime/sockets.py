"""WebSocket handshakes: from a path to an admitted session, or to a refusal in JSON.

Each takes over the whole connection instead of Channels' default dispatch, which hops to one shared thread for every
message and awaits each handler in turn: audio must not wait there.
"""

from __future__ import annotations

from voiceapp.accounts.addresses import address_of_scope
from voiceapp.accounts.auth import Caller, caller_from_bearer
from voiceapp.accounts.page import page_caller_of, require_own_page
from voiceapp.http.refusals import LOST, Receive, Scope, Send, refuse
from voiceapp.protocol.wire.dialects import OWN, Dialect
from voiceapp.realtime.admission import Admitted, admit
from voiceapp.realtime.doors import API_SOCKET, PAGE_SOCKET, READ_ALOUD_SOCKET, Door
from voiceapp.realtime.handshake import Handshake, Wire, read_handshake
from voiceapp.realtime.inference.connection import SocketConnection
from voiceapp.realtime.inference.runner import TaskRunner
from voiceapp.realtime.joining import carry_joined, join_call
from voiceapp.realtime.lifetime.resume import Arrival, arrive
from voiceapp.realtime.lifetime.resumption import read_resumption
from voiceapp.realtime.scopes import header_of, query_of, refuse_handshake
from voiceapp.realtime.transports.websocket import WebSocketTransport


async def api_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """`/api-ws/v1/realtime`, `/v1/realtime`: a program with a key. Cookies do not count, so the origin does not matter.

    The path chooses the dialect.
    """
    await receive()  # websocket.connect
    wire = Wire(
        query_of(scope),
        is_openais=not scope["path"].startswith("/api-ws/"),
        authorization=header_of(scope, b"authorization"),
        beta=header_of(scope, b"openai-beta"),
        subprotocols=tuple(scope.get("subprotocols", ())),
    )
    if wire.is_openais and "call_id" in wire.query:
        await _join(scope, receive, send, wire)
        return
    try:
        caller = await caller_from_bearer(wire.bearer)
        handshake = read_handshake(wire)
        door = READ_ALOUD_SOCKET if handshake.reads_aloud else API_SOCKET
        resumption = read_resumption(wire.query) if handshake.dialect is OWN else None
        arrival = await arrive(
            resumption,
            caller,
            door,
            handshake.model,
            lambda: _admit(scope, caller, door, handshake, is_plain=resumption is None),
        )
    except Exception as error:
        await refuse_handshake(scope, send, error)
    else:
        await _run(arrival, receive, send, handshake.dialect_of(arrival.admitted), wire.subprotocol)


async def _join(scope: Scope, receive: Receive, send: Send, wire: Wire) -> None:
    try:
        caller = await caller_from_bearer(wire.bearer)
        call = await join_call(wire.query["call_id"], caller)
    except Exception as error:
        await refuse_handshake(scope, send, error)
    else:
        await carry_joined(call, caller, receive, send, wire.subprotocol)


async def inference_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """`/api-ws/v1/inference`: tasks of recognition and synthesis, for programs with a key."""
    await receive()  # websocket.connect
    try:
        caller = await caller_from_bearer(header_of(scope, b"authorization"))
        caller.require("realtime")
    except Exception as error:
        await refuse_handshake(scope, send, error)
    else:
        await send({"type": "websocket.accept"})
        lost = scope["extensions"].get(LOST, {}).get("code")
        connection = SocketConnection(receive, send, lost)
        await TaskRunner(caller, API_SOCKET, address_of_scope(scope), connection).run()


async def page_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """`/voice/socket`: our own page, known by its cookies. Stands behind Channels' session and auth middleware."""
    await receive()  # websocket.connect
    try:
        require_own_page(scope)
        caller = await page_caller_of(scope)
        query, session_key = query_of(scope), scope["session"].session_key or ""
        handshake = Handshake(query.get("model", ""))
        arrival = await arrive(
            read_resumption(query),
            caller,
            PAGE_SOCKET,
            handshake.model,
            lambda: _admit(scope, caller, PAGE_SOCKET, handshake, session_key=session_key),
        )
    except Exception as error:
        await refuse_handshake(scope, send, error)
    else:
        await _run(arrival, receive, send)


async def unknown_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Any other path: refuse the handshake with 404 instead of an exception."""
    await receive()  # websocket.connect
    await refuse(scope, send, 404, "NotFound", "There is no WebSocket on this path.")


async def _admit(
    scope: Scope, caller: Caller, door: Door, handshake: Handshake, *, session_key: str = "", is_plain: bool = False
) -> Admitted:
    """`is_plain`: the session ends with its connection, so that its events need not be told again."""
    time_zone, address = query_of(scope).get("time_zone", ""), address_of_scope(scope)
    admitted = await admit(
        caller,
        door,
        handshake.model,
        address,
        time_zone=time_zone,
        languages=header_of(scope, b"accept-language"),
        session_key=session_key,
        variables=handshake.variables,
    )
    return await handshake.open(admitted, is_plain=is_plain).prepared()


async def _run(
    arrival: Arrival, receive: Receive, send: Send, dialect: Dialect = OWN, subprotocol: str | None = None
) -> None:
    try:
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
    except BaseException:
        if arrival.session is None:
            arrival.admitted.seat.release()
        raise
    await arrival.converse(WebSocketTransport(receive, send, dialect))
