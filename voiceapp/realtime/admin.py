"""Conversations in the operators' site: to look at and, once over, to delete; never to edit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from voiceapp.realtime import telling
from voiceapp.realtime.models import Door, RealtimeSession, Turn
from voiceapp.webhooks.events import Kind


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "Open"), ("closed", "Closed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[RealtimeSession]) -> QuerySet[RealtimeSession]:
        if self.value() in ("open", "closed"):
            return queryset.filter(ended_at__isnull=self.value() == "open")
        return queryset


class ReadOnly:
    """Rows that the program writes and people only read."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class TurnInline(ReadOnly, admin.TabularInline):
    model = Turn
    fields = (
        "started_at",
        "user_text",
        "assistant_text",
        "heard_text",
        "status",
        "interrupted",
        "end_of_turn_ms",
        "recognition_ms",
        "first_token_ms",
        "first_audio_ms",
    )
    readonly_fields = fields
    ordering = ("ordinal",)
    can_delete = False


@admin.register(RealtimeSession)
class RealtimeSessionAdmin(ReadOnly, admin.ModelAdmin):
    list_display = (
        "started_at",
        "account",
        "caller",
        "transport",
        "model",
        "duration",
        "turn_count",
        "close_code",
    )
    list_filter = (StateFilter, "transport", "is_guest", "model")
    list_select_related = ("account", "api_key", "user")
    search_fields = ("id", "account__name", "client_address")
    date_hierarchy = "started_at"
    show_full_result_count = False
    inlines = (TurnInline,)

    @admin.display(description="caller")
    def caller(self, row: RealtimeSession) -> str:
        if row.is_guest:
            return "guest"
        if row.api_key is not None:
            return f"key {row.api_key.name}"
        return str(row.user or "a deleted key or login")

    @admin.display(description="duration")
    def duration(self, row: RealtimeSession) -> str:
        if row.transport == Door.RELAYED:
            return "known elsewhere"
        lasted = (row.ended_at or timezone.now()) - row.started_at
        seconds = str(timedelta(seconds=max(0, int(lasted.total_seconds()))))
        return seconds if row.ended_at else f"{seconds} so far"

    def has_delete_permission(self, request: HttpRequest, obj: RealtimeSession | None = None) -> bool:
        """An open conversation still writes to its row."""
        is_open = obj is not None and obj.ended_at is None
        return bool(super().has_delete_permission(request, obj)) and not is_open

    def delete_model(self, request: HttpRequest, obj: RealtimeSession) -> None:
        telling.tell(obj.workspace_id, [obj.pk], [Kind.SESSION_DELETED])  # the view's transaction holds both
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[RealtimeSession]) -> None:
        over = queryset.filter(ended_at__isnull=False)
        with transaction.atomic():
            for row in over:
                telling.tell(row.workspace_id, [row.pk], [Kind.SESSION_DELETED])
            super().delete_queryset(request, over)
