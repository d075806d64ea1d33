"""Callers: the one place where a key's row becomes the rights of its holder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from voiceapp.accounts.models import ApiKey, Scope
from voiceapp.errors import AccessDenied


@dataclass(frozen=True, slots=True)
class GuestLimits:
    sessions_at_once: int
    sessions_per_hour: int
    session_s: int


@dataclass(frozen=True, slots=True)
class Caller:
    account_id: int
    workspace_id: int
    key_id: int | None
    user_id: int | None
    is_guest: bool
    label: str
    """Name in logs and for operators: tells callers apart and holds no secret."""
    scopes: frozenset[str] = frozenset(Scope.values)
    allowed_models: frozenset[str] = frozenset()
    """Names or aliases of the only models the key may use; empty allows all."""
    monthly_budget_nano: int | None = None
    """Nano-dollars that the key may spend in a calendar month; None knows no limit."""
    task_priority: int = 0
    """Priority of the tasks that it creates: higher goes first, among those of one account."""
    is_front: bool = False
    """Another server, which counts its callers itself."""
    expires_at: datetime | None = None
    """Expiry of the key that was used; a temporary key expires with its key at the latest."""
    is_temporary: bool = False
    limits: GuestLimits | None = None
    """Limits of a guest of another site; None where those of this installation hold."""

    @classmethod
    def of(cls, key: ApiKey) -> Self:
        """The holder of a key, with its rights as the row has them now. The row comes with its workspace."""
        return cls(
            account_id=key.workspace.account_id,
            workspace_id=key.workspace_id,
            key_id=key.pk,
            user_id=None,
            is_guest=False,
            label=str(key),
            scopes=frozenset(key.scopes),
            allowed_models=frozenset(key.allowed_models),
            monthly_budget_nano=key.monthly_budget_nano,
            task_priority=key.task_priority,
            is_front=key.is_front,
            expires_at=key.expires_at,
        )

    def require(self, scope: str) -> None:
        """Check that the caller's key reaches this far.

        Raises:
            AccessDenied: if its scopes leave `scope` out.
        """
        if scope not in self.scopes:
            raise AccessDenied(f"This API key may not be used for {scope}.")
