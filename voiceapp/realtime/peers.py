"""Calls that outlive the request which made them: from an answered offer to the end of the conversation.

A request brings the offer and takes the answer away; the conversation begins afterwards, when the channel opens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary

from aiortc import RTCPeerConnection

from voiceapp.accounts.limits import Admission
from voiceapp.drain import drain_event
from voiceapp.engines.interfaces import Call, RealtimeModel
from voiceapp.realtime import bridge, places
from voiceapp.realtime.records import ABANDONED, Recorder
from voiceapp.realtime.transports.webrtc import WebRtcTransport

CONNECT_S = 15.0
"""From the answer to the open channel."""
CALLER_OPENS_S = 1.0
"""How long a caller is waited for who may open the channel, from when that is possible: a trip there and back, and
time to repeat what was lost."""


class Peers:
    """The conversations that outlive their request. Belongs to one event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def keep(self, conversation: Coroutine[Any, Any, None], name: str) -> None:
        """Run a conversation to its end; the stopping server waits for it."""
        # In a context of its own: that of the request names a thread for rows which ends with the request.
        task = asyncio.create_task(conversation, name=name, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End them all now."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


_peers: WeakKeyDictionary[asyncio.AbstractEventLoop, Peers] = WeakKeyDictionary()


def peers() -> Peers:
    """The conversations of the running event loop."""
    return _peers.setdefault(asyncio.get_running_loop(), Peers())


async def answer(
    offer: str, model: RealtimeModel, call: Call, recorder: Recorder, seat: Admission, limits: bridge.Limits
) -> str:
    """Accept a call: returns the answer, and lets the conversation begin when the caller has it.

    The seat is given back when the conversation is over, or when there will be none.

    Raises:
        InvalidParameter: nothing can be made of the offer.
        EngineUnavailable: no way for media leads to this server now.
    """
    transport = WebRtcTransport(RTCPeerConnection(places.configuration(seat.lifetime_s)))
    try:
        text = await transport.accept(offer)
    except BaseException:
        seat.release()
        await transport.hang_up()
        raise
    conversation = _converse(transport, model, call, recorder, limits, seat)
    peers().keep(conversation, f"call {call.session_id}")
    return text


async def _converse(
    transport: WebRtcTransport,
    model: RealtimeModel,
    call: Call,
    recorder: Recorder,
    limits: bridge.Limits,
    seat: Admission,
) -> None:
    with seat, drain_event().work():
        try:
            if await _connect(transport):
                await bridge.run(transport, model, call, recorder, limits)
            else:
                await recorder.finish(ABANDONED, "The connection was not established.")
        finally:
            await transport.hang_up()


async def _connect(transport: WebRtcTransport) -> bool:
    """Wait for the open channel; False when the caller does not come, or the server stops before."""
    stopping = asyncio.create_task(drain_event().wait_begun())
    opening = asyncio.create_task(_open(transport))
    try:
        await asyncio.wait((opening, stopping), timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
        return opening.done() and transport.is_open
    finally:
        stopping.cancel()
        opening.cancel()


async def _open(transport: WebRtcTransport) -> None:
    await transport.connected.wait()
    try:
        async with asyncio.timeout(CALLER_OPENS_S):
            await transport.opened.wait()
    except TimeoutError:
        transport.open_channel()
        await transport.opened.wait()
