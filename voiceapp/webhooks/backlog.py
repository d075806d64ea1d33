"""Bounds on waiting deliveries, so that a receiver that is slow or away does not fill the database.

What waits is counted once a second at most, by each process for itself: a long backlog takes milliseconds to count, and
the code that adds to it is in the middle of a transaction. So the bound may be exceeded by what a second brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import monotonic

from django.conf import settings
from django.db.models import IntegerField, OuterRef, Subquery

from voiceapp.webhooks.models import Delivery, WebhookEndpoint

COUNT_EVERY_S = 1.0


@dataclass(slots=True)
class _Room:
    left: int
    until: float
    """Time of the next count, by the monotonic clock."""

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


class Backlog:
    """Number of waiting deliveries for each endpoint, as counted by this process."""

    def __init__(self) -> None:
        self._rooms: dict[int, _Room] = {}
        """Rooms by endpoint; replaced as a whole, since several threads read it."""

    def admit(self, endpoint_ids: Sequence[int]) -> list[bool]:
        """For each of several new deliveries, by its endpoint's key, whether it may wait.

        Talks to the database: one statement at most.
        """
        now = monotonic()
        rooms = {pk: room for pk, room in self._rooms.items() if room.until > now}
        if uncounted := set(endpoint_ids) - rooms.keys():
            waiting = _waiting(uncounted)
            for pk in uncounted:
                rooms[pk] = _Room(settings.WEBHOOK_MAX_WAITING - waiting.get(pk, 0), now + COUNT_EVERY_S)
            self._rooms = rooms
        return [rooms[pk].take() for pk in endpoint_ids]

    def forget(self) -> None:
        """Count anew."""
        self._rooms = {}


class _Count(Subquery):
    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS found)"
    output_field = IntegerField()
    empty_result_set_value = 0


def _waiting(endpoint_ids: Iterable[int]) -> dict[int, int]:
    """Count the deliveries to each endpoint that have not ended, up to the most that may wait."""
    unfinished = Delivery.objects.filter(endpoint=OuterRef("pk"), finish_at__isnull=True).order_by()
    count = _Count(unfinished.values("endpoint")[: settings.WEBHOOK_MAX_WAITING])
    return dict(WebhookEndpoint.objects.filter(pk__in=endpoint_ids).order_by().values_list("pk", count))


backlog = Backlog()
