"""`manage.py removesecondfactor NAME`: for a person who has lost their phone and their recovery codes."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from voiceapp.accounts.second_factor import turn_off


class Command(BaseCommand):
    help = "Let a person sign in with their password alone."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        person = User.objects.filter(username=username).first()
        if person is None:
            raise CommandError(f"There is no login {username!r}. The admin lists them under Users.")
        if not turn_off(person, " on the command line"):
            raise CommandError(f"{username} has no second factor.")
        self.stdout.write(f"{username} signs in with the password alone from now on.")
