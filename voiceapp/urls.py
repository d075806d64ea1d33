"""Includes each package's urls; no path is spelled twice."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from voiceapp.api import api, openapi

handler500 = "voiceapp.pages.failed.failed"

urlpatterns = [
    path(settings.ADMIN_PATH, admin.site.urls),
    # Pages are typed by hand. Operations answer with and without the slash: a redirect would lose the body of a POST.
    path(settings.ADMIN_PATH.rstrip("/"), RedirectView.as_view(pattern_name="admin:index")),
    re_path(r"^(?P<page>privacy|login|docs(?:/.+)?)/$", RedirectView.as_view(url="/%(page)s", query_string=True)),
    path("", include("voiceapp.pages.urls")),
    path("", include("voiceapp.realtime.urls")),
    path("", include("voiceapp.docs.urls")),
    path("openapi.json", openapi, name="openapi"),
    path("", api.urls),
]
