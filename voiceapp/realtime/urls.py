"""Where the page sends its offer, asks for a grant, and reports a session that another service holds."""

from django.urls import path

from voiceapp.realtime import views

urlpatterns = [
    path("voice/webrtc", views.page_offer, name="voice-webrtc"),
    path("voice/aoq", views.page_grant, name="voice-aoq"),
    path("voice/sessions/<str:name>", views.page_report, name="voice-session-report"),
]
