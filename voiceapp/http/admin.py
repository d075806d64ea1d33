"""Parts of the admin that every room's rows share."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.contrib.admin import AdminSite, SimpleListFilter, display
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.admin import ModelAdmin, TabularInline

from voiceapp.http.live import changes

LABELS = {
    "Running": "info",
    "Delivering": "info",
    "Waiting to be tried again": "warning",
    "Succeeded": "success",
    "Failed": "danger",
    "Canceled": "warning",
    "Active": "success",
    "Disabled": "danger",
    "open": "info",
    "usable": "success",
    "expired": "warning",
    "revoked": "danger",
}
"""Colours of states, by what they are called."""


MOST_FOUND = 20
"""Rows of one table that the search over all tables shows."""


def column(
    path: str, description: str, *, ordering: str | None = None, shown: Callable[[Any], Any] = lambda value: value
) -> Callable[[Any, Any], Any]:
    """Return what an admin shows of one attribute of its rows, such as `event.public_id`."""
    read = attrgetter(path)
    made: Callable[[Any, Any], Any] = display(description=description, ordering=ordering)(
        lambda _, row: shown(read(row))
    )
    return made


def choice_filter(name: str, conditions: Mapping[str, tuple[str, Q]]) -> type[SimpleListFilter]:
    """Return a filter by one of several conditions: what each is called and means, by its word in addresses."""

    class Choices(SimpleListFilter):
        title = parameter_name = name

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(word, called) for word, (called, _) in conditions.items()]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return queryset.filter(conditions[self.value()][1]) if self.value() in conditions else queryset

    return Choices


class ReadOnly:
    """Rows that the program writes and people only read."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(ReadOnly, ModelAdmin):
    """The list of rows that people may at most delete."""

    show_full_result_count = False

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> tuple[Any, bool]:
        """Return the rows that a list finds; of those that the search over all tables finds, the first."""
        rows, may_repeat = super().get_search_results(request, queryset, search_term)
        return (rows[:MOST_FOUND] if request.resolver_match.url_name == "search" else rows), may_repeat


class RecordsAdmin(ReadOnlyAdmin):
    """The list of rows that stay."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class LiveAdmin(ReadOnlyAdmin):
    """The list of rows that change while they are looked at."""

    list_before_template = "admin/live_list.html"
    change_form_outer_before_template = "admin/live_row.html"

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_live"
        return [path("live/", self.live, name=name), *super().get_urls()]

    async def live(self, request: HttpRequest) -> HttpResponseBase:
        """Stream that something changed: in the row named by `row`, or in any."""
        permission = f"{self.opts.app_label}.view_{self.opts.model_name}"
        row = request.GET.get("row", "")
        return await changes(request, permission, lambda: self.state(self.get_queryset(request), row))

    state: Callable[[QuerySet[Any], str], Any]
    """Return a value that differs once one of these rows, or with an empty name any, has changed."""


class ReadOnlyInline(ReadOnly, TabularInline):
    """Rows on the page of another."""

    can_delete = False
    extra = 0


def shown_once(
    site: AdminSite,
    request: HttpRequest,
    *,
    title: str,
    warning: str,
    label: str,
    secret: str,
    lines: list[str],
    next_url: str,
) -> TemplateResponse:
    """Return the only page that ever holds a secret; nothing may keep it."""
    context = {"title": title, "warning": warning, "label": label, "secret": secret, "lines": lines, "next": next_url}
    page = TemplateResponse(request, "admin/shown_once.html", {**site.each_context(request), **context})
    page.headers["Cache-Control"] = "no-store"
    return page


def csv_download(name: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> HttpResponse:
    """Return rows as a CSV file, made in memory."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "no-store"
    lines = csv.writer(response)
    lines.writerow(columns)
    for row in rows:
        lines.writerow(_cell(value) for value in row)
    return response


def _cell(value: Any) -> str:
    """Return a value as text that no spreadsheet takes for a formula: people choose the names of accounts and keys."""
    text = value.isoformat() if isinstance(value, datetime) else "" if value is None else str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
