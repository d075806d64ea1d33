"""Where the documentation is read."""

from django.urls import path

from . import views

urlpatterns = [
    path("docs", views.reference, name="docs"),
    path("docs/manual", views.contents, name="manual"),
    path("docs/manual/<slug:slug>", views.manual_page, name="manual-page"),
]
