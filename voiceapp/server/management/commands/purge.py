"""`manage.py purge`: delete what is past its time now, or all that an account has left."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from voiceapp.accounts.models import Account
from voiceapp.realtime.aoq.models import AoqGrant
from voiceapp.realtime.models import RealtimeSession
from voiceapp.server.housekeeping import tidy
from voiceapp.tasks.models import Task, Upload
from voiceapp.tasks.retention import forget
from voiceapp.tasks.states import FINAL
from voiceapp.tasks.store import NotPending, cancel
from voiceapp.webhooks.models import WebhookEndpoint, WebhookEvent

BATCH = 500


class Command(BaseCommand):
    help = (
        "Delete what is past its time now, as the server does every hour. With --account, also delete conversations, "
        "tasks, uploads, files and webhooks of an account that is not active; its usage records and keys stay."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--account", metavar="NAME", help="as the operators' site lists it")

    def handle(self, *, account: str | None, **options: Any) -> None:
        if account:
            found = Account.objects.filter(name=account).first()
            if found is None:
                raise CommandError(f"There is no account {account!r}.")
            if found.is_active:
                raise CommandError(
                    f"{account} is active: untick that in the operators' site first, and wait 5 seconds."
                )
            self._delete(found)
        tidy()
        self.stdout.write("Done.")

    def _delete(self, account: Account) -> None:
        for task in Task.objects.filter(account=account).exclude(status__in=FINAL):
            for step in ("cancel", "withdraw"):
                try:
                    cancel(account.pk, task.task_id, step=step)
                    break
                except NotPending:
                    continue
        while tasks := list(
            Task.objects.filter(account=account, status__in=FINAL).values_list("pk", flat=True)[:BATCH]
        ):
            try:
                forget(tasks)
            except OSError as error:
                raise CommandError(f"A file cannot be deleted, try again: {error}.") from error
        Upload.objects.filter(account=account).update(expires_at=timezone.now())  # `tidy` deletes them with their files
        for model, owner in (
            (RealtimeSession, "account"),
            (AoqGrant, "account"),
            (WebhookEvent, "workspace__account"),
            (WebhookEndpoint, "workspace__account"),
        ):
            while rows := list(model._default_manager.filter(**{owner: account}).values_list("pk", flat=True)[:BATCH]):
                model._default_manager.filter(pk__in=rows).delete()
