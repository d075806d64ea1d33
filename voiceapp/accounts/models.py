"""Who may call: accounts, their workspaces, the keys of programs and the people who talk in an account's name.

A key's text is never stored. `voiceapp.accounts.keys` mints and verifies it; the row keeps the SHA-256, and enough of
both ends for a person to tell two keys apart.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from voiceapp.formats import identifier


class Scope(models.TextChoices):
    """What a key may be used for."""

    REALTIME = "realtime"
    INFERENCE = "inference"
    TASKS = "tasks"
    WEBHOOKS = "webhooks"
    ADMIN = "admin"


def all_scopes() -> list[str]:
    """Every scope: what a new key may do unless somebody narrows it."""
    return list(Scope.values)


def workspace_identifier() -> str:
    return identifier("ws")


class Account(models.Model):
    """The party that is limited and billed: a company, a household, the guests of the public page."""

    name = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    is_active = models.BooleanField(
        "active", default=True, help_text="Without it, none of the account's keys and people may talk."
    )

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return f"{self.name}"


class Workspace(models.Model):
    """A part of an account with keys of its own; what is created with one of them belongs to it."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="workspaces", db_index=False)
    name = models.CharField(max_length=100)
    public_id = models.CharField("identifier", max_length=40, unique=True, default=workspace_identifier, editable=False)
    """How the wire names it, `ws_…`: random, so that it tells nothing about how many there are."""

    class Meta:
        ordering = ("account__name", "name")
        constraints = (models.UniqueConstraint(fields=("account", "name"), name="workspace_name_once_per_account"),)

    def __str__(self) -> str:
        return f"{self.account} / {self.name}"


class Membership(models.Model):
    """A person who may talk in an account's name; the earliest one counts when there are several."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships", db_index=False
    )
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="memberships")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "account"), name="membership_once"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.account}"


class ApiKey(models.Model):
    """A program's right to call, as a hash. Expiry and revocation are final: a new key replaces an old one."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(max_length=100, help_text="Where the key is used, so that you know later what to revoke.")
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    """SHA-256 of the key's text: 256 random bits need no slow hash, and the unique index finds it without comparing."""
    prefix = models.CharField(max_length=7, editable=False)
    """The first seven characters, `sk-` included."""
    last_four = models.CharField(max_length=4, editable=False)
    scopes = models.JSONField(default=all_scopes)
    """A list of `Scope` values."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Leave empty for a key that does not expire.")
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    """When it last opened a door, exact to a minute."""

    class Meta:
        verbose_name = "API key"
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(expires_at__isnull=True) | Q(expires_at__gt=F("created_at")),
                name="key_expires_after_creation",
            ),
        )
        indexes = (models.Index(fields=("-created_at",), name="key_newest_first"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.shown})"

    @property
    def shown(self) -> str:
        """The key as people may see it: both ends, nothing between."""
        return f"{self.prefix}…{self.last_four}"

    def is_usable(self, now: datetime) -> bool:
        """Whether the key itself is neither revoked nor expired; its account is another question."""
        return self.state(now) == "usable"

    def state(self, now: datetime) -> str:
        """`usable`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        return "usable" if self.expires_at is None or self.expires_at > now else "expired"
