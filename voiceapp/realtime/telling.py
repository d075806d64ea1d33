"""What of a conversation is told to webhook receivers: a session, and one thread in it, the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from voiceapp.protocol import events as ev
from voiceapp.webhooks.events import Happening, Kind, publish

BEGUN = (Kind.SESSION_CREATED, Kind.THREAD_CREATED)
UPDATED = (Kind.SESSION_UPDATED,)
ANSWERED = (Kind.THREAD_IDLED, Kind.SESSION_IDLED)
ENDED = (Kind.THREAD_TERMINATED, Kind.SESSION_TERMINATED)

TOLD: Mapping[type[ev.ServerEvent], tuple[Kind, ...]] = {
    ev.SessionUpdated: UPDATED,
    ev.ResponseCreated: (Kind.SESSION_RUN_STARTED, Kind.THREAD_RUN_STARTED),
}
"""What leaves no row when it happens; the rest is told with the row that is written for it."""


def thread_of(session_id: str) -> str:
    """The identifier of the session's thread, `sthr_…`."""
    return f"sthr_{session_id.removeprefix('sess_')}"


def tell(workspace_id: int, session_ids: Iterable[str], kinds: Iterable[Kind]) -> None:
    """Publish kinds of events of sessions. Call it inside the transaction that writes what they tell of."""
    told = list(kinds)
    publish(
        workspace_id,
        [
            Happening(kind, session_id, thread_of(session_id) if kind.is_of_a_thread else "")
            for session_id in session_ids
            for kind in told
        ],
    )
