"""Sessions and the doors that lead into them."""

from django.apps import AppConfig


class RealtimeConfig(AppConfig):
    name = "voiceapp.realtime"
    verbose_name = "Conversations"

    def ready(self) -> None:
        from voiceapp.accounts.seats import count_other_processes  # both have models, which come after the apps
        from voiceapp.realtime.aoq.relays import open_relays
        from voiceapp.realtime.other_processes import open_sessions
        from voiceapp.relays import look_up

        count_other_processes(open_sessions)
        look_up(open_relays)
