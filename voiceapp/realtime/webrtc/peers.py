"""Peers: sessions that outlive the request which made them, from an answered offer to their end.

A request brings the offer and takes the answer away; the session begins afterwards, when the channel opens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from typing import Any

from aiortc import RTCPeerConnection
from django.conf import settings

from voiceapp import ice
from voiceapp.drain import drain_event
from voiceapp.errors import EngineUnavailable
from voiceapp.event_loops import per_loop
from voiceapp.protocol.wire.dialects import OWN, Dialect
from voiceapp.realtime.admission import Admitted
from voiceapp.realtime.calls import JoinableCall, calls
from voiceapp.realtime.lifetime.resume import Arrival
from voiceapp.realtime.transports.webrtc import WebRtcTransport
from voiceapp.realtime.webrtc import ice_config
from voiceapp.realtime.webrtc.pending import PendingOffer, PendingOffers

logger = logging.getLogger(__name__)

CALLER_OPENS_S = 1.0
"""Time for a caller who may open the channel, from when that is possible: a trip there and back, and
time to repeat what was lost."""


class Peers:
    """The sessions that outlive their request. Belongs to one event loop."""

    def __init__(self) -> None:
        self.pending = PendingOffers.from_settings()
        self._tasks: set[asyncio.Task[None]] = set()

    def keep(self, conversation: Coroutine[Any, Any, None], name: str) -> None:
        """Run a conversation to its end; the stopping server waits for it."""
        # In a context of its own: that of the request names a thread for rows which ends with the request.
        task = asyncio.create_task(conversation, name=name, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


peers = per_loop(Peers)


async def answer(offer: str, arrival: Arrival, dialect: Dialect = OWN) -> str:
    """Accept an offer: returns the answer, and lets the session begin, or go on, when the caller has it.

    A new session takes its seat when the caller connects: until then the offer is pending. What serves it is reached
    before, so that the caller learns at once where it cannot be.

    Raises:
        InvalidParameter: the offer cannot be read.
        EngineError: the model cannot be reached.
        EngineUnavailable: this server does not talk over WebRTC, or media do not reach it now.
        Throttled: too many offers of this caller are pending.
    """
    if not ice.available():
        reason = "libopus is missing" if settings.RTC_ENABLED else "it is switched off"
        raise EngineUnavailable(f"This server does not talk over WebRTC: {reason}. Use a WebSocket.")
    admitted = arrival.admitted
    pending = peers().pending.add(admitted.beginning.caller, admitted.beginning.client_address)
    try:
        if arrival.session is None:
            await admitted.prepared()
        if dialect is not OWN:
            await calls().listen()
        transport, text = await _accept(offer, admitted, dialect)
    except BaseException:
        peers().pending.remove(pending)
        admitted.provider.abandon(admitted.call)
        raise
    session_id, talking = admitted.call.session_id, None
    if dialect is not OWN:
        talking = JoinableCall(transport, admitted.beginning.caller.account_id, listens_only=admitted.call.listens_only)
        calls().begin(session_id, talking)
    peers().keep(_converse(transport, arrival, pending, talking), f"peer of session {session_id}")
    return text


async def _accept(offer: str, admitted: Admitted, dialect: Dialect) -> tuple[WebRtcTransport, str]:
    """A peer connection that has the offer, and its answer."""
    transport = WebRtcTransport(RTCPeerConnection(ice_config.configuration(admitted.limits.lifetime_s)), dialect)
    try:
        return transport, await transport.accept(offer)
    except BaseException:
        await transport.hang_up()
        raise


async def _converse(
    transport: WebRtcTransport, arrival: Arrival, pending: PendingOffer, talking: JoinableCall | None
) -> None:
    admitted = arrival.admitted
    with drain_event().work():
        try:
            if await _connect(transport, pending):
                admitted.recorder.quality = transport.quality
                await arrival.converse(talking or transport)
            elif pending.dropped.is_set():  # nothing is written of it: a flood of offers is not one of rows
                logger.info("session %s: offer dropped, a newer one took its place", admitted.call.session_id)
            else:
                await transport.hang_up()
                await arrival.give_up()
        finally:
            if talking is not None:
                calls().over(admitted.call.session_id)
            await transport.hang_up()


async def _connect(transport: WebRtcTransport, pending: PendingOffer) -> bool:
    """Wait for the open channel; False when the caller does not come, another offer takes the place of this one, or the
    server stops before."""
    opening = asyncio.create_task(_open(transport), name="opening a channel")
    waits = (
        opening,
        asyncio.create_task(pending.dropped.wait(), name="pending offer"),
        asyncio.create_task(drain_event().wait_begun(), name="drain"),
    )
    try:
        await asyncio.wait(waits, timeout=settings.RTC_CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
        return opening.done() and transport.is_open
    finally:
        peers().pending.remove(pending)
        for wait in waits:
            wait.cancel()


async def _open(transport: WebRtcTransport) -> None:
    await transport.connected.wait()
    try:
        async with asyncio.timeout(CALLER_OPENS_S):
            await transport.opened.wait()
    except TimeoutError:
        transport.open_channel()
        await transport.opened.wait()
