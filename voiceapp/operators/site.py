"""The operators' AdminSite. Each app registers its own rows in its `admin.py`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from unfold.sites import UnfoldAdminSite

from voiceapp.http.live import changes
from voiceapp.operators import dashboard
from voiceapp.operators.assistant import assistant
from voiceapp.operators.usage import usage

MAY_SEE = "realtime.view_realtimesession"
"""Permission of those who see the figures of the front page."""


class OperatorsSite(UnfoldAdminSite):
    index_title = "Now"
    empty_value_display = "–"
    index_template = "admin/operations.html"

    def get_urls(self) -> list[Any]:
        return [
            path("live/", self.live, name="live"),
            path("assistant/<slug:name>/", self.admin_view(self.assistant), name="agents_try"),
            path("usage/", self.admin_view(self.usage), name="usage"),
            *super().get_urls(),
        ]

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Send people to the sign-in of the pages, the only one; those who have been there may not enter here."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied
        return redirect_to_login(request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index"))

    async def live(self, request: HttpRequest) -> HttpResponseBase:
        """Stream that a figure of the front page changed."""
        return await changes(request, MAY_SEE, lambda: dashboard.state(request.user))

    def assistant(self, request: HttpRequest, name: str) -> HttpResponse:
        """Show the page on which the model of an agent is chosen and tried."""
        return assistant(request, name, self.each_context(request))

    def usage(self, request: HttpRequest) -> HttpResponse:
        """Show what was used."""
        return usage(request, self.each_context(request))

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what every page shows, without the colours, which are in theme.css."""
        return {**super().each_context(request), "colors": None}

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), "may_see": request.user.has_perm(MAY_SEE)}
        if context["may_see"]:
            context |= dashboard.shown(timezone.now(), request.user)
        return super().index(request, context)
