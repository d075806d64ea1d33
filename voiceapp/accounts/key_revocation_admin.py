"""Revoking keys in the operators' site: asked about first, with what will stop."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.admin import ModelAdmin

from voiceapp.accounts.auth import key_directory
from voiceapp.accounts.models import ApiKey


class KeyRevocation(ModelAdmin):
    """Part of the admin of keys: the action on the list, and the page that asks whether to go on."""

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(super().has_change_permission(request))

    def get_urls(self) -> list[URLPattern]:
        ask = path("<path:object_id>/revoke/", self.admin_site.admin_view(self.revoke_one), name="accounts_key_revoke")
        return [ask, *super().get_urls()]

    def revoke_one(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The page that asks, for one key; it posts to the action below."""
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None or row.revoked_at is not None:
            raise Http404
        return self._ask(request, ApiKey.objects.filter(pk=row.pk))

    @admin.action(description="Revoke the selected keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        unrevoked = queryset.filter(revoked_at__isnull=True)
        if not unrevoked.exists():
            self.message_user(request, "These keys were revoked before.", messages.WARNING)
            return None
        if "confirmed" not in request.POST:
            return self._ask(request, unrevoked)
        rows = list(unrevoked)
        unrevoked.update(revoked_at=timezone.now())  # conditional: the time of an earlier revocation stays
        key_directory.forget()
        for row in rows:
            self.log_change(request, row, "Revoked.")
        count = "1 key" if len(rows) == 1 else f"{len(rows)} keys"
        ending = "Conversations opened with them end within 5 seconds."
        self.message_user(request, f"Revoked {count}. {ending}", messages.SUCCESS)
        return None

    def _ask(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> HttpResponse:
        """Show the keys, their last use and what stops with them, and ask for confirmation."""
        is_open = Q(sessions__ended_at__isnull=True)
        rows = list(
            keys.select_related("workspace__account")
            .annotate(open_conversations=Count("sessions", filter=is_open))
            .order_by("workspace__account__name", "name")
        )
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": "Revoke this key?" if len(rows) == 1 else f"Revoke these {len(rows)} keys?",
            "opts": self.opts,
            "rows": rows,
            "open_conversations": sum(row.open_conversations for row in rows),
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/accounts/apikey/revoke.html", context)
