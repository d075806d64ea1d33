"""Paths of the page's offers, grants and reports, and of requests that come to a WebSocket's address without one."""

from django.urls import path, re_path

from voiceapp.realtime import views

urlpatterns = [
    path("voice/webrtc", views.page_offer, name="voice-webrtc"),
    path("voice/aoq", views.page_grant, name="voice-aoq"),
    path("voice/sessions/<str:name>", views.page_report, name="voice-session-report"),
    re_path(r"^api-ws/v1/(?:realtime|inference)/?$", views.socket_address),
]
