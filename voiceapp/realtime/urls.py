"""Where the page sends its offer, asks for a grant, and reports a session that another service holds; and what requests
are told that come to a socket's address."""

from django.urls import path, re_path

from voiceapp.realtime import views

urlpatterns = [
    path("voice/webrtc", views.page_offer, name="voice-webrtc"),
    path("voice/aoq", views.page_grant, name="voice-aoq"),
    path("voice/sessions/<str:name>", views.page_report, name="voice-session-report"),
    re_path(r"^api-ws/v1/(?:realtime|inference)/?$", views.socket_address),
]
