"""Rows that the processes of an installation share: which relays there are, and who may connect to one."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from voiceapp.accounts.models import Account, ApiKey, Workspace
from voiceapp.realtime.lifetime.processes import NAME_LENGTH


class AoqRelay(models.Model):
    """A relay process of this installation. It lives while its heartbeat is fresh."""

    endpoint = models.CharField(max_length=253)
    """Host name or address under which callers reach it."""
    port = models.PositiveIntegerField()
    region = models.CharField(max_length=40, blank=True, default="")
    fingerprint = models.CharField(max_length=64, blank=True, default="")
    """SHA-256 of its certificate in hexadecimal; empty for one that a public authority has signed."""
    load = models.PositiveIntegerField(default=0)
    """Sessions open."""
    capacity = models.PositiveIntegerField(default=0)
    """Sessions that it may have open."""
    is_draining = models.BooleanField(default=False)
    heartbeat_at = models.DateTimeField()
    served_by = models.CharField(max_length=NAME_LENGTH)
    """The process (`processes.own_name`)."""

    class Meta:
        verbose_name = "AOQ relay"
        verbose_name_plural = "AOQ relays"
        constraints = (models.UniqueConstraint(fields=("endpoint", "port"), name="aoq_relay_once"),)

    def __str__(self) -> str:
        return f"{self.endpoint}:{self.port}"


class AoqGrant(models.Model):
    """The permission to connect once, in whose name and to which model."""

    sid = models.CharField(primary_key=True, max_length=32, editable=False)
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+", db_index=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    api_key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, null=True, related_name="+", db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+", db_index=False
    )
    guest = models.CharField(max_length=40, blank=True, default="")
    """Label of a guest; empty for everybody else."""
    temporary_key_expires_at = models.DateTimeField(null=True)
    """Set where the caller came with a temporary key."""
    session_key = models.CharField(max_length=40, blank=True, default="")
    """Login by which the caller is known."""
    model = models.CharField(max_length=100)
    runs_tasks = models.BooleanField(default=False, db_default=False)
    """True if the connection carries tasks of recognition instead of one session."""
    time_zone = models.CharField(max_length=64, blank=True, default="")
    languages = models.CharField(max_length=160, blank=True, default="", db_default="")
    """Codes of the languages that the caller may speak, with commas between; empty: any."""
    client_address = models.CharField(max_length=45, blank=True, default="")
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "AOQ grant"
        constraints = (
            models.CheckConstraint(
                condition=Q(guest="") | Q(api_key__isnull=True, user__isnull=True), name="aoq_grant_guest_is_nobody"
            ),
        )
        indexes = (
            models.Index(fields=("expires_at",), name="aoq_grant_expiry"),
            models.Index(fields=("account", "issued_at"), name="aoq_grant_of_account"),
        )

    def __str__(self) -> str:
        return f"{self.sid}"
