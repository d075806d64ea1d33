"""The doors a voice comes through."""

from django.apps import AppConfig


class RealtimeConfig(AppConfig):
    name = "voiceapp.realtime"
    verbose_name = "Conversations"
