"""`manage.py bootstrap`: what a start on one's own machine needs: the tables, and once an account, a key and a login.

One command and not `migrate` and another, because loading Django twice is a second of every start.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import IntegrityError, transaction

from voiceapp.accounts.auth import DEFAULT_WORKSPACE, GUESTS
from voiceapp.accounts.keys import new_key
from voiceapp.accounts.models import Account, Membership

ACCOUNT = "Local"
LOGIN = "admin"


@dataclass(frozen=True, slots=True)
class FirstThings:
    """The account, key and login that were made; their secrets are shown only here."""

    key: str = field(repr=False)
    password: str | None = field(repr=False)
    """Password of the login `admin`; None when an operator could sign in already."""


class Command(BaseCommand):
    help = (
        "Apply migrations; in development, on first start, make a local account, an API key and an admin login too, "
        "and print them once."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        if not settings.DEBUG:
            self.stderr.write(
                "No account was made: that is for development (DEBUG=1). Here, run instead:\n"
                "  python manage.py createsuperuser\n"
                "  python manage.py createkey --account NAME"
            )
            return
        settings.DEVELOPMENT_MARK.parent.mkdir(parents=True, exist_ok=True)
        settings.DEVELOPMENT_MARK.touch()
        made = make_first_things()
        if made is not None:
            self.stdout.write(announcement(made))


def make_first_things() -> FirstThings | None:
    """None when there is an account already, or another process is making it at this moment."""
    try:
        with transaction.atomic():
            if Account.objects.exclude(name=GUESTS).exists():
                return None
            account = Account.objects.create(name=ACCOUNT)  # its unique name lets one of several processes win
            workspace = account.workspaces.create(name=DEFAULT_WORKSPACE)
            row, key = new_key(workspace, "Made on first start")
            row.save()
            return FirstThings(key, _make_login(account))
    except IntegrityError:
        if Account.objects.filter(name=ACCOUNT).exists():
            return None
        raise


def _make_login(account: Account) -> str | None:
    """The new login's password; None, and no login, when there is a superuser or the name is taken."""
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists() or users.filter(username=LOGIN).exists():
        return None
    password = secrets.token_urlsafe(12)
    Membership.objects.create(user=users.create_superuser(LOGIN, password=password), account=account)
    return password


def announcement(made: FirstThings) -> str:
    """The block that a person reads on their first start."""
    address = f"http://localhost:{settings.PORT}/"
    lines = [
        "First start. Shown once, so keep them:",
        "",
        f"  Page      {address}",
        f"  API key   {made.key}",
    ]
    if made.password is not None:
        lines += [f"  Admin     {address}{settings.ADMIN_PATH}", f"            {LOGIN} / {made.password}"]
    rule = "-" * max(len(line) for line in lines)
    return "\n".join([rule, *lines, rule])
