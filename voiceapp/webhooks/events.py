"""Kinds of events, and how one is published: a row for the event, and a delivery for each endpoint that subscribed.

Which events a conversation has is decided in `voiceapp.realtime.records.webhook_events`.
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

from voiceapp.formats import moment
from voiceapp.leases.wake import wake
from voiceapp.protocol.states import step
from voiceapp.webhooks.backlog import backlog
from voiceapp.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent, event_identifier
from voiceapp.webhooks.states import DELIVERY_STEPS, DeliveryStatus, EndpointStatus

QUEUE_NAME = "deliveries"
"""Name of the line that deliveries are made by."""
TOO_MANY = "Too many events were waiting for this endpoint already."
"""Reason of a delivery that was canceled because too many waited."""
TEST_KIND = "webhook.test"
"""The kind of a test delivery; endpoints cannot subscribe to it."""


class EventKind(StrEnum):
    """Kinds of events that have a source here. A conversation is a session with one thread, its replies."""

    SESSION_CREATED = "session.created"
    SESSION_UPDATED = "session.updated"
    SESSION_RUN_STARTED = "session.status_run_started"
    SESSION_IDLED = "session.status_idled"
    SESSION_TERMINATED = "session.status_terminated"
    SESSION_ARCHIVED = "session.archived"
    SESSION_DELETED = "session.deleted"
    THREAD_CREATED = "session.thread_created"
    THREAD_RUN_STARTED = "session.thread_run_started"
    THREAD_IDLED = "session.thread_idled"
    THREAD_TERMINATED = "session.thread_terminated"
    TASK_FINISHED = "task.finished"
    """This server's own kind."""

    @property
    def is_of_a_thread(self) -> bool:
        return self.startswith("session.thread_")


_NEVER_HERE = {
    "agent": "created updated archived",
    "deployment": "created updated archived paused unpaused",
    "deployment_run": "started failed succeeded",
    "environment": "created updated archived deleted",
    "vault": "created archived deleted",
    "vault_credential": "created archived deleted",
}
NEVER_HERE = tuple(f"{family}.{what}" for family, kinds in _NEVER_HERE.items() for what in kinds.split())
"""Kinds of the vendor's client library about things that do not exist here. Endpoints may subscribe to them, so that
existing programs can register; no such event happens."""

MEANINGS = {
    EventKind.SESSION_CREATED: "a conversation began",
    EventKind.SESSION_UPDATED: "a program changed the settings of a conversation",
    EventKind.SESSION_RUN_STARTED: "the assistant began to reply",
    EventKind.SESSION_IDLED: "the reply ended, and the conversation waits for the user",
    EventKind.SESSION_TERMINATED: "a conversation ended",
    EventKind.SESSION_ARCHIVED: "the words of a conversation were deleted after their time",
    EventKind.SESSION_DELETED: "the record of a conversation was deleted",
    EventKind.THREAD_CREATED: "a conversation began (same time as session.created)",
    EventKind.THREAD_RUN_STARTED: "the assistant began to reply (same time as session.status_run_started)",
    EventKind.THREAD_IDLED: "the reply ended (same time as session.status_idled)",
    EventKind.THREAD_TERMINATED: "a conversation ended (same time as session.status_terminated)",
    EventKind.TASK_FINISHED: "a task succeeded, failed or was canceled",
}
"""Explanation of each kind, for people."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell."""

    kind: EventKind
    data_id: str
    """Identifier of the session or task."""
    thread_id: str = ""
    """Identifier of the session's thread, for kinds of threads."""


def publish(workspace_id: int, told: Sequence[Event]) -> None:
    """Write events for the endpoints that subscribed to them; without any, nothing.

    Call it inside the transaction that writes what happened, so that either both are there or neither. Talks to the
    database: one look-up, and two or three statements more when an endpoint subscribed. An endpoint for which
    `WEBHOOK_MAX_WAITING` deliveries wait has further ones in its log only, canceled.
    """
    subscribed = WebhookEndpoint.objects.filter(
        workspace_id=workspace_id, status=EndpointStatus.ACTIVE, deleted_at__isnull=True
    ).values_list("pk", "events", "workspace__public_id")
    receivers = list(subscribed)
    wanted = [(one, [pk for pk, kinds, _ in receivers if one.kind in kinds]) for one in told]
    wanted = [(one, pks) for one, pks in wanted if pks]
    if not wanted:
        return
    with transaction.atomic():
        workspace = receivers[0][2]
        now = timezone.now()
        identifiers = sorted(event_identifier() for _ in wanted)  # these keep the order of events of one time
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
        wake(QUEUE_NAME)


def envelope(event_id: str, created_at: str, data_id: str, kind: str, workspace: str, thread_id: str = "") -> str:
    """A body as it is sent: what happened to which thing, and where to look for more; nothing that was said."""
    data = {"id": data_id, "type": kind, "workspace_id": workspace}
    if thread_id:
        data["session_thread_id"] = thread_id
    return json.dumps({"type": "event", "id": event_id, "created_at": created_at, "data": data}, separators=(",", ":"))


def sample_envelope(endpoint: WebhookEndpoint, kind: str = TEST_KIND) -> tuple[str, str]:
    """Identifier and body of a test delivery: an event of this kind, about something that does not exist."""
    data_id, thread_id = endpoint.public_id, ""
    if kind != TEST_KIND:
        data_id = "task_sample" if kind == EventKind.TASK_FINISHED else "sess_sample"
        thread_id = "sthr_sample" if EventKind(kind).is_of_a_thread else ""
    event_id = event_identifier()
    workspace = endpoint.workspace.public_id
    return event_id, envelope(event_id, moment(timezone.now()), data_id, kind, workspace, thread_id)


def _delivery(event: WebhookEvent, endpoint_id: int, is_admitted: bool) -> Delivery:
    delivery = Delivery(event=event, endpoint_id=endpoint_id, due_at=Now())
    if not is_admitted:
        delivery.status = step(DELIVERY_STEPS, DeliveryStatus(delivery.status), "cancel")
        delivery.finish_at, delivery.failure_reason = Now(), TOO_MANY
    return delivery


def _event(event_id: str, now: datetime, workspace_id: int, workspace: str, one: Event) -> WebhookEvent:
    body = envelope(event_id, moment(now), one.data_id, one.kind, workspace, one.thread_id)
    return WebhookEvent(public_id=event_id, workspace_id=workspace_id, kind=one.kind, body=body, created_at=now)
