"""Conversations that other processes of this host hold: they count against the limits of this one as well."""

from __future__ import annotations

from voiceapp.accounts.auth import Caller
from voiceapp.database.thread import run_in_db_thread
from voiceapp.realtime.models import RealtimeSession
from voiceapp.realtime.processes import is_gone, own_host, own_name


async def open_sessions(caller: Caller) -> list[str]:
    """Client addresses of the open conversations in other processes: of the caller's account, or of all guests for a
    guest.

    A conversation counts once its row is written, so two that begin at the same moment may both be let in. Those of
    other hosts do not count: which of them died with a host that is no more, nobody here can tell.

    Raises:
        DatabaseUnavailable: if the database does not respond.
    """
    return await run_in_db_thread(_open_sessions, caller)


def _open_sessions(caller: Caller) -> list[str]:
    rows = RealtimeSession.objects.filter(ended_at__isnull=True, served_by__startswith=own_host())
    rows = rows.exclude(served_by=own_name())
    rows = rows.filter(is_guest=True) if caller.is_guest else rows.filter(is_guest=False, account_id=caller.account_id)
    found = list(rows.order_by().values_list("served_by", "client_address"))
    gone = {name for name in {name for name, _ in found} if is_gone(name)}
    return [address for name, address in found if name not in gone]
