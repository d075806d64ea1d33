"""The life of a task and of its parts, as tables from (status, step) to status. An absent pair is an error."""

from __future__ import annotations

from typing import Literal

from django.db import models

from voiceapp.leases.states import StepTable


class Status(models.TextChoices):
    """States of a task or a part. SUCCEEDED, FAILED and CANCELED are final."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


FINAL = (Status.SUCCEEDED, Status.FAILED, Status.CANCELED)

TASK_STEPS: StepTable = {
    (Status.PENDING, "claim"): Status.RUNNING,
    # The lease of a worker that died is over: another one begins anew.
    (Status.RUNNING, "claim"): Status.RUNNING,
    (Status.RUNNING, "release"): Status.PENDING,
    (Status.RUNNING, "succeed"): Status.SUCCEEDED,
    (Status.RUNNING, "fail"): Status.FAILED,
    (Status.PENDING, "cancel"): Status.CANCELED,
    # It waits at another service, which gave it up; or an operator stops it.
    (Status.RUNNING, "withdraw"): Status.CANCELED,
}

PART_STEPS: StepTable = {
    # A part is worked on under the lease of its task, and waits in its own row until it ends.
    (Status.PENDING, "succeed"): Status.SUCCEEDED,
    (Status.PENDING, "fail"): Status.FAILED,
    (Status.PENDING, "cancel"): Status.CANCELED,
}

UNKNOWN = "UNKNOWN"
"""Status of a task that does not exist, was deleted after its time, or belongs to another account."""

Shown = Literal["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED", "UNKNOWN"]
"""Status of a task on the wire."""
