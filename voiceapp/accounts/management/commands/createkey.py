"""`manage.py createkey`: a new API key, alone on standard output, so that a script can catch it."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from voiceapp.accounts.auth import DEFAULT_WORKSPACE, GUESTS
from voiceapp.accounts.keys import new_key
from voiceapp.accounts.models import Account, ApiKey, Workspace

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LONGEST = timedelta(days=36_500)


def duration(text: str) -> timedelta:
    """A time span such as 30d, 12h, 45m, 90s or 2w.

    Raises:
        argparse.ArgumentTypeError: if it is none, is zero or is longer than a century.
    """
    found = re.fullmatch(r"([0-9]{1,6})([smhdw])", text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time span; write 30d, 12h, 45m, 90s or 2w")
    span = timedelta(**{_UNITS[found[2]]: int(found[1])})
    if not timedelta(0) < span <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not between a second and a century")
    return span


def name(text: str) -> str:
    if not 0 < len(text.strip()) <= 100:
        raise argparse.ArgumentTypeError("a name has 1 to 100 characters")
    return text.strip()


class Command(BaseCommand):
    help = "Create an API key and print it, alone, on standard output. It is not stored and cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--account", required=True, type=name, help="the account's name; made when it is missing")
        parser.add_argument("--name", type=name, help="where the key will be used; on a terminal, it is asked for")
        parser.add_argument(
            "--expires-in", type=duration, metavar="SPAN", help="30d, 12h, 45m, 90s or 2w; without it, never"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        row, text = create(options["account"], options["name"] or self.asked_name(), options["expires_in"])
        until = f"expires {row.expires_at:%Y-%m-%d %H:%M} UTC" if row.expires_at else "does not expire"
        self.stderr.write(f"Key {row.shown} of {row.workspace} {until}. It cannot be shown again.")
        self.stdout.write(text)

    def asked_name(self) -> str:
        if not sys.stdin.isatty():
            return "Made on the command line"
        self.stderr.write("Where will the key be used? ", ending="")
        try:
            return name(sys.stdin.readline())
        except argparse.ArgumentTypeError as error:
            raise CommandError(f"{error}.") from None


@transaction.atomic
def create(account_name: str, key_name: str, expires_in: timedelta | None) -> tuple[ApiKey, str]:
    """A key in the account's first workspace; both are made when missing.

    Raises:
        CommandError: if a key of this account could not be used.
    """
    if account_name == GUESTS:
        raise CommandError(f"{GUESTS} is the account of people without a key. Choose another name.")
    account, _ = Account.objects.get_or_create(name=account_name)
    if not account.is_active:
        raise CommandError(f"The account {account_name} is not active: its keys are refused.")
    workspace = account.workspaces.order_by("pk").first()
    if workspace is None:
        workspace, _ = Workspace.objects.get_or_create(account=account, name=DEFAULT_WORKSPACE)
    expires_at = None if expires_in is None else timezone.now() + expires_in
    row, text = new_key(workspace, key_name, expires_at=expires_at)
    row.save()
    return row, text
