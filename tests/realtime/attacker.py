"""Sends a server every hostile frame there is, for ever: `python -m tests.realtime.attacker ADDRESS KEY`.

It says on standard output when it has sent each of them once.
"""

from __future__ import annotations

import itertools
import sys
import threading
from contextlib import suppress

from tests.realtime.hostile_frames import BROKEN, ODD, opened, text_frame, until_ended

CLEAR = text_frame(b'{"type": "input_audio_buffer.clear"}')
FLOOD = 5000
"""Messages at once: more than a session may send."""


def attack(address: str, key: str, frames: list[bytes]) -> None:
    """One connection; the server may end it at any time."""
    with opened(address, key) as peer, suppress(ConnectionError, TimeoutError):
        for frame in frames:
            peer.sendall(frame)
        until_ended(peer)


def flood(address: str, key: str) -> None:
    while True:
        attack(address, key, [CLEAR * FLOOD])


def main() -> None:
    address, key = sys.argv[1:]
    threading.Thread(target=flood, args=(address, key), daemon=True).start()
    for round_ in itertools.count():
        for frame in BROKEN.values():
            attack(address, key, [*ODD.values(), frame])
        if not round_:
            print("every frame was sent", flush=True)


if __name__ == "__main__":
    main()
