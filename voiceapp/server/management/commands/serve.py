"""`manage.py serve`: the whole product in one process."""

from __future__ import annotations

import argparse
import asyncio
import gc
import ipaddress
import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import import_string

from voiceapp import tracing
from voiceapp.drain import drain_event
from voiceapp.engines.models import providers
from voiceapp.health import process_readiness
from voiceapp.leases.loop import Loop
from voiceapp.realtime.aoq.listener import relay_beside
from voiceapp.realtime.calls import calls
from voiceapp.realtime.lifetime.process_lease import keep_lease
from voiceapp.realtime.lifetime.resume import resumable_sessions
from voiceapp.realtime.webrtc.peers import peers
from voiceapp.server.housekeeping import keep_tidy, set_in_order
from voiceapp.server.limits import ServerLimits
from voiceapp.server.runner import Life, bind, serve
from voiceapp.server.work import EmbeddedWork, queues, watch_for_workers, woken


class Command(BaseCommand):
    help = "Serve pages, API and conversations. Stops gracefully on SIGTERM or Ctrl-C."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on; :: for every one")
        parser.add_argument("--port", type=int, default=settings.PORT, help="default: the variable PORT, else 8000")
        parser.add_argument(
            "--share-port", action="store_true", help="listen beside other processes that share the port as well"
        )

    def handle(self, *, host: str, port: int, share_port: bool, **options: Any) -> None:
        limits = ServerLimits.from_settings()
        try:
            refuse_development(host)
            listening = bind(host, port, send_timeout_s=limits.send_timeout_s, is_shared=share_port)
        except (OSError, OverflowError, ValueError) as error:
            raise CommandError(
                f"Cannot listen on {host} port {port}: {error}. Choose another with PORT or --port."
            ) from error
        application = import_string(settings.ASGI_APPLICATION)
        life = Life(
            drain_event(),
            process_readiness(),
            limits,
            warm_up=warm_up,
            keep_house=lambda: _keep_house(host, listening.getsockname()[1]),
            close=_close,
            shares_port=share_port,
        )
        serve(application, listening, life)
        tracing.close()


def refuse_development(host: str) -> None:
    """Keep an instance for development, which lets every guest talk, from the Internet.

    Raises:
        CommandError: with DEBUG, if the host is a public address or stands for every address.
    """
    address = ipaddress.ip_address(socket.getaddrinfo(host, None)[0][4][0])
    if settings.DEBUG and (address.is_global or address.is_unspecified):
        raise CommandError(
            f"DEBUG=1 is for your own machine, and {host} is open to others. Set SECRET_KEY and DEBUG=0, or listen on "
            "a private address such as 127.0.0.1."
        )


async def _keep_house(host: str, port: int) -> None:
    """Hold the lease of this process, tidy, be a relay, probe other services and, unless other processes do, work on
    what waits; until cancelled."""
    async with asyncio.TaskGroup() as beside:
        beside.create_task(keep_lease(), name="lease of this process")
        beside.create_task(providers.look_at_services(), name="looks at services")
        if settings.TASK_ENGINE != "embedded":
            beside.create_task(watch_for_workers(), name="watches for workers")
        async with relay_beside(host, port if settings.AOQ_PORT == settings.PORT else settings.AOQ_PORT):
            await _tidy_and_work()


async def _tidy_and_work() -> None:
    match settings.TASK_ENGINE:
        case "embedded":
            work = EmbeddedWork(Loop(queues()))
            work.start()
            try:
                await keep_tidy()
            finally:
                await asyncio.to_thread(work.stop)
        case "celery":
            from voiceapp.server.celery import Dispatch  # an optional requirement

            dispatch = Dispatch()
            dispatch.start()
            try:
                async with woken(dispatch.wake):
                    await keep_tidy()
            finally:
                await asyncio.to_thread(dispatch.stop)
        case _:
            await keep_tidy()


async def _close() -> None:
    await resumable_sessions().close()
    await peers().close()  # those that the stop did not move; their requests are long over
    calls().close()
    await providers.close()


async def warm_up() -> None:
    """Load the engines, in a house that is in order."""
    await asyncio.to_thread(tracing.prepare)
    await set_in_order()
    await providers.warm_up()
    # What is here now stays. A full collection that walks over it holds up every conversation for 60 to 70 ms.
    gc.collect()
    gc.freeze()
    # Python waits with the next full collection for a quarter as many new objects as the last one left: 300,000, or now
    # none. Ended conversations would keep up to 50 MB until then.
    gc.collect()
