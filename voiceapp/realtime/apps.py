"""Sessions and the doors that lead into them."""

from django.apps import AppConfig


class RealtimeConfig(AppConfig):
    name = "voiceapp.realtime"
    verbose_name = "Conversations"

    def ready(self) -> None:
        from voiceapp.accounts.seats import share_seats  # both have models, which come after the apps
        from voiceapp.realtime.aoq.relays import open_relays
        from voiceapp.realtime.held_seats import held_seats
        from voiceapp.relays import look_up

        share_seats(held_seats)
        look_up(open_relays)
