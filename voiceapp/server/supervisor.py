"""Notices to the program that started this process and names a NOTIFY_SOCKET: systemd, by sd_notify(3)."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Mapping

from voiceapp.health import Readiness

logger = logging.getLogger(__name__)

LOOK_S = 1.0
"""Pause between two looks at a process that is not ready yet."""


class Supervisor:
    """The program that started this process; one that does not listen is told nothing."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "").replace("@", "\0", 1)
        is_meant = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._watchdog_s = int(environment.get("WATCHDOG_USEC", "0")) / 1e6 if is_meant else 0.0

    def tell(self, *notices: str) -> None:
        """Send notices such as READY=1; one that the program does not take is logged and lost."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sending:
                sending.sendto("\n".join(notices).encode(), self._address)
        except OSError as error:
            logger.warning("NOTIFY_SOCKET does not take %s: %s", notices[0], error)

    async def attend(self, readiness: Readiness, status: str) -> None:
        """Say what is missing until this process is ready, then that, and then that its event loop runs."""
        while self._address and (reasons := await readiness.reasons()):
            self.tell("STATUS=Not ready: " + " ".join(reason.for_operators for reason in reasons))
            await asyncio.sleep(LOOK_S)
        self.tell("READY=1", f"STATUS={status}")
        while self._address and self._watchdog_s:
            self.tell("WATCHDOG=1")
            await asyncio.sleep(self._watchdog_s / 3)
