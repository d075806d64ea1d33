"""Rows of endpoints and their log: what may be done with them, for the API and the operators' site alike.

Functions here talk to the database; call them off the event loop (`voiceapp.database.thread.run_in_db_thread`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from voiceapp.accounts.models import Workspace
from voiceapp.errors import InvalidParameter, NotFound, RequestRefused
from voiceapp.leases.states import take
from voiceapp.leases.wake import wake
from voiceapp.sealing import seal
from voiceapp.webhooks.events import NEVER_HERE, QUEUE_NAME, TEST_KIND, EventKind
from voiceapp.webhooks.models import Attempt, Delivery, WebhookEndpoint
from voiceapp.webhooks.secrets import new_secret
from voiceapp.webhooks.states import (
    DELIVERY_STEPS,
    ENDPOINT_STEPS,
    WAITING,
    DeliveryStatus,
    DisabledReason,
    EndpointStatus,
)

MAX_ENDPOINTS = 20
OVERLAP = timedelta(hours=24)
"""Time during which an old secret may sign beside the new one."""


class Conflict(RequestRefused):
    """The request does not fit the state of the endpoint."""

    code = "Conflict"
    http_status = 409


def check_kinds(kinds: Iterable[str]) -> list[str]:
    """The kinds, each once.

    Raises:
        InvalidParameter: if the list is empty, or one of the kinds does not exist.
    """
    wanted = list(dict.fromkeys(kinds))
    unknown = [kind for kind in wanted if kind not in {*EventKind, *NEVER_HERE}]
    if unknown:
        raise InvalidParameter(
            f"The kind of event {unknown[0][:100]!r} does not exist. Choose from: {', '.join(EventKind)}.",
            param="events",
        )
    if not wanted:
        raise InvalidParameter(f"Name at least one kind of event: {', '.join(EventKind)}.", param="events")
    return wanted


def create(workspace_id: int, *, url: str, events: Sequence[str], description: str = "") -> tuple[WebhookEndpoint, str]:
    """A new endpoint, and its signing secret, which is shown this once.

    Raises:
        InvalidParameter: if a kind of event does not exist.
        Conflict: if the workspace has as many as it may.
    """
    kinds = check_kinds(events)
    secret = new_secret()
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=workspace_id)  # two at once count one after the other
        if listed(workspace_id).count() >= MAX_ENDPOINTS:
            raise Conflict(f"A workspace may have {MAX_ENDPOINTS} webhook endpoints; delete one first.")
        endpoint = WebhookEndpoint.objects.create(
            workspace_id=workspace_id, url=url, description=description, events=kinds, secret_sealed=seal(secret)
        )
    return endpoint, secret


def listed(workspace_id: int) -> QuerySet[WebhookEndpoint]:
    """The endpoints of a workspace, newest first, without those that were deleted."""
    return WebhookEndpoint.objects.filter(workspace_id=workspace_id, deleted_at__isnull=True)


def find(workspace_id: int, endpoint_id: str, *, or_deleted: bool = False) -> WebhookEndpoint:
    """An endpoint of a workspace.

    Raises:
        NotFound: if the workspace does not have it.
    """
    rows = WebhookEndpoint.objects.filter(workspace_id=workspace_id) if or_deleted else listed(workspace_id)
    endpoint: WebhookEndpoint | None = rows.select_related("workspace").filter(public_id=endpoint_id).first()
    if endpoint is None:
        raise NotFound("The webhook endpoint does not exist.")
    return endpoint


def update(endpoint: WebhookEndpoint, changes: Mapping[str, Any]) -> WebhookEndpoint:
    """Change `url`, `description` or `events`, as many of them as there are.

    Raises:
        InvalidParameter: if a kind of event does not exist.
        NotFound: if it was deleted meanwhile.
    """
    known = {name: changes[name] for name in ("url", "description", "events") if name in changes}
    if "events" in known:
        known["events"] = check_kinds(known["events"])
    return _change(endpoint, **known) if known else endpoint


def enable(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    """Deliver again what happens from now on.

    Raises:
        NotFound: if it was deleted meanwhile.
    """
    if endpoint.is_called:
        return endpoint
    # Failures of before do not count twice: the next one has to fail for an hour as well.
    return _take(endpoint, "enable", disabled_reason="", first_fail_at=None)


def disable(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    """Deliver nothing more, and forget what waits.

    Raises:
        NotFound: if it was deleted meanwhile.
    """
    with transaction.atomic():
        if endpoint.status == EndpointStatus.ACTIVE:
            endpoint = _take(endpoint, "disable", disabled_reason=DisabledReason.MANUAL)
        cancel_waiting(endpoint, "The endpoint was disabled.")
    return endpoint


def delete(endpoint: WebhookEndpoint) -> None:
    """Deliver nothing more; the log stays as long as the events do.

    Raises:
        NotFound: if it was deleted before.
    """
    with transaction.atomic():
        if not _undeleted(endpoint).update(updated_at=timezone.now(), deleted_at=timezone.now()):
            raise NotFound("The webhook endpoint does not exist.")
        cancel_waiting(endpoint, "The endpoint was deleted.")


def cancel_waiting(endpoint: WebhookEndpoint, reason: str) -> int:
    """End the deliveries that wait; returns how many."""
    rows = Delivery.objects.filter(endpoint=endpoint, status__in=WAITING)
    return take(rows, DELIVERY_STEPS, "cancel", finish_at=Now(), failure_reason=reason, version=F("version") + 1)


def is_delivering(endpoint: WebhookEndpoint) -> bool:
    """Return whether a delivery to the endpoint is under way, or about to begin."""
    return bool(Delivery.objects.filter(endpoint=endpoint, status=DeliveryStatus.DELIVERING).exists())


def reset_secret(endpoint: WebhookEndpoint, *, keep_old: bool = False) -> tuple[WebhookEndpoint, str]:
    """A new signing secret, shown this once; the old one may go on signing beside it for a day.

    Raises:
        NotFound: if it was deleted meanwhile.
    """
    secret = new_secret()
    return _change(
        endpoint,
        secret_sealed=seal(secret),
        old_secret_sealed=F("secret_sealed") if keep_old else "",
        old_secret_until=timezone.now() + OVERLAP if keep_old else None,
    ), secret


def log(
    endpoint: WebhookEndpoint,
    *,
    status: str | None = None,
    kind: str | None = None,
    before: int | None = None,
    limit: int = 20,
) -> list[Delivery]:
    """Deliveries of the last days, newest first; `before` is the row that the page before ended with."""
    rows = _remembered(endpoint)
    if status:
        rows = rows.filter(status=status)
    if kind:
        rows = rows.filter(event__kind=kind)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return list(rows.order_by("-pk")[:limit])


def logged(endpoint: WebhookEndpoint, event_id: str) -> Delivery:
    """One event's delivery, its attempts included.

    Raises:
        NotFound: if the event was never sent to the endpoint, or is past its time.
    """
    found: Delivery | None = _remembered(endpoint).prefetch_related("tries").filter(event__public_id=event_id).first()
    if found is None:
        raise NotFound("The log of this endpoint does not have this event.")
    return found


def replay(endpoint: WebhookEndpoint, event_id: str) -> Delivery:
    """Send an event once more, under its old identifier.

    Raises:
        NotFound: if the log does not have the event.
        Conflict: if it is still on its way, or the endpoint is not active.
    """
    _require_called(endpoint)
    delivery = logged(endpoint, event_id)
    if not _send_again(Delivery.objects.filter(pk=delivery.pk)):
        raise Conflict("This event is still on its way.")
    return logged(endpoint, event_id)


def replay_failed(endpoint: WebhookEndpoint, since: datetime) -> int:
    """Send everything once more that happened since then and was not delivered; how much that is.

    That is what failed, and what was canceled: when the endpoint was disabled, or as too much waited for it.

    Raises:
        Conflict: if the endpoint is not active.
    """
    _require_called(endpoint)
    undelivered = (DeliveryStatus.FAILED, DeliveryStatus.CANCELED)
    rows = Delivery.objects.filter(endpoint=endpoint, status__in=undelivered, event__created_at__gte=since)
    return _send_again(rows.exclude(event__kind=TEST_KIND))


def resend(deliveries: QuerySet[Delivery]) -> int:
    """Send once more what is over and whose endpoint is active; returns how many."""
    return _send_again(deliveries.filter(endpoint__status=EndpointStatus.ACTIVE, endpoint__deleted_at__isnull=True))


def with_calls(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return the rows with `calls`, the number of attempts that the log holds. `attempts` begins anew with each
    replay."""
    counted = Attempt.objects.filter(delivery=OuterRef("pk")).order_by().values("delivery").annotate(calls=Count("pk"))
    return deliveries.annotate(calls=Coalesce(Subquery(counted.values("calls")), 0))


def _send_again(deliveries: QuerySet[Delivery]) -> int:
    with transaction.atomic():
        # By key: SQLite and PostgreSQL agree on no other way to update what a join selects.
        changed = take(
            Delivery.objects.filter(pk__in=deliveries.values("pk")),
            DELIVERY_STEPS,
            "send_again",
            due_at=Now(),
            attempts=0,
            version=F("version") + 1,
            finish_at=None,
            failure_reason="",
            is_replay=True,
        )
        if changed:
            wake(QUEUE_NAME)
    return changed


def _require_called(endpoint: WebhookEndpoint) -> None:
    if not endpoint.is_called:
        raise Conflict("The endpoint is disabled or deleted. Enable it, then send the event again.")


def _remembered(endpoint: WebhookEndpoint) -> QuerySet[Delivery]:
    since = timezone.now() - timedelta(days=settings.WEBHOOK_RETENTION_DAYS)
    rows = Delivery.objects.filter(endpoint=endpoint, event__created_at__gte=since)
    return with_calls(rows.select_related("event"))


def _change(endpoint: WebhookEndpoint, **changes: Any) -> WebhookEndpoint:
    _undeleted(endpoint).update(updated_at=timezone.now(), **changes)
    return _fresh(endpoint)


def _take(endpoint: WebhookEndpoint, step: str, **changes: Any) -> WebhookEndpoint:
    take(_undeleted(endpoint), ENDPOINT_STEPS, step, updated_at=timezone.now(), **changes)
    return _fresh(endpoint)


def _undeleted(endpoint: WebhookEndpoint) -> QuerySet[WebhookEndpoint]:
    return WebhookEndpoint.objects.filter(pk=endpoint.pk, deleted_at__isnull=True)


def _fresh(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    row: WebhookEndpoint | None = _undeleted(endpoint).select_related("workspace").first()
    if row is None:
        raise NotFound("The webhook endpoint does not exist.")
    return row
