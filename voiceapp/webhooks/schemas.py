"""Requests and responses of the operations on webhook endpoints."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from voiceapp.formats import moment
from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.webhooks.events import MEANINGS, NEVER_HERE, EventKind
from voiceapp.webhooks.models import Attempt, Delivery, WebhookEndpoint
from voiceapp.webhooks.states import DeliveryStatus

_KINDS = (
    f"Kinds of events to deliver: {'; '.join(f'`{kind}`: {MEANINGS[kind]}' for kind in EventKind)}. "
    f"These are taken too, and never happen here: {', '.join(f'`{kind}`' for kind in NEVER_HERE)}."
)


def iso_time(value: Any) -> datetime:
    """The time that a text tells.

    Raises:
        ValueError: if it is not text in the form of ISO 8601; pydantic alone accepts numbers.
    """
    if isinstance(value, str):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    raise ValueError("it is not a time in the form of ISO 8601, such as 2026-03-04T05:06:07Z")


class NewEndpoint(Schema):
    """An endpoint to be made."""

    url: CleanStr
    """Address that events are posted to: an `http` or `https` URL whose host is public."""
    events: Annotated[list[CleanStr], Field(max_length=100, description=_KINDS)]
    description: Annotated[CleanStr, Field(max_length=256)] | None = None
    """For people."""


class EndpointChanges(Schema):
    """Changes of an endpoint; absent fields stay as they are."""

    url: CleanStr | None = None
    """A new address; null is as good as absent."""
    events: Annotated[list[CleanStr], Field(max_length=100, description=_KINDS)] | None = None
    description: Annotated[CleanStr, Field(max_length=256)] | None = None
    """Null or an empty text removes it."""


class SecretChange(Schema):
    """Request to rotate a secret."""

    keep_old_secret_active_for_24_hours: bool = False
    """Sign with the old secret as well for a day, so that receivers can be changed one after the other."""


class ReplayRequest(Schema):
    """Request to send events again."""

    since: Annotated[
        datetime,
        BeforeValidator(iso_time),
        Field(
            description="Everything that happened then or later and failed or was canceled; ISO 8601, in UTC where it "
            "names no zone."
        ),
    ]


class EndpointRecord(Schema):
    """A webhook endpoint."""

    id: str
    """`wep_` and a ULID."""
    description: str
    url: str
    events: list[str]
    status: Literal["ACTIVE", "DISABLED"]
    disabled_reason: str | None
    """Reason why it is disabled: `MANUAL`, `CONSECUTIVE_DELIVERY_FAILURES`, `REDIRECT_RESPONSE`,
    `SSRF_VALIDATION_FAILED`, `TLS_VALIDATION_FAILED` or `GONE`; null while it is active."""
    consecutive_fail: int
    """Events in a row that could not be delivered."""
    last_success_at: str | None
    """ISO 8601, UTC."""
    last_failure_at: str | None
    created_at: str
    updated_at: str


class EndpointReply(EndpointRecord):
    """A webhook endpoint, in the response to a request."""

    request_id: str


class CreatedEndpoint(EndpointReply):
    """A new endpoint with the secret that verifies its signatures."""

    signing_secret: str
    """`whsec_…`; shown here and never again."""


class EndpointList(Schema):
    """Every endpoint of the workspace, newest first."""

    data: list[EndpointRecord]
    request_id: str


class Deleted(Schema):
    """The endpoint is deleted, and nothing more is delivered to it."""

    request_id: str


class NewSecret(Schema):
    """The new signing secret."""

    id: str
    signing_secret: str
    """`whsec_…`; shown here and never again."""
    updated_at: str
    request_id: str


class EventData(Schema):
    """The session or task that an event is about."""

    id: str
    """Identifier of the session, the task or, in a test, the endpoint."""
    type: str
    """The kind of event."""
    workspace_id: str
    session_thread_id: str | None = None
    """For kinds of threads."""


class AttemptRecord(Schema):
    """One call of the receiver."""

    at: str
    """ISO 8601, UTC."""
    status_code: int | None
    """Status of the receiver's response; null when none came."""
    duration_ms: int
    answer_start: str
    """At most the first KiB of the response."""
    error: str
    """Reason why no response came, in a sentence; else empty."""


class DeliveryRecord(Schema):
    """The delivery of the event to the endpoint."""

    webhook_id: str
    """Identifier of the endpoint."""
    status: Literal["PENDING", "DELIVERING", "WAITING_RETRY", "SUCCEEDED", "FAILED", "CANCELED"]
    attempt_count: int
    """Number of attempts that have ended, those before a replay included."""
    delivery_at: str | None
    """Time of the last attempt."""
    finish_at: str | None
    failure_reason: str | None
    next_attempt_at: str | None = None
    """Time of the next attempt, while it waits for one."""
    is_replay: bool = False
    """It was sent again after it had ended."""
    attempts: list[AttemptRecord] | None = None
    """Every call, first to last; where a single event is looked at."""


class EventRecord(Schema):
    """An event, as it was or will be sent."""

    type: Literal["event"] = "event"
    id: str
    """`whe_` and a ULID: the header `webhook-id` of every attempt."""
    created_at: str
    data: EventData


class LoggedEvent(EventRecord):
    """An event and its delivery."""

    delivery: DeliveryRecord


class EventReply(LoggedEvent):
    """An event, in the response to a request."""

    request_id: str


class TestReply(EventRecord):
    """The event that was sent as a test, and the response of the receiver, which accepted it."""

    __test__ = False

    status_code: int
    """Status of the receiver's response."""
    duration_ms: int
    answer_start: str
    """At most the first KiB of the response."""
    request_id: str


class EventPage(Schema):
    """Some of the endpoint's log, newest first."""

    data: list[LoggedEvent]
    next_page: str | None
    """Value of `page` for the next page; null at the end."""
    request_id: str


class ReplayReply(Schema):
    """Number of events that are sent again."""

    replayed: int
    """Number of events."""
    request_id: str


class LogQuery(Schema):
    """Filter of a log."""

    model_config = ConfigDict(strict=False)

    limit: int = Field(20, ge=1, le=100)
    page: CleanStr | None = Field(None, pattern="^[0-9]{0,18}$")
    """`next_page` of the response before."""
    status: Literal["PENDING", "DELIVERING", "WAITING_RETRY", "SUCCEEDED", "FAILED", "CANCELED"] | None = None
    """Only deliveries that stand here."""
    type: CleanStr | None = None
    """Only this kind of event."""


def endpoint_record(row: WebhookEndpoint) -> dict[str, object]:
    """The fields of `EndpointRecord`."""
    return {
        "id": row.public_id,
        "description": row.description,
        "url": row.url,
        "events": row.events,
        "status": row.status,
        "disabled_reason": row.disabled_reason or None,
        "consecutive_fail": row.consecutive_fail,
        "last_success_at": _moment(row.last_success_at),
        "last_failure_at": _moment(row.last_failure_at),
        "created_at": moment(row.created_at),
        "updated_at": moment(row.updated_at),
    }


def logged_event(row: Delivery, endpoint: WebhookEndpoint, *, with_attempts: bool = False) -> dict[str, object]:
    """The fields of `LoggedEvent`, of a row of `store.log`; for attempts, `tries` should be loaded."""
    is_waiting = row.status == DeliveryStatus.WAITING_RETRY
    delivery = DeliveryRecord(
        webhook_id=endpoint.public_id,
        status=row.status,
        attempt_count=row.calls,
        delivery_at=_moment(row.delivery_at),
        finish_at=_moment(row.finish_at),
        failure_reason=row.failure_reason or None,
        next_attempt_at=_moment(row.due_at) if is_waiting else None,
        is_replay=row.is_replay,
    )
    if with_attempts:
        delivery.attempts = [_attempt(one) for one in row.tries.all()]
    event = EventRecord.model_validate_json(row.event.body)
    return {**event.model_dump(exclude_none=True), "delivery": delivery}


def _attempt(row: Attempt) -> AttemptRecord:
    return AttemptRecord(
        at=moment(row.at),
        status_code=row.status_code,
        duration_ms=row.duration_ms,
        answer_start=row.answer_start,
        error=row.error,
    )


def _moment(at: datetime | None) -> str | None:
    return None if at is None else moment(at)
