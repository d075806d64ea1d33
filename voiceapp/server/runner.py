"""The life of the server process: bind, serve, drain, stop. `daphne_adapter` speaks HTTP.

What an application may rely on:

- **Refusing a handshake has one way**: the ASGI extension `websocket.http.response`. Before accepting, send
  `{"type": "websocket.http.response.start", "status": 401, "headers": […]}` and
  `{"type": "websocket.http.response.body", "body": b"…"}` (`answers.refuse` does both, with the JSON of a refusal) and
  return. A `websocket.close` before the accept is always 403.
- `scope["client"]` is the client and not the proxy, `scope["scheme"]` what the proxy saw, `scope["root_path"]` empty,
  and `scope["state"]["request_id"]` names the request in log and answers.
- `receive` and `send` push back: a socket that its application does not read from stops reading, `send` waits while
  the client is slow, and a pipelined request begins when the client has read the response before it.
- Close codes 1000 to 1014 and 3000 to 4999 go out as given, with their reason. `websocket.disconnect` comes when the
  socket ended for whatever reason; what is sent afterwards is lost.
- An exception before the accept answers 500, one after it closes with 1011; returning without closing closes with 1000.
- When the server stops, `drain_event().wait_begun()` returns; a socket still open DRAIN_S later is closed with 4012.
  On a port that it shares, it stops listening first, and what it has accepted by then is still served.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from voiceapp.drain import Drain
from voiceapp.errors import VoiceError
from voiceapp.health import Readiness
from voiceapp.http.refusals import Application
from voiceapp.load import load
from voiceapp.memory import give_back
from voiceapp.metrics import measure_lag

from .front import Front
from .limits import BACKLOG, ServerLimits
from .supervisor import Supervisor

logger = logging.getLogger(__name__)

STOPPING = 4012
"""Close code of a socket that the stopping server ends; clients connect again on it."""

UNSENT_BYTES = 128 * 1024
"""Bytes that the kernel buffers of a connection before sending; the default is megabytes for a stalled client."""

ACCEPTED_S = 1.0
"""On a shared port: how long a connection that was accepted just before the stop may take to begin its request."""
LAST_WORDS_S = 2.0
"""After the sockets are closed: how long applications may take to write down what they must."""
CLOSE_S = 2.0
"""Time that engines have to end."""


class ServerAdapter(Protocol):
    """A listener inside its running event loop: the server, or a relay."""

    name: str

    async def start(self) -> None:
        """Accept connections on the socket it was given."""

    def stop_listening(self) -> None:
        """Accept what waits on the socket already, then close it; connections go on."""

    def close_sockets(self, code: int, reason: str) -> None:
        """Send every open WebSocket a close frame; their applications see the disconnect."""

    async def stop(self) -> None:
        """Stop listening and drop every connection."""


@dataclass(frozen=True, slots=True)
class Life:
    """Start and stop of everything in a serving process."""

    drain: Drain
    readiness: Readiness
    limits: ServerLimits
    warm_up: Callable[[], Awaitable[None]]
    """Loads the engines; runs beside the serving, readiness waits for it."""
    keep_house: Callable[[], Awaitable[None]]
    """Deletes what is past its time, again and again, beside the serving."""
    close: Callable[[], Awaitable[None]]
    """Ends the engines."""
    shares_port: bool = False
    """Other processes listen on the same port."""

    async def run(self, adapter: ServerAdapter, address: str) -> None:
        """Serve until SIGTERM or SIGINT, drain, stop. Hosts repeat SIGTERM; a second SIGINT is a person in a hurry."""
        stop, hurry = asyncio.Event(), asyncio.Event()

        def interrupted() -> None:
            if stop.is_set():
                hurry.set()
            stop.set()

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_signal_handler(signal.SIGINT, interrupted)
        warming = asyncio.create_task(self._warm_up(), name="warm up")
        if self.shares_port:  # until it is ready, the others serve what comes
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait((warming, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        await adapter.start()
        logger.info("Serving on %s with %s, process %d", address, adapter.name, os.getpid())
        supervisor = Supervisor()
        beside = (
            warming,
            asyncio.create_task(supervisor.attend(self.readiness, f"Serving on {address}"), name="supervisor"),
            asyncio.create_task(self._keep_house(), name="housekeeping"),
            asyncio.create_task(measure_lag(), name="event loop lag"),
        )
        await stop.wait()

        supervisor.tell("STOPPING=1")
        if self.shares_port:  # a new session that this process refused would be lost to the others
            adapter.stop_listening()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ACCEPTED_S):
                    await hurry.wait()
        logger.info("Stopping: %d being served, waiting at most %g s", self.drain.working, self.limits.drain_s)
        self.drain.begin()
        await self._wait_idle(hurry, self.limits.drain_s)
        adapter.close_sockets(STOPPING, "server is stopping")
        await self._wait_idle(hurry, LAST_WORDS_S)
        if self.drain.working:
            logger.warning("Cutting off %d that did not end", self.drain.working)
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.close()
        except TimeoutError:
            logger.warning("The engines did not end within %g s", CLOSE_S)
        await adapter.stop()
        logger.info("Stopped")

    async def _wait_idle(self, hurry: asyncio.Event, patience_s: float) -> None:
        waits = [
            asyncio.create_task(self.drain.wait_idle(), name="drain"),
            asyncio.create_task(hurry.wait(), name="hurry"),
        ]
        await asyncio.wait(waits, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _warm_up(self) -> None:
        self.readiness.warming = True
        try:
            await self.warm_up()
            give_back()  # what loading took in passing: 20 to 40 MB
        except VoiceError as error:  # such as missing weights: what follows from it is told below
            logger.warning("Not every engine is loaded: %s", error.message)
        except Exception:
            self.readiness.warm_up_failed = True
            logger.exception("The engines could not be loaded")
        finally:
            self.readiness.warming = False
            load().forget()
        if not self.drain.begun:
            for reason in await self.readiness.reasons():
                logger.error("Not ready: %s", reason.for_operators)

    async def _keep_house(self) -> None:
        try:
            await self.keep_house()
        except Exception:
            logger.exception("Housekeeping failed; `manage.py purge` does it by hand")


def bind(host: str, port: int, *, send_timeout_s: float, is_shared: bool = False) -> socket.socket:
    """A listening socket; port 0 lets the system choose, and `::` stands for every address of both families.

    Of what it accepts, a connection whose client takes nothing for `send_timeout_s` is cut.
    When `is_shared`, other processes of the same user that share it too may listen on the same port: the system hands
    each new connection to one of those that listen. This one does when its adapter starts.

    Raises:
        OSError: when the address is in use or not ours.
        ValueError: when the system cannot share ports.
    """
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"  # noqa: S104 - every address of a system that knows no IPv6
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if is_shared:
        listening = _bind_shared(host, port, family)
    else:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=host == "::")
    # Inherited by every connection: a response of several writes must not wait 40 ms for the client's acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux: counts while the client is silent, and while its window is closed
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, math.ceil(send_timeout_s * 1000))
    listening.setblocking(False)  # Twisted accepts until there is nothing left to accept
    return listening


def _bind_shared(host: str, port: int, family: socket.AddressFamily) -> socket.socket:
    if not hasattr(socket, "SO_REUSEPORT"):
        raise ValueError("this system cannot share ports between processes")
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound


def serve(application: Application, listening: socket.socket, life: Life) -> None:
    """Run the application until the process is told to stop; returns after a clean stop."""
    from . import daphne_adapter  # installs the reactor of this process

    front = Front(application, life.limits, life.drain, life.readiness)
    host, port = listening.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    with contextlib.closing(listening):
        daphne_adapter.run(front, listening, life.limits, lambda running: life.run(running, address))
