"""Sessions that outlive their connection, from the first connection to the last.

Such a session has a task of its own. What accepts a connection carries the session over it for as long as it lasts.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass
from functools import partial

from django.conf import settings
from django.http import HttpRequest

from voiceapp.accounts.addresses import address_of_request, neighbourhood
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.rates import rates
from voiceapp.drain import drain_event
from voiceapp.event_loops import per_loop
from voiceapp.realtime.admission import Admitted, admit
from voiceapp.realtime.close_codes import ABANDONED
from voiceapp.realtime.doors import Door
from voiceapp.realtime.lifetime.resumption import Resumption, read_resumption
from voiceapp.realtime.transports.interface import Transport
from voiceapp.realtime.transports.resumable import ResumableTransport

TOKEN_BYTES = 24
TOKEN = re.compile(r"[\w-]{24,64}", re.ASCII)
"""Form of tokens that callers choose, at random: others who use the same key might guess a shorter one."""


class ResumableSession:
    """A session that goes on over the next connection when one is lost."""

    def __init__(self, admitted: Admitted, token: str) -> None:
        self.admitted = admitted
        name = admitted.call.session_id
        self._transport = ResumableTransport(name, token, settings.RESUME_GRACE_S, self.end)
        # In a context of its own: that of a request names a thread for rows which ends with the request.
        self._task = asyncio.create_task(self._run(), name=f"session {name}", context=Context())
        self._task.add_done_callback(lambda _: self._over())

    def on_end(self, forget: Callable[[], None]) -> None:
        """Call this when the session is over."""
        self._task.add_done_callback(lambda _: forget())

    async def carry(self, transport: Transport, resumption: Resumption | None = None) -> None:
        """See `ResumableTransport.carry`."""
        await self._transport.carry(transport, resumption)

    async def _run(self) -> None:
        with drain_event().work():
            await self.admitted.run(self._transport)

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _over(self) -> None:
        """Also of a task that was cancelled before it began, and ran no `finally`."""
        self.admitted.seat.release()
        self._transport.release()

    def is_open_to(self, caller: Caller, door: Door, model: str, last: int) -> bool:
        """Return whether this caller may come back to it through this door, and can be told what they missed."""
        begun, card = self.admitted.beginning, self.admitted.card
        is_same = begun.model == model and _name(begun.caller) == _name(caller)
        heard_hz = door.decoded_rate_hz or card.input_rate_of(model)
        fits = door.transport in card.transports and heard_hz == self.admitted.call.input_rate_hz
        return is_same and fits and self._transport.can_resume(last)


class ResumableSessions:
    """The sessions of this process that can be resumed, by their tokens. Belongs to one event loop."""

    def __init__(self) -> None:
        self._sessions: dict[str, ResumableSession] = {}

    def begin(self, admitted: Admitted, wanted: str = "") -> ResumableSession:
        """Run a session, which is known by its token until it is over: the one that its caller wants, by which a proxy
        leads them to the same process each time, if it can be one and is free."""
        is_free = TOKEN.fullmatch(wanted) and wanted not in self._sessions
        token = wanted if is_free else secrets.token_urlsafe(TOKEN_BYTES)
        session = self._sessions[token] = ResumableSession(admitted, token)
        session.on_end(partial(self._forget, token))
        return session

    async def close(self) -> None:
        """End them all now."""
        await asyncio.gather(*(session.end() for session in tuple(self._sessions.values())))

    def _forget(self, token: str) -> None:
        del self._sessions[token]

    def find(self, resumption: Resumption | None, caller: Caller, door: Door, model: str) -> ResumableSession | None:
        """The session that a caller comes back to; None when there is none any more, or it is not theirs."""
        if resumption is None or drain_event().begun:
            return None
        session = self._sessions.get(resumption.token)
        return session if session is not None and session.is_open_to(caller, door, model, resumption.last) else None


resumable_sessions = per_loop(ResumableSessions)
"""Sessions of the running event loop."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A client that may connect: to begin a session, or to come back to one."""

    admitted: Admitted
    """The session, also when it began before."""
    resumption: Resumption | None = None
    session: ResumableSession | None = None
    """The session that they come back to."""

    async def converse(self, transport: Transport) -> None:
        """Talk over this connection for as long as it lasts; a session that cannot be resumed ends with it."""
        if self.session is not None:
            await self.session.carry(transport, self.resumption)
        elif self.resumption is None or settings.RESUME_GRACE_S <= 0:
            await self.admitted.run(transport)
        else:
            await resumable_sessions().begin(self.admitted, self.resumption.token).carry(transport)

    async def give_up(self) -> None:
        """Give up a client that never connected. A session that began before goes on waiting."""
        if self.session is None:
            await self.admitted.recorder.finish(ABANDONED, "The connection was not established.")


async def arrive(
    resumption: Resumption | None, caller: Caller, door: Door, model: str, admit: Callable[[], Awaitable[Admitted]]
) -> Arrival:
    """Let a caller come back to their session, or else `admit` a new one. Raises what `admit` raises."""
    if (session := resumable_sessions().find(resumption, caller, door, model)) is not None:
        return Arrival(session.admitted, resumption, session)
    return Arrival(await admit(), resumption)


async def arrive_by_request(
    request: HttpRequest, caller: Caller, door: Door, model: str, *, session_key: str = ""
) -> Arrival:
    """As `arrive`, of a caller who sends an HTTP request; `session_key` is that of the login by which the caller is
    known. Raises what `admit` raises, and Throttled for guests of one address who ask too often."""
    address = address_of_request(request)
    if caller.is_guest:
        await rates().admit(neighbourhood(address), "guests")
    return await arrive(
        read_resumption(request.GET.dict()),
        caller,
        door,
        model,
        lambda: admit(
            caller,
            door,
            model,
            address,
            time_zone=request.GET.get("time_zone", ""),
            languages=request.headers.get("Accept-Language", ""),
            session_key=session_key,
        ),
    )


def _name(caller: Caller) -> tuple[int, int | None, int | None, str]:
    return caller.account_id, caller.key_id, caller.user_id, caller.label
