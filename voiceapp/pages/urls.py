"""Paths of the pages."""

from importlib import import_module

from django.conf import settings
from django.contrib.auth.views import LogoutView
from django.urls import path

from . import views
from .config import config
from .login import PageLoginView
from .two_factor import two_factor

urlpatterns = [
    path("", views.voice, name="voice"),
    path("a/<slug:name>", views.agent, name="agent"),
    path("embed", views.embed, name="embed"),
    path("embed.js", views.embed_script, name="embed-script"),
    path("check", views.check, name="check"),
    path("voice/config", config, name="voice-config"),
    path("voice/samples/<str:name>", views.voice_sample, name="voice-sample"),
    path("privacy", views.privacy, name="privacy"),
    path("login", PageLoginView.as_view(), name="login"),
    path("two-factor", two_factor, name="two-factor"),
    *(import_module("voiceapp.accounts.openid").urlpatterns if settings.SIGNS_IN_WITH_OPENID else ()),
    path("logout", LogoutView.as_view(next_page="voice"), name="logout"),
]
