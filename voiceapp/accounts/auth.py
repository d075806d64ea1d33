"""Callers: the holder of a key or of a temporary key, a signed-in person, or a guest of the public page."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils import timezone

from voiceapp.accounts import temporary_keys
from voiceapp.accounts.caller import Caller as Caller
from voiceapp.accounts.caller import GuestLimits
from voiceapp.accounts.keys import KeyDirectory, parse
from voiceapp.accounts.models import Account, ApiKey, GuestSite, MintedKey, Scope, Workspace
from voiceapp.accounts.rates import rates
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import AccessDenied, InvalidApiKey

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

GUESTS = "Guests"
"""Name of the built-in account, and of its workspace, to which guests belong; inactive, it lets none of them talk."""

OF_SITE = " of site "
"""In a guest's label, before the number of the site that they came by."""

DEFAULT_WORKSPACE = "Default"
KEY_WANTED = f"{InvalidApiKey().message} No key came: send it in the header 'Authorization: Bearer sk-...'."
"""It begins with the sentence that client libraries know."""

key_directory = KeyDirectory()


async def caller_from_bearer(header: str | None) -> Caller:
    """The caller behind an `Authorization` header: an API key, or a temporary key with the rights of its key.

    Raises:
        InvalidApiKey: always with the same message, so that callers do not learn whether a key was unknown, expired,
            revoked, of an inactive account, or not a key at all. Where none came, it says how to send one.
    """
    scheme, _, credentials = (header or "").strip().partition(" ")
    credentials = credentials.strip() if scheme.lower() == "bearer" else ""
    if not credentials:
        raise InvalidApiKey(KEY_WANTED)
    credentials, _ = temporary_keys.read_client_secret(credentials)
    if credentials.startswith(temporary_keys.PREFIX):
        return await _temporary_caller(credentials)
    return await _caller_of_digest(parse(credentials))


async def _temporary_caller(text: str) -> Caller:
    temporary = temporary_keys.read(text)
    if temporary is None:
        raise InvalidApiKey
    caller = await _caller_of_digest(temporary.digest)
    expires_at = min(filter(None, (temporary.expires_at, caller.expires_at)))
    scopes = caller.scopes & {str(Scope.REALTIME)} if temporary.realtime_only else caller.scopes
    return replace(caller, is_temporary=True, expires_at=expires_at, scopes=scopes)


async def _caller_of_digest(digest: bytes | None) -> Caller:
    caller = await key_directory.find(digest) if digest is not None else None
    if caller is None:
        raise InvalidApiKey
    return caller


def caller_of_key(key_id: int | None) -> Caller:
    """The holder of a key, for work done in their name after the request has gone. Talks to the database.

    Raises:
        InvalidApiKey: if the key was deleted, revoked or has expired meanwhile, or its account is not active.
    """
    return caller_of_row(ApiKey.objects.select_related("workspace__account").filter(pk=key_id).first())


def caller_of_row(row: ApiKey | None) -> Caller:
    """The holder of a key whose row, workspace and account were read already.

    Raises:
        InvalidApiKey: as `caller_of_key`.
    """
    if row is None or not row.is_usable(timezone.now()) or not row.workspace.account.is_active:
        raise InvalidApiKey
    return Caller.of(row)


async def key_digest_of(key_id: int) -> bytes:
    """The digest under which a key is stored.

    Raises:
        InvalidApiKey: if it was deleted just now.
    """
    digest = await run_in_db_thread(ApiKey.objects.filter(pk=key_id).values_list("digest", flat=True).first)
    if digest is None:
        raise InvalidApiKey
    return bytes(digest)


async def mint_temporary_key(caller: Caller, seconds: int, *, realtime_only: bool = False) -> tuple[str, int]:
    """A temporary key with the rights of a caller's key, or those for realtime alone, and its end in Unix seconds.

    Raises:
        AccessDenied: if the caller did not come with an API key.
        Throttled: if its account makes too many.
    """
    if caller.key_id is None or caller.is_temporary:
        raise AccessDenied("A temporary token is made with an API key, not with another token.")
    await rates().admit(caller.account_id, "tokens")
    expires_at = int(time.time()) + seconds
    digest = await key_digest_of(caller.key_id)
    await run_in_db_thread(_note, caller.key_id, seconds, realtime_only)
    return temporary_keys.mint(digest, expires_at, realtime_only=realtime_only), expires_at


def _note(key_id: int, seconds: int, realtime_only: bool) -> None:
    """Note a temporary key for people to see, in the place of those that have expired."""
    MintedKey.objects.filter(key_id=key_id, expires_at__lte=timezone.now()).delete()
    until = timezone.now() + timedelta(seconds=seconds)
    MintedKey.objects.create(key_id=key_id, expires_at=until, realtime_only=realtime_only)


async def revoked_keys(ids: Iterable[int]) -> set[int]:
    """Return those keys that may no longer be used: revoked, expired, deleted, or of an account that is not active."""
    asked = set(ids)
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    usable = ApiKey.objects.filter(unexpired, pk__in=asked, revoked_at__isnull=True, workspace__account__is_active=True)
    return asked - {pk async for pk in usable.values_list("pk", flat=True)} if asked else set()


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
        account = await accounts.exclude(name=GUESTS).filter(guest_site=None).order_by("pk").afirst()
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


async def guest_caller(guest: str, site_id: int | None = None) -> Caller:
    """A guest of the public page, or of another site, told apart from others by a name that cannot be guessed.

    Raises:
        AccessDenied: if an operator has switched the guests' account off, or deleted the site.
    """
    # The name is as good as a password: a digest tells guests apart just as well.
    site = "" if site_id is None else f"{OF_SITE}{site_id}"
    return await labelled_guest(f"guest {hashlib.sha256(guest.encode()).hexdigest()[:8]}{site}")


async def labelled_guest(label: str) -> Caller:
    """The guest whose `Caller` had this label before.

    Raises:
        AccessDenied: if an operator has switched the guests' account off.
    """
    _, _, site_id = label.partition(OF_SITE)
    limits = None
    if site_id:
        site = await GuestSite.objects.select_related("account").filter(pk=int(site_id)).afirst()
        if site is None:
            raise AccessDenied("This site may not show the talk button any more.")
        account, limits = site.account, GuestLimits(site.sessions_at_once, site.sessions_per_hour, site.session_s)
    else:
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
        label=label,
        scopes=frozenset({str(Scope.REALTIME)}),
        limits=limits,
    )
