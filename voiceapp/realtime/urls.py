"""Where the page sends its offer, and asks for a grant."""

from django.urls import path

from voiceapp.realtime import views

urlpatterns = [
    path("voice/webrtc", views.page_offer, name="voice-webrtc"),
    path("voice/aoq", views.page_grant, name="voice-aoq"),
]
