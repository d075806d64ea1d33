from django.apps import AppConfig


class ServerConfig(AppConfig):
    name = "voiceapp.server"
