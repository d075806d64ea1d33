"""Who is calling: the holder of a key or of a temporary token, a signed-in person, or a guest of the public page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q, QuerySet
from django.utils import timezone

from voiceapp.accounts import tokens
from voiceapp.accounts.bookkeeper import on_the_books
from voiceapp.accounts.keys import KeyDirectory, parse
from voiceapp.accounts.models import Account, ApiKey, Scope, Workspace
from voiceapp.errors import AccessDenied, InvalidApiKey

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

GUESTS = "Guests"
"""Name of the built-in account, and of its workspace, to which guests belong; inactive, it lets none of them talk."""

DEFAULT_WORKSPACE = "Default"

key_directory = KeyDirectory()
"""The process-wide directory of keys."""


@dataclass(frozen=True, slots=True)
class Caller:
    """In whose name something is done, and what may be done."""

    account_id: int
    workspace_id: int
    key_id: int | None
    user_id: int | None
    is_guest: bool
    label: str
    """For logs and operators: tells callers apart and holds no secret."""
    scopes: frozenset[str] = frozenset(Scope.values)
    allowed_models: frozenset[str] = frozenset()
    """Names or aliases of the only models the key may use; empty allows all."""
    monthly_budget_nano: int | None = None
    """Nano-dollars that the key may spend in a calendar month; None knows no limit."""
    task_priority: int = 0
    """Of the tasks that it creates: higher goes first, among those of one account."""
    is_temporary: bool = False
    """Whether it came with a temporary token in the place of its key."""

    def require(self, scope: str) -> None:
        """Check that the caller's key reaches this far.

        Raises:
            AccessDenied: if its scopes leave `scope` out.
        """
        if scope not in self.scopes:
            raise AccessDenied(f"This API key may not be used for {scope}.")


async def caller_from_bearer(header: str | None) -> Caller:
    """The caller behind an `Authorization` header: an API key, or a temporary token with the rights of its key.

    Raises:
        InvalidApiKey: always with the same message, so that nobody learns whether a key was unknown, expired, revoked,
            of an inactive account, not a key at all, or missing.
    """
    scheme, _, credentials = (header or "").strip().partition(" ")
    credentials = credentials.strip() if scheme.lower() == "bearer" else ""
    is_temporary = credentials.startswith(tokens.PREFIX)
    digest = tokens.key_digest(credentials) if is_temporary else parse(credentials)
    known = await key_directory.find(digest) if digest is not None else None
    if known is None:
        raise InvalidApiKey
    return Caller(
        account_id=known.account_id,
        workspace_id=known.workspace_id,
        key_id=known.key_id,
        user_id=None,
        is_guest=False,
        label=known.label,
        scopes=known.scopes,
        allowed_models=known.allowed_models,
        monthly_budget_nano=known.monthly_budget_nano,
        task_priority=known.task_priority,
        is_temporary=is_temporary,
    )


def caller_of_key(key_id: int | None) -> Caller:
    """The holder of a key, for work done in their name after the request has gone. Talks to the database.

    Raises:
        InvalidApiKey: if the key was deleted, revoked or has expired meanwhile, or its account is not active.
    """
    row = ApiKey.objects.select_related("workspace__account").filter(pk=key_id).first() if key_id else None
    if row is None or not row.is_usable(timezone.now()) or not row.workspace.account.is_active:
        raise InvalidApiKey
    return Caller(
        account_id=row.workspace.account_id,
        workspace_id=row.workspace_id,
        key_id=row.pk,
        user_id=None,
        is_guest=False,
        label=str(row),
        scopes=frozenset(row.scopes),
        allowed_models=frozenset(row.allowed_models),
        monthly_budget_nano=row.monthly_budget_nano,
        task_priority=row.task_priority,
    )


async def key_digest_of(key_id: int) -> bytes:
    """The digest under which a key is stored.

    Raises:
        InvalidApiKey: if it was deleted just now.
    """
    digest = await on_the_books(ApiKey.objects.filter(pk=key_id).values_list("digest", flat=True).first)
    if digest is None:
        raise InvalidApiKey
    return bytes(digest)


def usable_keys(ids: Iterable[int]) -> QuerySet[ApiKey, int]:
    """The ids of those of these keys that may be used now."""
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    usable = ApiKey.objects.filter(unexpired, pk__in=ids, revoked_at__isnull=True, workspace__account__is_active=True)
    return usable.values_list("pk", flat=True)


async def revoked_keys(ids: Iterable[int]) -> set[int]:
    """Which of these keys may no longer be used: revoked, expired, deleted, or of an account that is not active."""
    asked = set(ids)
    return asked - {pk async for pk in usable_keys(asked)} if asked else set()


async def caller_from_user(user: AbstractBaseUser | AnonymousUser) -> Caller:
    """A signed-in person, in the name of the first active account of theirs.

    A superuser without one talks in the name of the first active account there is.

    Raises:
        AccessDenied: if they are not signed in or no account is theirs.
    """
    if not user.is_authenticated or not user.is_active:
        raise AccessDenied("Sign in to talk.")
    accounts = Account.objects.filter(is_active=True)
    account = await accounts.filter(memberships__user_id=user.pk).order_by("memberships__pk").afirst()
    if account is None and user.is_superuser:
        account = await accounts.exclude(name=GUESTS).order_by("pk").afirst()
    if account is None:
        raise AccessDenied("Your login belongs to no active account. Ask an operator to add it to one.")
    workspace = await account.workspaces.order_by("pk").afirst()
    if workspace is None:
        workspace, _ = await Workspace.objects.aget_or_create(account=account, name=DEFAULT_WORKSPACE)
    return Caller(
        account_id=account.pk,
        workspace_id=workspace.pk,
        key_id=None,
        user_id=user.pk,
        is_guest=False,
        label=user.get_username(),
    )


async def guest_caller(guest: str) -> Caller:
    """A guest of the public page, told apart from others by the name in their cookie.

    Raises:
        AccessDenied: if an operator has switched the guests' account off.
    """
    account, _ = await Account.objects.aget_or_create(name=GUESTS)
    if not account.is_active:
        raise AccessDenied("Guests may not talk here at present.")
    workspace, _ = await Workspace.objects.aget_or_create(account=account, name=GUESTS)
    return Caller(
        account_id=account.pk,
        workspace_id=workspace.pk,
        key_id=None,
        user_id=None,
        is_guest=True,
        # The name is as good as a password: a digest tells guests apart just as well.
        label=f"guest {hashlib.sha256(guest.encode()).hexdigest()[:8]}",
        scopes=frozenset({str(Scope.REALTIME)}),
    )
