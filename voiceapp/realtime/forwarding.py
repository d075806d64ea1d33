"""Sessions of models that another service serves: this server passes on how to connect, and sees nothing of them.

What it knows of them their callers report: that they are connected, again and again, and that they ended. The address
of these reports goes out with the response, and only who got it can use it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, Literal, TypeVar

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from pydantic import Field

from voiceapp.accounts.caller import Caller
from voiceapp.accounts.seats import seats
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import NotFound
from voiceapp.formats import duration
from voiceapp.http.schemas import Schema
from voiceapp.realtime.admission import Admitted
from voiceapp.realtime.close_codes import LIFETIME_OVER, NORMAL, left_with
from voiceapp.realtime.lifetime.stale_sessions import close_rows
from voiceapp.realtime.models import Entrance, RealtimeSession, TransportKind
from voiceapp.realtime.records.recorder import Beginning, record_relayed
from voiceapp.realtime.records.turn_charges import forwarded_charge

Response = TypeVar("Response")

REPORT_HEADER = "X-Session-Report"
REPORT_PATHS = {Entrance.PAGE: "/voice/sessions/", Entrance.PROGRAM: "/api/v1/webrtc/sessions/"}


class Report(Schema):
    """Report of a caller on a session that this server does not see."""

    state: Literal["connected", "ended"]
    """`connected` is reported when the connection is up, and every minute from then on."""
    code: Annotated[int, Field(ge=1000, le=4999)] = NORMAL
    """Reason of the end, as a close code of a WebSocket: 1000 by itself, 1006 when the connection was lost."""


async def forward(admitted: Admitted, ask: Callable[[], Awaitable[Response]]) -> Response:
    """Return the response of the service to `ask`. Its session is not seen here: its row counts as a seat.

    Raises:
        Throttled: no seat is free any more.
        EngineError: the service did not respond as it should.
    """
    seat = admitted.seat
    await seat.take()
    try:
        begun = admitted.beginning
        async with forwarded_charge(begun.caller, begun.model, begun.session_id) as charge:
            response = await ask()
            charge.used(conversations=1)
            await record_relayed(begun)
        return response
    finally:
        seat.release()


def report_headers(begun: Beginning) -> dict[str, str]:
    """Return the address for reports on a session that was passed on; nothing for one that this server sees itself."""
    if not begun.is_passed_on:
        return {}
    path = REPORT_PATHS[Entrance(begun.entrance)]
    return {REPORT_HEADER: f"{path}{begun.session_id}.{_proof(begun.session_id, begun.caller)}"}


async def take_report(caller: Caller, name: str, report: Report) -> None:
    """Take a report of the session with this name, which is the end of its address; a report may come twice.

    Raises:
        NotFound: if the caller has no such session, or says of one that is over, or has lasted too long, that it is
            connected; they are to hang up.
        DatabaseUnavailable: if the database does not respond.
    """
    session_id, _, proof = name.partition(".")
    if not constant_time_compare(proof, _proof(session_id, caller)):
        raise NotFound("You have no session to be reported under this address.")
    if report.state == "ended":
        await ended(session_id, report.code)
        return
    lifetime_s = seats().lifetime_s(caller)
    if not await run_in_db_thread(_write_sign_of_life, session_id, lifetime_s):
        raise NotFound("This session is over.")


async def ended(session_id: str, code: int = NORMAL) -> None:
    """Note that a session which was passed on is over.

    Raises:
        DatabaseUnavailable: if the database does not respond.
    """
    await run_in_db_thread(_write_end, session_id, code)


def _proof(session_id: str, caller: Caller) -> str:
    """Known to the caller who began a session; of a guest, to their browser."""
    who = (caller.account_id, caller.key_id, caller.user_id, caller.label if caller.is_guest else "")
    proof: str = salted_hmac("voiceapp.realtime.reports", f"{session_id} {who}", algorithm="sha256").hexdigest()
    return proof[:32]


def _open_row(session_id: str) -> QuerySet[RealtimeSession]:
    return RealtimeSession.objects.filter(pk=session_id, transport=TransportKind.RELAYED, ended_at__isnull=True)


def _write_sign_of_life(session_id: str, lifetime_s: int) -> bool:
    """Note that the session is connected; returns whether it is still open. One that has lasted too long is closed."""
    now, row = timezone.now(), _open_row(session_id)
    if row.filter(started_at__gt=now - timedelta(seconds=lifetime_s)).update(reported_at=now):
        return True
    reason = f"The session has reached its longest duration of {duration(lifetime_s)}."
    close_rows(row, ended_at=now, close_code=LIFETIME_OVER, close_reason=reason)
    return False


def _write_end(session_id: str, code: int) -> None:
    close_code, close_reason = left_with(code)
    close_rows(
        _open_row(session_id),
        ended_at=timezone.now(),
        close_code=close_code,
        close_reason=close_reason,
    )
