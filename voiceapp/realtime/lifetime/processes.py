"""Names of server processes that hold conversations, and whether a process still lives.

Several processes may share a database. A name tells the host, the process and when it began, so that a process which
got the number of a dead one is not taken for it.
"""

from __future__ import annotations

import functools
import os
import socket
from pathlib import Path

NAME_LENGTH = 100
HOST_LENGTH = 40
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def own_name() -> str:
    """`host:process:beginning` of this process."""
    return _name(os.getpid())


def own_host() -> str:
    """Return the beginning of the names of this host's processes."""
    return f"{_host()}:"


def is_gone(name: str) -> bool:
    """Return whether the process of that name ran on this host and has ended; False for those of other hosts.

    Without Linux's /proc, a process that got the number of a dead one counts as that one.
    """
    host, _, rest = name.partition(":")
    number, _, _ = rest.partition(":")
    if host != _host() or not number.isdecimal():
        return False
    return _name(int(number)) != name or not _runs(int(number))


def _name(process_id: int) -> str:
    return f"{_host()}:{process_id}:{_beginning(process_id)}"


@functools.cache
def _host() -> str:
    return socket.gethostname()[:HOST_LENGTH].replace(":", "-")


def _beginning(process_id: int) -> str:
    """The host's boot, and the clock tick of it at which the process began; empty where the system does not tell."""
    try:
        # proc(5): field 22 of stat, counted behind the name, which may hold anything.
        ticks = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[19]
        return f"{_BOOT.read_text().strip()}+{ticks}"
    except OSError:
        return ""


def _runs(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user, and alive
        return True
    return True
