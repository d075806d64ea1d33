"""The ledger and the free quotas in the operators' site: to look at, to take along as CSV."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.admin import ModelAdmin

from voiceapp.accounts.budgets import forecast
from voiceapp.accounts.models import Quota, UsageRecord
from voiceapp.accounts.own_rows import OwnFilter, OwnRows
from voiceapp.formats import dollars
from voiceapp.http.admin import RecordsAdmin, column, csv_download

MOST_EXPORTED = 100_000
"""Lines of one CSV file, which is made in memory."""
COLUMNS = (
    *("created_at", "account", "workspace", "key_id", "caller", "operation", "family", "model", "agent", "request_id"),
    *("unit", "quantity", "unit_price_nano", "cost_nano"),
)


@admin.register(UsageRecord)
class UsageRecordAdmin(OwnRows, RecordsAdmin):
    """The ledger: rows can be looked at and exported, and not added, changed or deleted."""

    list_before_template = "admin/accounts/usagerecord/export.html"
    list_display = ("created_at", "account", "caller", "operation", "model", "agent", "unit", "quantity", "cost")
    list_filter = (("account", OwnFilter), "created_at")
    list_select_related = ()
    search_fields = ("request_id__exact",)
    actions = None
    fields = (
        *("created_at", "account", "workspace", "caller", "operation", "family", "model", "agent", "request_id"),
        *("unit", "quantity", "unit_price", "cost"),
    )

    cost = column("cost_nano", "cost ($)", ordering="cost_nano", shown=dollars)
    unit_price = column("unit_price_nano", "price of one ($)", shown=dollars)

    def get_queryset(self, request: HttpRequest) -> QuerySet[UsageRecord]:
        return super().get_queryset(request).prefetch_related("account")  # a join makes SQLite sort all rows

    def get_urls(self) -> list[URLPattern]:
        export = path("export/", self.admin_site.admin_view(self.export), name="accounts_usagerecord_export")
        return [export, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        export = f"{reverse('admin:accounts_usagerecord_export')}?{request.GET.urlencode()}"
        return super().changelist_view(request, {**(extra_context or {}), "export": export})

    def export(self, request: HttpRequest) -> HttpResponse:
        """Download the filtered records as CSV, newest first."""
        if not self.has_view_permission(request):
            return HttpResponse(status=403)
        listed = self.get_changelist_instance(request)
        records = listed.get_queryset(request).select_related("account", "workspace__account")
        if records.count() > MOST_EXPORTED:
            self.message_user(
                request, f"One file holds {MOST_EXPORTED:,} lines. Narrow the filters first.", messages.WARNING
            )
            address = reverse("admin:accounts_usagerecord_changelist")
            return HttpResponseRedirect(f"{address}?{request.GET.urlencode()}")
        rows = records.iterator(chunk_size=2000)
        return csv_download("usage.csv", COLUMNS, ([getattr(row, name) for name in COLUMNS] for row in rows))


@admin.register(Quota)
class QuotaAdmin(OwnRows, ModelAdmin):
    """Free quotas. Accounts use them; an operator may grant more, or longer."""

    list_display = ("account", "family", "used", "granted", "left", "expires_at")
    list_filter = ("family", ("account", OwnFilter))
    list_select_related = ("account",)
    search_fields = ("account__name",)
    fields = ("account", "family", "used", "granted", "first_used_at", "expires_at")
    readonly_fields = ("account", "family", "used", "first_used_at")

    @admin.display(description="left")
    def left(self, row: Quota) -> str:
        now, rest = timezone.now(), max(0, row.granted - row.used)
        if row.expires_at <= now:
            return "expired"
        lasts = forecast(rest, row.used, since=row.first_used_at, now=now, until=row.expires_at)
        return f"{rest}, {lasts}"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False
