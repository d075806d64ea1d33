"""The audit: what people did in the admin, and their sign-ins. Rows are added and stay."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.db.models import QuerySet
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from voiceapp.accounts.addresses import address_of_request
from voiceapp.accounts.own_rows import OwnFilter, sees_all
from voiceapp.accounts.second_factor import note
from voiceapp.http.admin import RecordsAdmin, csv_download

WAYS = {
    "django.contrib.auth.backends.RemoteUserBackend": " at the proxy",
    "voiceapp.accounts.openid.OpenIdBackend": " with OpenID Connect",
}
"""Ways to sign in beside a password, by their backends."""


@admin.register(LogEntry)
class AuditAdmin(RecordsAdmin):
    list_display = ("action_time", "user", "content_type", "object_repr", "did")
    list_filter = ("action_flag", ("user", OwnFilter), "content_type", "action_time")
    list_select_related = ("user", "content_type")
    search_fields = ("object_id", "object_repr", "change_message", "user__username")
    actions = ("download",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[LogEntry]:
        rows = super().get_queryset(request)
        return rows if sees_all(request.user) else rows.filter(user=request.user)

    @admin.display(description="what")
    def did(self, row: LogEntry) -> str:
        return str(row.get_change_message() or row.get_action_flag_display())

    @admin.action(description="Download as CSV")
    def download(self, request: HttpRequest, queryset: QuerySet[LogEntry]) -> HttpResponse:
        rows = ((row.action_time, row.user, row.content_type, row.object_repr, self.did(row)) for row in queryset)
        return csv_download("audit.csv", self.list_display, rows)


@receiver(user_logged_in)
def signed_in(sender: Any, request: HttpRequest | None, user: Any, **_: Any) -> None:
    """Note a sign-in, in the admin or on the voice page."""
    note(user, f"Signed in{WAYS.get(user.backend, '')} from {_place(request)}.")


@receiver(user_login_failed)
def refused(sender: Any, credentials: dict[str, Any], request: HttpRequest | None, **_: Any) -> None:
    """Note a refused attempt for a login that exists; the log has the others."""
    users = get_user_model()
    name = str(credentials.get(users.USERNAME_FIELD, ""))
    if user := users._default_manager.filter(**{users.USERNAME_FIELD: name}).first():
        note(user, f"Refused to sign in from {_place(request)}.")


def _place(request: HttpRequest | None) -> str:
    return (address_of_request(request) if request is not None else "") or "an unknown address"
