"""Keys that people make for themselves, to try a program: narrower than those of operators, few, and for a while."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from voiceapp.accounts.auth import caller_from_user
from voiceapp.accounts.keys import new_key
from voiceapp.accounts.models import Account, ApiKey, Scope, Workspace
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import AccessDenied

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

LASTS = timedelta(days=30)
AT_ONCE = 5
SCOPES = [str(scope) for scope in (Scope.REALTIME, Scope.INFERENCE, Scope.TASKS)]
MAX_NAME = 100


async def make_own_key(user: AbstractBaseUser | AnonymousUser) -> tuple[ApiKey, str]:
    """A key in the name of the person's account, and its text, which exists nowhere else.

    Raises:
        AccessDenied: if they are not signed in, no account is theirs, or they have as many keys as they may have.
    """
    caller = await caller_from_user(user)
    name = f"Made by {user.get_username()}"[:MAX_NAME]
    return await run_in_db_thread(_make, caller.account_id, caller.workspace_id, name)


def _make(account_id: int, workspace_id: int, name: str) -> tuple[ApiKey, str]:
    """A key of this name in a workspace, unless the account has as many that are good as one person may have.

    Raises:
        AccessDenied: if it has.
    """
    now = timezone.now()
    theirs = ApiKey.objects.filter(workspace__account_id=account_id, name=name)
    with transaction.atomic():
        Account.objects.select_for_update().get(pk=account_id)  # two at once count one after the other
        if theirs.filter(revoked_at__isnull=True, expires_at__gt=now).count() >= AT_ONCE:
            raise AccessDenied(
                f"You have made {AT_ONCE} keys that have not expired. "
                "Ask an operator to revoke those that you do not use."
            )
        row, text = new_key(Workspace.objects.get(pk=workspace_id), name, scopes=SCOPES, expires_at=now + LASTS)
        row.save()
    return row, text
