"""The operators' AdminSite. Each app registers its own rows in its `admin.py`."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone

from voiceapp.accounts.throttle import ThrottledAdminLogin
from voiceapp.operators.assistant import assistant
from voiceapp.operators.dashboard import figures_of_the_day


class OperatorsSite(admin.AdminSite):
    site_header = "Voiceapp"
    site_title = "Voiceapp"
    index_title = "Operations"
    index_template = "admin/operations.html"
    login_form = ThrottledAdminLogin

    def get_urls(self) -> list[Any]:
        page = path("assistant/<slug:name>/", self.admin_view(self.assistant), name="agents_try")
        return [page, *super().get_urls()]

    def assistant(self, request: HttpRequest, name: str) -> HttpResponse:
        """Show the page on which the model of an agent is chosen and tried."""
        return assistant(request, name, self.each_context(request))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        may_see = request.user.has_perm("realtime.view_realtimesession")
        figures = figures_of_the_day(timezone.now()) if may_see else []
        return super().index(request, {**(extra_context or {}), "figures": figures})
