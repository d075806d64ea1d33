"""Servers that join calls over a WebSocket, or hang them up, wherever a call is held."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from voiceapp.accounts.caller import Caller
from voiceapp.catalogue.lookup import catalogue
from voiceapp.database.thread import run_in_db_thread
from voiceapp.engines.models.providers import provider_of
from voiceapp.errors import NotFound
from voiceapp.http.refusals import Receive, Send
from voiceapp.realtime import forwarding
from voiceapp.realtime.calls import CallName, carry, read_call_name
from voiceapp.realtime.close_codes import FLOOD, KEY_REVOKED, NORMAL, SERVER_STOPPING
from voiceapp.realtime.lifetime.end_conditions import wait_stopping
from voiceapp.realtime.lifetime.revocation import credentials_of, revocation_watch
from voiceapp.realtime.models import RealtimeSession
from voiceapp.realtime.transports.interface import Disconnected
from voiceapp.realtime.transports.limits import SLOW_READER_S

REASONS = {
    NORMAL: "The call is over.",
    FLOOD: "The connection is too slow for this call.",
    KEY_REVOKED: "The API key of this connection is no longer valid.",
    SERVER_STOPPING: "The server is stopping; connect again.",
}


async def join_call(call_id: str, caller: Caller) -> Any:
    """A side of a call of the caller's account, to be closed.

    Raises:
        AccessDenied: if the key is not for that.
        NotFound: if there is none.
        Throttled: if too many have joined it.
        EngineError: if the service that holds it does not let us join.
    """
    name = read_call_name(call_id, caller)
    if not name.there:
        return await name.join()
    return await (await _provider(name)).join_call(name.there)


async def end_call(call_id: str, caller: Caller) -> None:
    """Hang up a call. Raises what `join_call` raises."""
    name = read_call_name(call_id, caller)
    if not name.there:
        await name.hang_up()
        return
    await (await _provider(name)).hang_up_call(name.there)
    await forwarding.ended(name.session_id)


async def carry_joined(call: Any, caller: Caller, receive: Receive, send: Send, subprotocol: str | None) -> None:
    """Accept a WebSocket that has joined a call, and carry it until either ends."""

    async def end() -> Disconnected:
        revoked = asyncio.create_task(revocation_watch().wait(credentials_of(caller)))
        stopping = asyncio.create_task(wait_stopping())
        try:
            await asyncio.wait((revoked, stopping), return_when=asyncio.FIRST_COMPLETED)
            return Disconnected(KEY_REVOKED if revoked.done() else SERVER_STOPPING)
        finally:
            revoked.cancel()
            stopping.cancel()

    async with aclosing(call):
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
        code = await carry(_Socket(receive, send), call, until=end)
    code = code if code in REASONS else NORMAL
    await send({"type": "websocket.close", "code": code, "reason": REASONS[code]})


async def _provider(name: CallName) -> Any:
    """Return the provider that reaches the service that holds a call.

    Raises:
        NotFound: if its model is not served any more.
    """
    rows = RealtimeSession.objects.filter(pk=name.session_id, account_id=name.account_id)
    model = await run_in_db_thread(rows.values_list("model", flat=True).first)
    card = catalogue().find(model or "", "realtime")
    if card is None or not card.forwards_calls:
        raise NotFound("There is no such call.")
    return provider_of(card)


class _Socket:
    """An accepted ASGI WebSocket as a `Side`."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send

    async def hear(self) -> str:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                raise Disconnected(message.get("code") or NORMAL)
            if text := message.get("text"):
                return str(text).replace("\n", " ")

    async def say(self, text: str) -> None:
        try:
            async with asyncio.timeout(SLOW_READER_S):
                await self._send({"type": "websocket.send", "text": text})
        except TimeoutError:
            raise Disconnected(FLOOD) from None
