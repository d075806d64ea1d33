"""Rows that a person finds in the operators' site: those of the accounts that are theirs, or of all accounts."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib import admin
from django.contrib.admin.options import BaseModelAdmin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from voiceapp.accounts.models import SEE_EVERY_ACCOUNT

MOST_CHOICES = 100
"""Accounts or keys that a list offers to be narrowed to; there may be thousands, which a search finds."""

Row = TypeVar("Row", bound=Model)


def sees_all(user: Any) -> bool:
    """Return whether a person sees the rows of every account, as superusers do."""
    return bool(user.has_perm(f"accounts.{SEE_EVERY_ACCOUNT}"))


def own(rows: QuerySet[Row], user: Any, path: str = "account") -> QuerySet[Row]:
    """Return those of the rows that a person may see; `path` leads from a row to its account."""
    return rows if sees_all(user) else rows.filter(**{f"{path}__in": user.memberships.values("account")})


class OwnRows(BaseModelAdmin):
    """Part of the admin of rows that belong to an account: its lists, pages, downloads and choices."""

    account_path = "account"
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return own(super().get_queryset(request), request.user, self.account_path)

    def get_field_queryset(self, db: str | None, db_field: Any, request: HttpRequest) -> QuerySet[Any] | None:
        shown = self.admin_site._registry.get(db_field.remote_field.model)
        return shown.get_queryset(request) if shown is not None else None


class OwnFilter(admin.RelatedFieldListFilter):
    """Filter by an account or a key that the person may see."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        rows = model_admin.admin_site.get_model_admin(field.related_model).get_queryset(request)
        return [(row.pk, str(row)) for row in rows[:MOST_CHOICES]]
