"""Ports for servers that have to be told theirs before they start."""

from __future__ import annotations

import socket

_kept: list[socket.socket] = []


def free_udp_port() -> int:
    """A UDP port of 127.0.0.1 that nobody uses at present."""
    with socket.socket(type=socket.SOCK_DGRAM) as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def free_port() -> int:
    """A TCP port of 127.0.0.1 for a server of ours: nobody listens there, and nobody else is given it.

    It stays bound until this process ends. Linux lets a server listen there all the same, as long as we do not and both
    ask to reuse addresses; but to those who leave the choice to the system, it gives another.
    """
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("127.0.0.1", 0))
    _kept.append(place)
    return int(place.getsockname()[1])
