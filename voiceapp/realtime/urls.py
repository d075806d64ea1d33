"""Where the page sends its offer."""

from django.urls import path

from voiceapp.realtime import views

urlpatterns = [path("voice/webrtc", views.page_offer, name="voice-webrtc")]
