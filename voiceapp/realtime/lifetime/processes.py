"""Names of server processes that hold conversations."""

from __future__ import annotations

import functools
import os
import secrets
import socket

NAME_LENGTH = 100
HOST_LENGTH = 40


def own_name() -> str:
    """`host:process:random` of this process; no process that begins later has the same."""
    return _name(os.getpid())


@functools.cache
def _name(process_id: int) -> str:
    host = socket.gethostname()[:HOST_LENGTH].replace(":", "-")
    return f"{host}:{process_id}:{secrets.token_hex(6)}"
