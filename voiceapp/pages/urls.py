"""Where people find the pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from . import views

urlpatterns = [
    path("", views.voice, name="voice"),
    path("voice/config", views.config, name="voice-config"),
    path("login", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout", LogoutView.as_view(next_page="voice"), name="logout"),
]
