"""Registered receivers, events, and their deliveries.

An event and its deliveries are written in the transaction that changes what the event is about (an outbox): what was
rolled back is never delivered, and what was committed is delivered even when the process dies at once.
"""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone

from voiceapp.accounts.models import Workspace
from voiceapp.formats import ulid
from voiceapp.leases.rows import Leased
from voiceapp.webhooks.secrets import decrypt_both
from voiceapp.webhooks.states import DELIVERY_STEPS, REASONS, DeliveryStatus, EndpointStatus


def endpoint_identifier() -> str:
    return f"wep_{ulid()}"


def event_identifier() -> str:
    return f"whe_{ulid()}"


class WebhookEndpoint(models.Model):
    """The address of a receiver, and the kinds of events that it subscribed to."""

    public_id = models.CharField("identifier", max_length=30, unique=True, default=endpoint_identifier, editable=False)
    """Identifier on the wire: `wep_` and a ULID."""
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="webhook_endpoints")
    url = models.CharField("address", max_length=2048, help_text="Where events are posted to: http or https.")
    description = models.CharField(max_length=256, blank=True, default="")
    events = models.JSONField(default=list)
    """Kinds of events (`voiceapp.webhooks.events.EventKind`)."""
    status = models.CharField(max_length=8, choices=EndpointStatus.choices, default=EndpointStatus.ACTIVE)
    disabled_reason = models.CharField(max_length=40, choices=REASONS, blank=True, default="")
    secret_sealed = models.TextField(editable=False)
    old_secret_sealed = models.TextField(blank=True, default="", editable=False)
    """The secret before the last change, which signs as well until `old_secret_until`."""
    old_secret_until = models.DateTimeField(null=True, blank=True, editable=False)
    consecutive_fail = models.PositiveIntegerField("failed in a row", default=0, editable=False)
    """Events in a row whose delivery finally failed."""
    first_fail_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Time of the first of those failures."""
    last_success_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_failure_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)
    """Time of the last change of its settings; deliveries do not count."""
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Deleted endpoints get no events and cannot come back; the row stays as long as its log does."""

    class Meta:
        verbose_name = "webhook endpoint"
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(status="ACTIVE", disabled_reason="") | Q(status="DISABLED") & ~Q(disabled_reason=""),
                name="endpoint_disabled_for_a_reason",
            ),
        )

    def __str__(self) -> str:
        return f"{self.public_id}"

    @property
    def is_called(self) -> bool:
        """True if events are delivered to the endpoint."""
        return self.status == EndpointStatus.ACTIVE and self.deleted_at is None

    def secrets(self, now: datetime) -> list[str]:
        """Return the secrets that sign a body now, the newest first; two for a day after a rotation that asked for it.

        Raises:
            SecretLost: if the key that the newest was sealed with is not known any more.
        """
        is_overlapping = self.old_secret_until is not None and self.old_secret_until > now
        return decrypt_both(self.secret_sealed, self.old_secret_sealed if is_overlapping else "")


class WebhookEvent(models.Model):
    """An event that at least one endpoint subscribed to."""

    public_id = models.CharField("identifier", max_length=30, unique=True, default=event_identifier, editable=False)
    """`whe_` and a ULID; the same in every attempt, for receivers to tell repetitions by."""
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=40)
    body = models.TextField()
    """The JSON exactly as it is signed and sent."""
    created_at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)

    class Meta:
        verbose_name = "webhook event"
        ordering = ("-created_at", "-pk")

    def __str__(self) -> str:
        return f"{self.kind} {self.public_id}"


class Delivery(Leased):
    """One event on its way to one endpoint."""

    STEPS = DELIVERY_STEPS

    event = models.ForeignKey(WebhookEvent, on_delete=models.CASCADE, related_name="deliveries")
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    status = models.CharField(max_length=13, choices=DeliveryStatus.choices, default=DeliveryStatus.PENDING)
    delivery_at = models.DateTimeField("last tried", null=True, blank=True)
    finish_at = models.DateTimeField("finished", null=True, blank=True)
    failure_reason = models.CharField(max_length=300, blank=True, default="")
    """One sentence on what went wrong in the last attempt; empty when nothing did."""
    is_replay = models.BooleanField("replay", default=False)
    """It was sent again after it was over."""

    class Meta:
        verbose_name = "delivery"
        verbose_name_plural = "deliveries"
        ordering = ("-pk",)
        constraints = (
            models.UniqueConstraint(fields=("event", "endpoint"), name="delivery_once_per_endpoint"),
            models.CheckConstraint(
                condition=Q(status__in=("SUCCEEDED", "FAILED", "CANCELED"), finish_at__isnull=False)
                | Q(status__in=("PENDING", "DELIVERING", "WAITING_RETRY"), finish_at__isnull=True),
                name="delivery_finished_when_final",
            ),
        )
        indexes = (
            models.Index(
                fields=("endpoint", "due_at"), name="delivery_due_of_endpoint", condition=Q(finish_at__isnull=True)
            ),
            models.Index(fields=("status", "due_at"), name="delivery_under_way", condition=Q(finish_at__isnull=True)),
            models.Index(fields=("endpoint", "-id"), name="delivery_log_of_endpoint"),
        )

    def __str__(self) -> str:
        return f"{self.event}"


class Attempt(models.Model):
    """One call of a receiver."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="tries")
    at = models.DateTimeField(default=timezone.now)
    status_code = models.PositiveSmallIntegerField("status", null=True, blank=True)
    """Status of the receiver's response; empty when none came."""
    duration_ms = models.PositiveIntegerField("duration (ms)")
    answer_start = models.TextField("answer", blank=True, default="")
    """At most the first KiB."""
    error = models.CharField(max_length=300, blank=True, default="")
    """Reason why no response came, in a sentence."""

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.status_code or self.error} in {self.duration_ms} ms"
