"""Sessions behind another relay (`AOQ_UPSTREAM_RELAY`), to which this process connects as a client.

A grant names that relay. When it is issued, this process connects to the path of its session and publishes its tracks
there, before the caller can ask for them. A client with the token is let in by the relay, and meets the session.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context

from django.conf import settings
from django.utils import timezone

from voiceapp.accounts.addresses import neighbourhood
from voiceapp.drain import drain_event
from voiceapp.errors import EngineUnavailable
from voiceapp.event_loops import per_loop
from voiceapp.realtime.aoq import grants, moq_adapter, tokens
from voiceapp.realtime.aoq.grants import GrantRejected, Issued
from voiceapp.realtime.aoq.models import AoqGrant
from voiceapp.realtime.aoq.moq_adapter import ConnectionLost, MoqConnection
from voiceapp.realtime.aoq.visits import Visit
from voiceapp.realtime.aoq.waiting import WaitingList

logger = logging.getLogger(__name__)

CONNECT_S = 5.0
MAX_WAITING = 256
"""Grants whose callers this process waits for; beyond it, the account with the most of them loses the oldest."""
NOBODY_CAME = 4408


class Upstream:
    """Connections of this process at the relay: one for each grant, from its issue to the end of its session.

    Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._waiting: WaitingList[asyncio.Task[None]] = WaitingList(MAX_WAITING)
        self._tasks: set[asyncio.Task[None]] = set()

    async def expect(self, visit: Visit, issued: Issued) -> None:
        """Be there when the caller with this grant comes.

        Raises:
            EngineUnavailable: the relay cannot be reached, or does not let this server in.
        """
        if not moq_adapter.is_installed():
            raise EngineUnavailable("No AOQ relay can be used.", remedy="Install requirements-aoq.txt.")
        connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(
            self._attend(visit, issued, connected),
            name=f"AOQ session {issued.sid}",
            context=Context(),  # not that of the request, which ends long before
        )
        self._tasks.add(task)
        task.add_done_callback(self._over)
        if crowded_out := self._waiting.add(task, _owner_of(visit)):
            crowded_out.cancel()
        try:
            await connected
        except asyncio.CancelledError:  # the caller has left
            task.cancel()
            raise

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._waiting.remove(task)

    async def _attend(self, visit: Visit, issued: Issued, connected: asyncio.Future[None]) -> None:
        now = timezone.now().timestamp()
        token = tokens.sign_server(issued.sid, issued_at=now, expires_at=now + issued.lifetime_s)
        url = f"{settings.AOQ_UPSTREAM_RELAY}/{tokens.path_of(issued.sid)}?jwt={token}"
        try:
            async with moq_adapter.connect(url, settings.AOQ_UPSTREAM_FINGERPRINT, within_s=CONNECT_S) as connection:
                if not connected.done():
                    connected.set_result(None)
                    await self._meet(visit, issued, connection)
        except ConnectionLost:
            logger.warning("AOQ: the relay %s cannot be reached or refuses connections", settings.AOQ_UPSTREAM_RELAY)
        finally:
            if not connected.done():
                connected.set_exception(
                    EngineUnavailable(
                        "The AOQ relay cannot be reached. Use WebRTC or a WebSocket.",
                        remedy="Look whether the relay at AOQ_UPSTREAM_RELAY runs, and whether it has the public key "
                        "that `manage.py runrelay --public-key` prints.",
                    )
                )

    async def _meet(self, visit: Visit, issued: Issued, connection: MoqConnection) -> None:
        try:
            async with asyncio.timeout(issued.expires_in_s):
                await connection.wait_caller()
            self._waiting.remove(asyncio.current_task())  # type: ignore[arg-type]
            await grants.use(await AoqGrant.objects.aget(pk=issued.sid), timezone.now())
            with drain_event().work():
                await visit.run(connection)
        except (TimeoutError, ConnectionLost, GrantRejected, AoqGrant.DoesNotExist):
            logger.info("session %s: the caller did not come to the relay", visit.arrival.admitted.call.session_id)
            await visit.arrival.give_up()
        finally:
            connection.close(NOBODY_CAME)


def _owner_of(visit: Visit) -> tuple[int, str]:
    """An account; of visitors to the page, who have none or share one, what `neighbourhood` takes for one caller."""
    begun = visit.arrival.admitted.beginning
    return begun.caller.account_id, neighbourhood(begun.client_address) if begun.caller.key_id is None else ""


upstream = per_loop(Upstream)
