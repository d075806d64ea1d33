"""Sends a server every hostile frame there is, for ever: `python -m tests.realtime.attacker ADDRESS KEY`.

It says on standard output each time it has sent all of them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tests.realtime.aoq.peer import calling, granted
from tests.realtime.hostile_frames import (
    BROKEN,
    INFERENCE,
    LEGAL,
    ODD,
    REALTIME,
    begin,
    event,
    opened,
    until_ended,
)

CLEAR = event("input_audio_buffer.clear")
FLOOD = 5000
"""Messages at once: more than a session may send."""

AT_ONCE = 8
"""Connections with hostile frames: the server keeps most of them for some seconds before it hangs up."""
LEGAL_S = 2.0
"""For what the server does with frames in which nothing is wrong."""
PADDED = b'{"type": "input_audio_buffer.clear", "padding": "%s"}' % (b"x" * 1_000_000)


def attack(address: str, key: str, frames: list[bytes], *, path: str = REALTIME) -> None:
    """One connection; the server may end it at any time."""
    with opened(address, key, path=path) as peer, suppress(ConnectionError, TimeoutError):
        for frame in frames:
            peer.sendall(frame)
        if frames[-1] not in BROKEN.values():
            peer.settimeout(LEGAL_S)
        until_ended(peer)


def flood(address: str, key: str) -> None:
    while True:
        attack(address, key, [CLEAR * FLOOD])


async def flood_aoq(address: str, key: str) -> None:
    """Objects of all sizes on both tracks, in one session after the other."""
    while True:
        with suppress(TimeoutError, AssertionError):
            async with calling(await granted(f"http://{address}", key)) as peer:
                for number in range(200):
                    peer.send_bytes(PADDED if number % 10 == 0 else bytes(number))
                    peer.send_packet(bytes(number))
                await peer.wait_closed()


def main() -> None:
    address, key = sys.argv[1:]
    threading.Thread(target=flood, args=(address, key), daemon=True).start()
    threading.Thread(target=asyncio.run, args=(flood_aoq(address, key),), daemon=True).start()
    attacks = [
        *((REALTIME, [*ODD.values(), frame]) for frame in BROKEN.values()),
        *((INFERENCE, [begin(), *ODD.values(), frame]) for frame in BROKEN.values()),
        *LEGAL.values(),
    ]
    with ThreadPoolExecutor(AT_ONCE) as attackers:
        while True:
            list(attackers.map(lambda each: attack(address, key, each[1], path=each[0]), attacks))
            print("every frame was sent", flush=True)


if __name__ == "__main__":
    main()
