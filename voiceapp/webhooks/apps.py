"""The Django app of the webhooks."""

from __future__ import annotations

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "voiceapp.webhooks"
    verbose_name = "Webhooks"
    default_auto_field = "django.db.models.BigAutoField"
