"""Includes each package's urls; no path is spelled twice."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path

from voiceapp.api import api, openapi

handler500 = "voiceapp.pages.failed.failed"

urlpatterns = [
    path(settings.ADMIN_PATH, admin.site.urls),
    path("", include("voiceapp.pages.urls")),
    path("", include("voiceapp.realtime.urls")),
    path("", include("voiceapp.docs.urls")),
    path("openapi.json", openapi, name="openapi"),
    path("", api.urls),
]
