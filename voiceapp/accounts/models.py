"""Accounts, workspaces, keys and people; the ledger, free quotas and budgets.

A key's text is never stored. `voiceapp.accounts.keys` mints and verifies it; the row keeps the SHA-256, and enough of
both ends for a person to tell two keys apart.

Money is counted in nano-dollars (10⁻⁹ US dollars), as integers: 0.07 dollars for a million tokens is 70 for one.
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import count
from typing import Any, NoReturn
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from voiceapp.formats import identifier

SEE_EVERY_ACCOUNT = "see_every_account"
"""Permission of those who find the rows of all accounts in the operators' site, and not only those of their own."""
MAX_PRIORITY = 100
"""Highest priority of a task; the lowest is its negative."""


class Scope(models.TextChoices):
    """Kinds of work that a key may be used for."""

    REALTIME = "realtime"
    INFERENCE = "inference"
    TASKS = "tasks"
    WEBHOOKS = "webhooks"
    ADMIN = "admin"


def all_scopes() -> list[str]:
    """Return the scopes of a new key: all but the operator's."""
    return [scope for scope in Scope.values if scope != Scope.ADMIN]


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
        permissions = ((SEE_EVERY_ACCOUNT, "Can see the rows of every account"),)

    def __str__(self) -> str:
        return f"{self.name}"


class GuestSite(models.Model):
    """Another site whose pages may show the talk button; its visitors are guests with an account and limits of their
    own."""

    origin = models.CharField(
        max_length=85, unique=True, help_text="As the browser shows it, without a path: https://www.example.org"
    )
    account = models.OneToOneField(Account, on_delete=models.CASCADE, related_name="guest_site", editable=False)
    sessions_at_once = models.PositiveIntegerField(
        "conversations at once", default=5, help_text="Of all visitors of the site together."
    )
    sessions_per_hour = models.PositiveIntegerField(
        "conversations an hour", default=10, help_text="Begun from one Internet address."
    )
    session_s = models.PositiveIntegerField(
        "longest conversation", default=180, validators=(MinValueValidator(10),), help_text="In seconds."
    )

    class Meta:
        ordering = ("origin",)

    def __str__(self) -> str:
        return f"{self.origin}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """A new site gets an account of its own, whatever others are called."""
        if self.account_id is None:
            names = (f"Guests of {self.origin}{f' {number}' if number > 1 else ''}" for number in count(1))
            free = next(name for name in names if not Account.objects.filter(name=name).exists())
            self.account = Account.objects.create(name=free)
        super().save(*args, **kwargs)

    def clean(self) -> None:
        """Accept an origin as browsers write it, and nothing else."""
        try:
            parts = urlsplit(self.origin.strip().rstrip("/").lower())
            host = _host(parts)
        except ValueError:
            host = ""
        if not host or parts.path or parts.query or parts.fragment:
            raise ValidationError({"origin": "Write scheme and host, such as https://www.example.org."})
        self.origin = f"{parts.scheme}://{host}"
        if GuestSite.objects.filter(origin=self.origin).exclude(pk=self.pk).exists():
            raise ValidationError({"origin": "This site is listed already."})


def _host(parts: SplitResult) -> str:
    """Host and port as browsers write them, without a port that the scheme implies; empty for what is not an origin."""
    implied = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port is None or parts.port == implied else f":{parts.port}"
    host = parts.hostname or ""
    is_plain = implied is not None and parts.username is None and re.fullmatch(r"[a-z0-9.-]+", host)
    return f"{host}{port}" if is_plain else ""


class Workspace(models.Model):
    """A part of an account with keys of its own; what is created with one of them belongs to it."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="workspaces", db_index=False)
    name = models.CharField(max_length=100)
    public_id = models.CharField("identifier", max_length=40, unique=True, default=workspace_identifier, editable=False)
    """Identifier on the wire, `ws_…`: random, so that it does not tell how many there are."""

    class Meta:
        ordering = ("account__name", "name")
        constraints = (models.UniqueConstraint(fields=("account", "name"), name="workspace_name_once_per_account"),)

    def __str__(self) -> str:
        return f"{self.account} / {self.name}"


class SecondFactor(models.Model):
    """Second factor of a person who signs in with a password."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="second_factor"
    )
    sealed_secret = models.CharField(max_length=200)
    last_step = models.BigIntegerField()
    """Step of time of the last code, which counts no more."""
    recovery_digests = models.JSONField()

    def __str__(self) -> str:
        return f"second factor of {self.user}"


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
    """A program's right to call, as a hash. Once expired or revoked it stays so: a new key replaces an old one."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(max_length=100, help_text="Where the key is used, so that you know later what to revoke.")
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    """SHA-256 of the key's text: 256 random bits need no slow hash, and the unique index finds it without comparing."""
    prefix = models.CharField(max_length=7, editable=False)
    """The first seven characters, `sk-` included."""
    last_four = models.CharField(max_length=4, editable=False)
    scopes = models.JSONField(default=all_scopes)
    """A list of `Scope` values."""
    allowed_models = models.JSONField(default=list, blank=True)
    """Names or aliases of the only models it may use; empty allows all."""
    monthly_budget_nano = models.PositiveBigIntegerField(null=True, blank=True)
    """Nano-dollars that it may spend in a calendar month (UTC); None knows no limit, 0 allows only what is free."""
    task_priority = models.SmallIntegerField(
        "priority of its tasks",
        default=0,
        validators=(MinValueValidator(-MAX_PRIORITY), MaxValueValidator(MAX_PRIORITY)),
        help_text=(
            f"{-MAX_PRIORITY} to {MAX_PRIORITY}. Of the tasks of one account that wait, those with the highest go "
            "first, then the oldest. Other accounts have their turns whatever it is. "
            "Tasks that wait already keep theirs."
        ),
    )
    is_front = models.BooleanField(
        "of a front",
        default=False,
        db_default=False,  # a process of the release before writes keys without it
        help_text="Another Voiceapp calls with it (UPSTREAM_API_KEY there) and counts its callers itself: their "
        "conversations are not limited as those of one account.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Leave empty for a key that does not expire.")
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Time of the last use, exact to a minute."""

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
        """True if the key itself is neither revoked nor expired, apart from its account."""
        return self.state(now) == "usable"

    def state(self, now: datetime) -> str:
        """`usable`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        return "usable" if self.expires_at is None or self.expires_at > now else "expired"


class MintedKey(models.Model):
    """A temporary key that was made, for people to see. The key itself needs no row."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="minted")
    realtime_only = models.BooleanField()
    made_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = "temporary key"
        ordering = ("expires_at", "pk")

    def __str__(self) -> str:
        return f"temporary key of {self.key}"


class UsageRecords(models.QuerySet["UsageRecord"]):
    """The ledger is added to. Nothing in it changes or goes."""

    def update(self, **fields: Any) -> NoReturn:
        raise TypeError("The ledger is append-only: no record may be changed.")

    def delete(self) -> NoReturn:
        raise TypeError("The ledger is append-only: no record may be deleted.")


class UsageRecord(models.Model):
    """One line of the ledger: so many of a unit, of one model, for one request. Written once, never changed.

    The cost is the list price of the moment, whether or not a free quota covered it. An account or workspace with
    records cannot be deleted, only switched off; a key can, and its records keep its number and name.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="+", db_index=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+", db_index=False)
    key = models.ForeignKey(
        ApiKey, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+", db_index=False
    )
    caller = models.CharField(max_length=200)
    """The caller's label at that time: a key's name and ends, a person's login, a guest's digest."""
    operation = models.CharField(max_length=60)
    family = models.CharField(max_length=20)
    model = models.CharField(max_length=100)
    agent = models.CharField(max_length=70, default="", db_default="")
    """Name and version of the agent that answered, such as `desk@3`."""
    request_id = models.CharField("request or session", max_length=100)
    unit = models.CharField(max_length=30)
    """One of `ledger.UNITS`."""
    quantity = models.PositiveBigIntegerField()
    unit_price_nano = models.PositiveBigIntegerField()
    cost_nano = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    objects = UsageRecords.as_manager()

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.UniqueConstraint(fields=("request_id", "unit"), name="usage_once_per_request_and_unit"),
            models.CheckConstraint(
                condition=Q(cost_nano=F("quantity") * F("unit_price_nano")), name="usage_costs_what_it_costs"
            ),
        )
        indexes = (
            models.Index(fields=("account", "-created_at"), name="usage_of_account"),
            models.Index(fields=("-created_at",), name="usage_newest_first"),
        )

    def __str__(self) -> str:
        return f"{self.quantity} {self.unit} of {self.model}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("The ledger is append-only: no record may be changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("The ledger is append-only: no record may be deleted.")


class Quota(models.Model):
    """Free units of a model family for an account, from its first use until a day; not renewed."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="quotas", db_index=False)
    family = models.CharField(max_length=20)
    granted = models.PositiveBigIntegerField("granted tokens")
    used = models.PositiveBigIntegerField("used tokens", default=0)
    """Tokens used or held for calls in progress."""
    first_used_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ("account__name", "family")
        constraints = (models.UniqueConstraint(fields=("account", "family"), name="quota_once_per_family"),)

    def __str__(self) -> str:
        return f"{self.family} for {self.account}"


class MonthlySpend(models.Model):
    """Spending of a key in a calendar month (UTC): the sum of the ledger, and holds of calls in progress."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="spending", db_index=False)
    month = models.CharField(max_length=7)
    """`2026-11`."""
    spent_nano = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ("-month",)
        constraints = (models.UniqueConstraint(fields=("key", "month"), name="spend_once_per_month"),)

    def __str__(self) -> str:
        return f"{self.key} in {self.month}"


class Hold(models.Model):
    """An amount set aside for a call in progress. One that outlives every call belongs to a process that was killed."""

    quota = models.ForeignKey(Quota, null=True, on_delete=models.CASCADE, related_name="holds")
    tokens = models.PositiveBigIntegerField()
    spend = models.ForeignKey(MonthlySpend, null=True, on_delete=models.SET_NULL, related_name="holds")
    cost_nano = models.PositiveBigIntegerField()
    request_id = models.CharField(max_length=100, db_default="")
    """Identifier of the charge: a repeated attempt finds the hold of the first one."""
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)
    """Latest end of the call; None means half an hour after `created_at`."""

    def __str__(self) -> str:
        return f"{self.tokens} tokens, {self.cost_nano} nano-dollars"
