"""Data channels: timers for speech, a bound on unfinished messages, and when all was delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiortc import RTCPeerConnection, rtcsctptransport
from aiortc.rtcsctptransport import InboundStream

rtcsctptransport.SCTP_RTO_INITIAL = 0.5
rtcsctptransport.SCTP_RTO_MIN = 0.4  # type: ignore[assignment]
"""As browsers have it. The 3 s and 1 s of RFC 9260 are for bulk data: with them, one lost datagram delays what was said
by a second, and the beginning of a call by three."""

WAITING_CHUNKS = 2000
"""Pieces of messages that wait for others, of all channels of a call: 2 MiB as they usually are. aiortc knows no bound,
and looks at all that wait when one more comes."""
CHANNEL_STREAMS = 256
LOOK_S = 0.01


def bound_messages(peer: RTCPeerConnection, refuse: Callable[[], None]) -> None:
    """Call `refuse`, maybe many times, and forget what comes, while more of a caller's messages is unfinished than a
    call may keep."""
    sctp: Any = peer.sctp
    known = sctp._inbound_streams
    stream_of = sctp._get_inbound_stream

    def bounded(stream_id: int) -> InboundStream:
        if len(known) >= CHANNEL_STREAMS and stream_id not in known:
            refuse()
            return InboundStream()
        waiting = len(sctp._sack_misordered) + sum(len(stream.reassembly) for stream in known.values())
        if waiting > WAITING_CHUNKS:
            refuse()
            return InboundStream()
        found: InboundStream = stream_of(stream_id)
        return found

    sctp._get_inbound_stream = bounded


async def wait_delivered(peer: RTCPeerConnection) -> None:
    """Return when the other side has acknowledged everything said on the channels; closing drops what is under way.

    aiortc does not tell when that is, so it is looked at now and then. Bound the wait: the other side may be gone.
    """
    sctp: Any = peer.sctp
    while sctp is not None and (sctp._data_channel_queue or sctp._outbound_queue or sctp._sent_queue):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)
