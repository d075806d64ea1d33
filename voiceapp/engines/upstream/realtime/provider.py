"""A realtime model of another service, in its dialect and with our key.

Two ways lead to it. This server holds a WebSocket to the service for each session (`session`), and its own transports
for the caller. Or media flow between the caller and the service (`media`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from voiceapp.engines.interfaces import CLAIM_S, Call, Voice
from voiceapp.engines.upstream.realtime.connection import NATIVE, Dialler, ServedModel, ServiceConnection, ServiceLost
from voiceapp.engines.upstream.realtime.media import CALL_GONE, MediaRelay
from voiceapp.engines.upstream.realtime.session import UpstreamSession
from voiceapp.errors import EngineRefused, EngineTimeout, EngineUnavailable, NotFound
from voiceapp.protocol.forwarded.reading import written

logger = logging.getLogger(__name__)


class JoinedCall:
    """A connection that has joined a call of the service."""

    def __init__(self, connection: ServiceConnection) -> None:
        self._connection = connection
        self.aclose = connection.close

    async def hear(self) -> str:
        """The next event.

        Raises:
            ConnectionError: the connection is lost.
        """
        try:
            message = await self._connection.receive()
        except ServiceLost as lost:
            raise ConnectionError from lost
        return message if isinstance(message, str) else written(message)

    async def say(self, text: str) -> None:
        """Pass an event on.

        Raises:
            ConnectionError: the connection is lost.
        """
        try:
            await self._connection.send(text)
        except ServiceLost as lost:
            raise ConnectionError from lost


class UpstreamRealtime(MediaRelay):
    """A `RealtimeModel`. One per process and model."""

    voices: Sequence[Voice] = ()
    default_voice = ""

    def __init__(self, *, model: str, session_limit_s: float = 0.0, **about: Any) -> None:
        """`session_limit_s` is the service's longest session, 0 without a limit; for the rest see `ServedModel`."""
        served = ServedModel(name=model, **about)
        super().__init__(served)
        self._session_limit_s = session_limit_s
        self._dialler = Dialler(served)
        self._prepared: dict[str, ServiceConnection] = {}
        """Connections that were dialled before their session began, by its id."""
        self._closing: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Nothing is needed on this server; whether the service can serve shows when it is asked."""

    async def prepare(self, call: Call) -> None:
        """See `Provider`: dial, so that a refusal of the service's is ours."""
        self._prepared[call.session_id] = await self._dialler.dial(call)
        asyncio.get_running_loop().call_later(CLAIM_S, self._give_up, call.session_id)

    def abandon(self, call: Call) -> None:
        """See `Provider`: hang up."""
        self._give_up(call.session_id)

    async def join_call(self, call_id: str) -> JoinedCall:
        """A connection that has joined a call of the service, in OpenAI's dialect.

        Raises:
            NotFound: the call does not exist.
            EngineError: the service does not let us join it.
        """
        try:
            return JoinedCall(await self._dialler.join(call_id))
        except EngineRefused:
            raise NotFound(CALL_GONE) from None

    def open(self, call: Call, tasks: asyncio.TaskGroup, others: Sequence[UpstreamRealtime] = ()) -> UpstreamSession:
        """See `RealtimeModel`; `others` are services that the conversation may go on with. Services of OpenAI's family
        are always sent settings, if only to ask for the caller's words, and send a reply faster than it is heard."""
        services = (self, *others)
        are_native = all(service._model.dialect == NATIVE for service in services)
        if not are_native:
            call = replace(call, opening={"input_audio_transcription": {}, **call.opening})
        limits_s = [service._session_limit_s for service in services if service._session_limit_s]
        return UpstreamSession(
            call, lambda: self._dial(call, others), session_limit_s=min(limits_s, default=0.0), knows_heard=are_native
        )

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        for session_id in tuple(self._prepared):
            self._give_up(session_id)
        await asyncio.gather(*self._closing)
        await self._dialler.close()
        await self._server.close()

    async def _dial(self, call: Call, others: Sequence[UpstreamRealtime]) -> ServiceConnection:
        prepared = self._prepared.pop(call.session_id, None)
        if prepared or not others:
            return prepared or await self._dialler.dial(call)
        try:
            return await self._dialler.dial(call)
        except (EngineUnavailable, EngineTimeout) as error:
            logger.warning("session %s: another service is asked: %s", call.session_id, error.for_operators)
            return await others[0]._dial(call, others[1:])

    def _give_up(self, session_id: str) -> None:
        """Close the connection of a session that did not begin."""
        connection = self._prepared.pop(session_id, None)
        if connection is not None:
            task = asyncio.create_task(connection.close(), name=f"session {session_id}: was not begun")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
