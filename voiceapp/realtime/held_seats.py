"""Seats that all server processes hold, in a table: the limits of accounts and guests count over all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from datetime import timedelta
from functools import partial
from uuid import uuid4

from django.db import Error as DatabaseFailure
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.models import Account
from voiceapp.accounts.seats import Check, seats
from voiceapp.agents.models import Agent
from voiceapp.database.thread import DatabaseUnavailable, run_in_db_thread
from voiceapp.event_loops import per_loop
from voiceapp.realtime.lifetime.process_lease import gone
from voiceapp.realtime.lifetime.processes import own_name
from voiceapp.realtime.lifetime.stale_sessions import SILENT, UNREPORTED
from voiceapp.realtime.models import HeldSeat, RealtimeSession, TransportKind

RETRY_S = 1.0
"""Pause before rows of seats that were given back are deleted again, when the database is away."""


class HeldSeats:
    """The seats of one event loop beside those of other processes. See `SharedSeats`.

    Those of a process whose lease is over do not count. A session that was passed on to another service counts by its
    row, whichever process passed it on.
    """

    def __init__(self) -> None:
        self._given_back: set[str] = set()
        """Ids of rows that are to be deleted, and count no more."""
        self._deleting: asyncio.Task[None] | None = None

    async def open_seats(self, caller: Caller) -> list[str]:
        """Return the client addresses of the seats that are taken.

        Raises:
            DatabaseUnavailable: if the database does not respond.
        """
        return await run_in_db_thread(self._open_seats, caller)

    async def hold(self, caller: Caller, address: str, check: Check, agent: str = "") -> Callable[[], None]:
        """Take a seat, an agent's with its name, if `check` allows one beside those that are taken; return what gives
        it back.

        Raises:
            Throttled: if it does not.
            DatabaseUnavailable: if the database does not respond.
        """
        seat_id = uuid4().hex
        try:
            await run_in_db_thread(self._hold, seat_id, caller, address, check, agent)
        except BaseException:  # the row may be written all the same
            self._give_back(seat_id)
            raise
        return partial(self._give_back, seat_id)

    def _give_back(self, seat_id: str) -> None:
        self._given_back.add(seat_id)
        if self._deleting is None or self._deleting.done():
            # In a context of its own: that of a request says how long it may wait for the database.
            self._deleting = asyncio.create_task(self._delete(), name="seats given back", context=Context())

    async def _delete(self) -> None:
        while over := frozenset(self._given_back):
            try:
                await run_in_db_thread(lambda ids: HeldSeat.objects.filter(pk__in=ids).delete(), over)
            except (DatabaseFailure, DatabaseUnavailable):
                await asyncio.sleep(RETRY_S)
            else:
                self._given_back -= over

    def _hold(self, seat_id: str, caller: Caller, address: str, check: Check, agent: str = "") -> None:
        holder = Agent.objects.filter(name=agent) if agent else Account.objects.filter(pk=caller.account_id)
        with transaction.atomic():
            # Of several processes, one after the other. Rows that refer to the holder may be written meanwhile.
            list(holder.select_for_update(no_key=True).values_list("pk"))
            check(self._open_seats(caller, agent))
            HeldSeat.objects.create(
                id=seat_id,
                account_id=caller.account_id,
                is_guest=caller.is_guest,
                agent=agent,
                client_address=address,
                held_by=own_name(),
            )

    def _open_seats(self, caller: Caller, agent: str = "") -> list[str]:
        whose = {"account_id": caller.account_id, "is_guest": caller.is_guest}
        held = HeldSeat.objects.filter(agent=agent, **({} if agent else whose)).exclude(
            held_by__in=gone().values("name")
        )
        addresses = [row.client_address for row in held if row.pk not in self._given_back]
        if agent:
            return addresses
        now, lifetime = timezone.now(), timedelta(seconds=seats().lifetime_s(caller))
        unreported = lifetime if caller.is_guest else min(lifetime, UNREPORTED)
        passed_on = RealtimeSession.objects.filter(
            Q(reported_at__gte=now - SILENT) | Q(reported_at__isnull=True, started_at__gt=now - unreported),
            transport=TransportKind.RELAYED,
            ended_at__isnull=True,
            started_at__gt=now - lifetime,
            **whose,
        )
        return [*addresses, *passed_on.values_list("client_address", flat=True)]


held_seats = per_loop(HeldSeats)
"""Seats of the running event loop."""
