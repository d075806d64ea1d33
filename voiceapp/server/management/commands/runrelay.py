"""`manage.py runrelay`: an AOQ relay in a process of its own, beside the serving processes."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import AsyncExitStack
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from voiceapp.drain import drain_event
from voiceapp.engines.models import providers
from voiceapp.health import process_readiness
from voiceapp.realtime.aoq import moq_adapter
from voiceapp.realtime.aoq.listener import RelayListener, RelayPlace
from voiceapp.realtime.lifetime.process_lease import keep_lease
from voiceapp.server.limits import ServerLimits
from voiceapp.server.management.commands.serve import warm_up
from voiceapp.server.runner import Life


class RelayAdapter:
    """A relay in the place of a web server."""

    name = "the AOQ relay"

    def __init__(self, listener: RelayListener) -> None:
        self._listener = listener
        self._running = AsyncExitStack()

    async def start(self) -> None:
        await self._running.enter_async_context(self._listener.listen())

    def stop_listening(self) -> None:
        """A relay does not share its port: it refuses new sessions while it drains."""

    def close_sockets(self, code: int, reason: str) -> None:
        self._listener.end_sessions()

    async def stop(self) -> None:
        await self._running.aclose()


class Command(BaseCommand):
    help = (
        "Be an AOQ relay: conversations over Media over QUIC run in this process, on a UDP port. Any number of these "
        "may run beside the servers that issue grants, with the same database and SECRET_KEY. Stops gracefully on "
        "SIGTERM."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for every interface")
        parser.add_argument("--port", type=int, default=settings.AOQ_PORT, help="of UDP; default: AOQ_PORT")

    def handle(self, *, host: str, port: int, **options: Any) -> None:
        if not moq_adapter.is_installed():
            raise CommandError("The MoQ library is missing. Install it: pip install -r requirements-aoq.txt")
        place = RelayPlace.of(host, port)
        if place is None:
            raise CommandError("Set AOQ_ENDPOINT to the host name or address under which callers reach this relay.")
        life = Life(
            drain_event(),
            process_readiness(),
            ServerLimits.from_settings(),
            warm_up=warm_up,
            keep_house=keep_lease,
            close=providers.close,
        )
        try:
            asyncio.run(life.run(RelayAdapter(RelayListener(place)), f"udp://{host}:{port}"))
        except OSError as error:
            raise CommandError(f"The relay cannot start: {error}. Choose another port with --port.") from error
