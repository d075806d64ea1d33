"""Connections with a grant: each holds one session, or runs tasks of recognition."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qs

from django.db import Error as DatabaseFailure

from voiceapp.database.thread import DatabaseUnavailable
from voiceapp.errors import EngineError, ServiceUnavailable, Throttled, VoiceError
from voiceapp.realtime.admission import admit
from voiceapp.realtime.aoq import grants
from voiceapp.realtime.aoq.grants import GrantRejected, Rejection
from voiceapp.realtime.aoq.models import AoqGrant
from voiceapp.realtime.aoq.moq_adapter import ConnectionLost, Incoming, MoqConnection
from voiceapp.realtime.aoq.tracks import AoqTracks
from voiceapp.realtime.doors import API_GRANT, PAGE_GRANT, TASK_GRANT, Door
from voiceapp.realtime.inference.aoq_connection import AoqConnection
from voiceapp.realtime.inference.runner import TaskRunner
from voiceapp.realtime.lifetime.resume import Arrival, arrive
from voiceapp.realtime.lifetime.resumption import read_resumption
from voiceapp.realtime.transports.aoq import AoqTransport

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Visit:
    """A client that may connect, once."""

    door: Door
    arrival: Arrival
    """The session to begin or to come back to. Of a door that runs tasks it only says that there may be some: each of
    them is admitted by itself."""

    async def run(self, connection: MoqConnection) -> None:
        """Carry the connection to its end."""
        tracks = AoqTracks(connection)
        if self.door.runs_tasks:
            await self._run_tasks(tracks)
        else:
            await self._converse(tracks)

    async def _converse(self, tracks: AoqTracks) -> None:
        admitted = self.arrival.admitted
        try:
            if self.arrival.session is None:
                await admitted.prepared()
            async with tracks.open():
                await self.arrival.converse(AoqTransport(tracks))
        except (TimeoutError, ConnectionLost, EngineError) as error:
            logger.info("session %s: the caller connected and did not begin: %r", admitted.call.session_id, error)
            await self.arrival.give_up()

    async def _run_tasks(self, tracks: AoqTracks) -> None:
        begun = self.arrival.admitted.beginning
        connection = AoqConnection(tracks)
        try:
            async with connection.open():
                await TaskRunner(begun.caller, self.door, begun.client_address, connection).run()
        except (TimeoutError, ConnectionLost):
            logger.info("AOQ relay: a caller connected and did not begin a task")


async def admit_visit(incoming: Incoming, now: datetime) -> Visit:
    """Return what a connection may begin, or come back to, and use up its grant.

    Raises:
        GrantRejected: with the reason.
    """
    try:
        grant = await grants.find(incoming.path, incoming.query, now)
        caller = await grants.caller_of(grant)
        door = _door_of(grant)
        arrival = await arrive(
            read_resumption({name: values[0] for name, values in parse_qs(incoming.query).items()}),
            caller,
            door,
            grant.model,
            lambda: admit(
                caller,
                door,
                grant.model,
                grant.client_address,
                time_zone=grant.time_zone,
                languages=grant.languages,
                session_key=grant.session_key,
            ),
        )
        await grants.use(grant, now)
    except (Throttled, ServiceUnavailable, EngineError, DatabaseUnavailable, DatabaseFailure) as busy:
        logger.info("AOQ relay: no session can begin now: %s", busy)
        raise GrantRejected(Rejection.BUSY) from busy
    except VoiceError as refused:
        raise GrantRejected(Rejection.NOT_ADMITTED) from refused
    return Visit(door, arrival)


def _door_of(grant: AoqGrant) -> Door:
    if grant.runs_tasks:
        return TASK_GRANT
    return PAGE_GRANT if grant.api_key_id is None else API_GRANT
