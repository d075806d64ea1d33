"""Webhook events of a conversation: a session, one thread in it, and the responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from voiceapp.protocol.forwarded.texts import ForwardedEvent
from voiceapp.protocol.wire import events as ev
from voiceapp.webhooks.events import Event, EventKind, publish

BEGUN = (EventKind.SESSION_CREATED, EventKind.THREAD_CREATED)
Kinds = tuple[EventKind, ...]
UPDATED = (EventKind.SESSION_UPDATED,)
ANSWERED = (EventKind.THREAD_IDLED, EventKind.SESSION_IDLED)
ENDED = (EventKind.THREAD_TERMINATED, EventKind.SESSION_TERMINATED)

TOLD: Mapping[str, tuple[EventKind, ...]] = {
    ev.SessionUpdated.type: UPDATED,
    ev.ResponseCreated.type: (EventKind.SESSION_RUN_STARTED, EventKind.THREAD_RUN_STARTED),
}
"""Events that leave no row; the others are published with the row that is written for them."""


def told_by(event: ev.ServerEvent) -> Kinds:
    """Return the webhook events that are published when this event goes to the caller."""
    return TOLD.get(event.kind if isinstance(event, ForwardedEvent) else event.type, ())


def thread_of(session_id: str) -> str:
    """The identifier of the session's thread, `sthr_…`."""
    return f"sthr_{session_id.removeprefix('sess_')}"


def tell(workspace_id: int, session_ids: Iterable[str], kinds: Iterable[EventKind]) -> None:
    """Publish kinds of events of sessions. Call it inside the transaction that writes what they tell of."""
    told = list(kinds)
    publish(
        workspace_id,
        [
            Event(kind, session_id, thread_of(session_id) if kind.is_of_a_thread else "")
            for session_id in session_ids
            for kind in told
        ],
    )
