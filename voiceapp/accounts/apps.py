"""Callers, their keys and limits, and what they used."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "voiceapp.accounts"

    def ready(self) -> None:
        from voiceapp.accounts import checks  # noqa: F401  (registers them)
