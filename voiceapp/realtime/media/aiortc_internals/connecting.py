"""Connecting: aiortc does it in a task of its own that nothing awaits."""

from __future__ import annotations

from typing import Any

from aiortc import RTCPeerConnection
from aiortc.exceptions import InvalidStateError


def give_up_quietly(peer: RTCPeerConnection) -> None:
    """Let a peer connection that is closed while it connects end without a word; call it before the answer is set.

    With audio and events on transports of their own, aiortc goes on to the second one when the first was closed, and
    asyncio logs the exception that this raises as one that was never retrieved.
    """
    inside: Any = peer
    connect = inside._RTCPeerConnection__connect

    async def until_closed() -> None:
        try:
            await connect()
        except InvalidStateError:
            if peer.connectionState != "closed":
                raise

    inside._RTCPeerConnection__connect = until_closed
