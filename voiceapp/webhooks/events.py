"""What can be told, and the writing down of it: an event, and a delivery for each endpoint that subscribed.

Which happenings of a conversation are which kind is `voiceapp.realtime.records`' decision.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from voiceapp.accounts.models import Workspace
from voiceapp.formats import moment
from voiceapp.leases.wake import wake
from voiceapp.webhooks.backlog import backlog
from voiceapp.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent, event_identifier

LINE = "deliveries"
"""Name of the line that deliveries are made by."""
TOO_MANY = "Too many events were waiting for this endpoint already."
"""Why a delivery was canceled at once."""
TEST_KIND = "webhook.test"
"""What a test delivery says it is; nobody can subscribe to it."""


class Kind(StrEnum):
    """Kinds of events that have a source here. A conversation is a session with one thread, its answers."""

    SESSION_CREATED = "session.created"
    """A conversation began."""
    SESSION_UPDATED = "session.updated"
    """Its caller changed its settings."""
    SESSION_RUN_STARTED = "session.status_run_started"
    """It began to work on an answer."""
    SESSION_IDLED = "session.status_idled"
    """The answer is over; it is the caller's turn."""
    SESSION_TERMINATED = "session.status_terminated"
    """The conversation ended."""
    SESSION_ARCHIVED = "session.archived"
    """Its words were deleted, as their time was over."""
    SESSION_DELETED = "session.deleted"
    """Its record was deleted."""
    THREAD_CREATED = "session.thread_created"
    THREAD_RUN_STARTED = "session.thread_run_started"
    THREAD_IDLED = "session.thread_idled"
    THREAD_TERMINATED = "session.thread_terminated"
    TASK_FINISHED = "task.finished"
    """A task reached its final status. This server's own kind."""

    @property
    def is_of_a_thread(self) -> bool:
        return self.startswith("session.thread_")


@dataclass(frozen=True, slots=True)
class Happening:
    """Something to tell."""

    kind: Kind
    data_id: str
    """Of the session or task that it happened to."""
    thread_id: str = ""
    """Of the session's thread, for kinds of threads."""


def publish(workspace_id: int, happenings: Sequence[Happening]) -> None:
    """Write down what happened for those who subscribed to it; for nobody, nothing.

    Call it inside the transaction that writes what happened, so that either both are there or neither. Talks to the
    database: one look-up, and two or three statements more when somebody subscribed. An endpoint for which
    `WEBHOOK_MAX_WAITING` deliveries wait has further ones in its log only, canceled.
    """
    subscribed = WebhookEndpoint.objects.filter(
        workspace_id=workspace_id, status=WebhookEndpoint.Status.ACTIVE, deleted_at__isnull=True
    ).values_list("pk", "events", "workspace__public_id")
    receivers = list(subscribed)
    wanted = [(one, [pk for pk, kinds, _ in receivers if one.kind in kinds]) for one in happenings]
    wanted = [(one, pks) for one, pks in wanted if pks]
    if not wanted:
        return
    with transaction.atomic():
        workspace = receivers[0][2]
        now = timezone.now()
        identifiers = sorted(event_identifier() for _ in wanted)  # what has one time is told apart by these
        events = WebhookEvent.objects.bulk_create(
            [
                _event(event_id, now, workspace_id, workspace, one)
                for event_id, (one, _) in zip(identifiers, wanted, strict=True)
            ],
            batch_size=500,
        )
        pairs = [(event, pk) for event, (_, pks) in zip(events, wanted, strict=True) for pk in pks]
        admitted = backlog.admit([pk for _, pk in pairs])
        Delivery.objects.bulk_create(
            [_delivery(event, pk, is_admitted) for (event, pk), is_admitted in zip(pairs, admitted, strict=True)],
            batch_size=500,
        )
        wake(LINE)


def envelope(event_id: str, created_at: str, data_id: str, kind: str, workspace: str, thread_id: str = "") -> str:
    """A body as it is sent: what happened to which thing, and where to look for more; nothing that was said."""
    data = {"id": data_id, "type": kind, "workspace_id": workspace}
    if thread_id:
        data["session_thread_id"] = thread_id
    return json.dumps({"type": "event", "id": event_id, "created_at": created_at, "data": data}, separators=(",", ":"))


def trial_envelope(endpoint: WebhookEndpoint, workspace: Workspace) -> tuple[str, str]:
    """Identifier and body of a test delivery."""
    event_id = event_identifier()
    now = moment(timezone.now())
    return event_id, envelope(event_id, now, endpoint.public_id, TEST_KIND, workspace.public_id)


def _delivery(event: WebhookEvent, endpoint_id: int, is_admitted: bool) -> Delivery:
    delivery = Delivery(event=event, endpoint_id=endpoint_id, due_at=Now())
    if not is_admitted:
        delivery.status, delivery.finish_at, delivery.failure_reason = Delivery.Status.CANCELED, Now(), TOO_MANY
    return delivery


def _event(event_id: str, now: datetime, workspace_id: int, workspace: str, one: Happening) -> WebhookEvent:
    body = envelope(event_id, moment(now), one.data_id, one.kind, workspace, one.thread_id)
    return WebhookEvent(public_id=event_id, workspace_id=workspace_id, kind=one.kind, body=body, created_at=now)
