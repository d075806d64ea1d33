"""Fair order of accounts: those without running tasks first, then those with the least; equals take turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import randrange

from django.db.models.functions import Now

from voiceapp.tasks.models import Task
from voiceapp.tasks.states import Status


class Turns:
    """The accounts that have tasks waiting, in turn."""

    def __init__(self) -> None:
        self._last: int | None = None

    def shares(self, room: int, kept_free: int) -> Counter[int]:
        live = Task.objects.filter(status=Status.RUNNING, due_at__gt=Now())
        under_way = Counter(live.values_list("account_id", flat=True))
        turns = self._waiting(room, under_way)
        shares: Counter[int] = Counter()
        while turns and shares.total() < room:
            account = min(turns, key=lambda account: under_way[account])  # of equals, whose turn it is
            if under_way[account] and shares.total() >= room - kept_free:
                break
            under_way[account] += 1
            shares[account] += 1
            turns.remove(account)
            turns.append(account)
            self._last = account
        return shares

    def _waiting(self, room: int, under_way: Mapping[int, int]) -> list[int]:
        """Accounts that have a task waiting and due, by number from the last turn on and around.

        No more of them than it takes to find `room` accounts with nothing under way: there may be many.
        """
        waiting = Task.objects.filter(status=Status.PENDING, due_at__lte=Now()).order_by("account_id")
        numbers = waiting.values_list("account_id", flat=True)
        if self._last is None:  # anywhere, lest those with low numbers come first whenever a process is new
            self._last = randrange((numbers.last() or 0) + 1)  # noqa: S311 (fairness, no secret)
        start = after = self._last
        found: list[int] = []
        is_around = False
        while sum(1 for account in found if not under_way.get(account)) < room:
            account = numbers.filter(account_id__gt=after).first()
            if account is None and not is_around:
                is_around, after = True, -1
                continue
            if account is None or (is_around and account > start):
                break
            found.append(account)
            after = account
        return found
