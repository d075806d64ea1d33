"""Sessions of models that are served elsewhere: this server passes on how to connect, and sees nothing of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from voiceapp.realtime.admission import Admitted
from voiceapp.realtime.records import record_relayed
from voiceapp.realtime.turn_charges import forwarded_charge

FORWARDED_S = 600
"""How long a forwarded session keeps its seat: its end is not seen here. A guest's keeps it for as long as guests may
talk."""


async def forward(admitted: Admitted, ask: Callable[[], Awaitable[str]]) -> str:
    """What the service that serves the model responds to `ask`. Its session is not seen here, so the seat is taken now.

    Raises:
        Throttled: no seat is free any more.
        EngineError: the service did not respond as it should.
    """
    seat = admitted.seat
    await seat.take()
    try:
        begun = admitted.beginning
        async with forwarded_charge(begun.caller, begun.model, begun.session_id) as charge:
            response = await ask()
            charge.used(conversations=1)
            await record_relayed(begun)
    except BaseException:
        seat.release()
        raise
    held_s = seat.lifetime_s if admitted.beginning.caller.is_guest else min(seat.lifetime_s, FORWARDED_S)
    asyncio.get_running_loop().call_later(held_s, seat.release)
    return response
