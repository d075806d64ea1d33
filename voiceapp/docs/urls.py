"""Paths of the documentation."""

from django.urls import path

from . import views
from .connect_page import connect

urlpatterns = [
    path("docs", views.reference, name="docs"),
    path("docs/playground", views.playground, name="playground"),
    path("docs/programs", views.programs, name="docs-programs"),
    path("docs/connect", connect, name="connect"),
    path("docs/reference/errors", views.errors, name="docs-errors"),
    path("docs/reference/events", views.events, {"dialect": "own"}, name="docs-events"),
    path("docs/reference/events-<slug:dialect>", views.events, name="docs-events-of"),
    path("docs/reference/<slug:slug>", views.family, name="docs-family"),
    path("docs/search", views.find, name="docs-search"),
    path("docs/manual", views.contents, name="manual"),
    path("docs/manual/<slug:slug>.md", views.manual_page, {"as_text": True}, name="manual-text"),
    path("asyncapi.json", views.asyncapi_document, name="asyncapi"),
    path("llms.txt", views.llms, name="llms"),
    path("docs/manual/<slug:slug>", views.manual_page, name="manual-page"),
]
