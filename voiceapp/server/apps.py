"""The process as a Django application: commands and checks."""

from django.apps import AppConfig
from django.core.checks import register


class ServerConfig(AppConfig):
    name = "voiceapp.server"
    verbose_name = "Server"

    def ready(self) -> None:
        from voiceapp.http import content_types

        from .checks import check_settings
        from .webhook_events import connect

        register(check_settings, "server")
        connect()
        content_types.install()
