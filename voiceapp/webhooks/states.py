"""The life of a delivery and of an endpoint, as tables from (status, step) to status. An absent pair is an error."""

from __future__ import annotations

from enum import StrEnum

from django.db import models

from voiceapp.leases.states import StepTable


class DeliveryStatus(models.TextChoices):
    """States of a delivery. SUCCEEDED, FAILED and CANCELED are final, unless it is sent again."""

    PENDING = "PENDING", "Pending"
    DELIVERING = "DELIVERING", "Delivering"
    WAITING_RETRY = "WAITING_RETRY", "Waiting to be tried again"
    SUCCEEDED = "SUCCEEDED", "Succeeded"
    FAILED = "FAILED", "Failed"
    CANCELED = "CANCELED", "Canceled"


WAITING = (DeliveryStatus.PENDING, DeliveryStatus.WAITING_RETRY)
FINAL = (DeliveryStatus.SUCCEEDED, DeliveryStatus.FAILED, DeliveryStatus.CANCELED)

DELIVERY_STEPS: StepTable = {
    **{(status, "claim"): DeliveryStatus.DELIVERING for status in WAITING},
    # The lease of a process that died is over: another one makes the call.
    (DeliveryStatus.DELIVERING, "claim"): DeliveryStatus.DELIVERING,
    (DeliveryStatus.DELIVERING, "release"): DeliveryStatus.PENDING,
    (DeliveryStatus.DELIVERING, "succeed"): DeliveryStatus.SUCCEEDED,
    (DeliveryStatus.DELIVERING, "retry"): DeliveryStatus.WAITING_RETRY,
    (DeliveryStatus.DELIVERING, "fail"): DeliveryStatus.FAILED,
    **{(status, "cancel"): DeliveryStatus.CANCELED for status in (*WAITING, DeliveryStatus.DELIVERING)},
    **{(status, "send_again"): DeliveryStatus.PENDING for status in FINAL},
}


class EndpointStatus(models.TextChoices):
    ACTIVE = "ACTIVE", "Active"
    DISABLED = "DISABLED", "Disabled"


ENDPOINT_STEPS: StepTable = {
    (EndpointStatus.ACTIVE, "disable"): EndpointStatus.DISABLED,
    (EndpointStatus.DISABLED, "enable"): EndpointStatus.ACTIVE,
}


class DisabledReason(StrEnum):
    MANUAL = "MANUAL"
    FAILURES = "CONSECUTIVE_DELIVERY_FAILURES"
    REDIRECT = "REDIRECT_RESPONSE"
    ADDRESS = "SSRF_VALIDATION_FAILED"
    TLS = "TLS_VALIDATION_FAILED"
    GONE = "GONE"


REASONS = {
    DisabledReason.MANUAL: "By hand",
    DisabledReason.FAILURES: "Too many events in a row could not be delivered",
    DisabledReason.REDIRECT: "The receiver redirects; enter the address that it redirects to",
    DisabledReason.ADDRESS: "The address leads to a place that this server does not call",
    DisabledReason.TLS: "The receiver's certificate does not prove who it is",
    DisabledReason.GONE: "The receiver says that it is gone for good (410)",
}
