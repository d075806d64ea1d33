"""Claim, renew, finish: conditional UPDATEs on rows that hold work.

A row is either waiting or being worked on, or it is over. `due_at` says when it may be claimed: of waiting work the
time it is due, of work in progress the end of the lease. `version` is the fencing number: every claim raises it, and a
worker that comes back with an older one changes nothing. So a worker that was killed loses its row to the next one when
the lease ends, and a worker that was only slow cannot overwrite what the next one found.

The clock is the database's: workers on several hosts need not agree on the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from django.apps import apps
from django.core.exceptions import EmptyResultSet
from django.db import connection, models
from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils import timezone

from voiceapp.leases.statements import Statement
from voiceapp.leases.states import StepTable, after, before, take

LEASE_S = 30.0
"""Time that a row stays with a worker that does not renew it."""


class Leased(models.Model):
    """A row that holds work."""

    STEPS: ClassVar[StepTable]
    """The statuses of the row. It has a step `claim`, which leads to the only status in which a worker holds the row,
    and a step `release`, which leads back."""

    due_at = models.DateTimeField(default=timezone.now, editable=False)
    version = models.PositiveIntegerField(default=0, editable=False)
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    leased_by = models.CharField(max_length=80, blank=True, default="", editable=False)
    """The worker that has claimed it, now or last: host, process and a random part."""

    class Meta:
        abstract = True


Row = TypeVar("Row", bound=Leased)


@dataclass(frozen=True, slots=True)
class Lease:
    """One worker's right to one row, as long as the version stands."""

    row_id: Any
    version: int
    attempts: int
    """This one included."""


def database_now() -> Now:
    return Now()


def leased_tables() -> list[type[Leased]]:
    """Return the models whose rows hold work."""
    return [model for model in apps.get_models() if issubclass(model, Leased)]


def oldest_due_s() -> dict[str, float]:
    """Return, for each kind of work of which some is due, the seconds since its oldest row could have been claimed."""
    oldest = {
        table: Claims(table).due().order_by("due_at").values_list("due_at", flat=True)[:1] for table in leased_tables()
    }
    now = timezone.now()
    return {
        str(table._meta.verbose_name_plural): max(0.0, round((now - due_at).total_seconds(), 1))
        for table, rows in oldest.items()
        for due_at in rows
    }


def open_work() -> dict[tuple[str, str], int]:
    """Return the number of rows that are not over, by kind of work and status. Closes the connection of the thread."""
    try:
        return {
            (str(table._meta.verbose_name_plural), status): count
            for table in leased_tables()
            for status, count in table._default_manager.filter(status__in={status for status, _ in table.STEPS})
            .values_list("status")
            .annotate(models.Count("pk"))
        }
    finally:
        connection.close()


class Claims(Generic[Row]):
    """The leases on one table. Every method is one statement; call them off the event loop."""

    def __init__(
        self,
        model: type[Row],
        *,
        lease_s: float = LEASE_S,
        now: Callable[[], datetime | Now] = database_now,
    ) -> None:
        self.model = model
        self.lease_s = lease_s
        self.now = now
        self._working: str = after(model.STEPS, "claim")

    def due(self, rows: QuerySet[Row] | None = None) -> QuerySet[Row]:
        rows = self.model._default_manager.all() if rows is None else rows
        return rows.filter(status__in=before(self.model.STEPS, "claim"), due_at__lte=self.now())

    def claim(
        self, worker: str, *, limit: int = 1, rows: QuerySet[Row] | None = None, **changes: object
    ) -> list[Lease]:
        """Take the first up to `limit` due rows of `rows`, in one statement; what another worker takes is passed over.

        They come in no particular order. `changes` are further columns to set; a column may refer to itself.
        """
        try:
            claiming = self.claiming(worker, limit, rows, **changes)
        except EmptyResultSet:
            return []
        return [Lease(*found) for found in claiming.run()]

    def claiming(self, worker: str, limit: int, rows: QuerySet[Row] | None = None, **changes: object) -> Statement:
        """The statement that `claim` runs; its answer has the fields of leases.

        Raises:
            EmptyResultSet: if there can be no such rows.
        """
        wanted = self.due(rows)
        wanted = wanted if wanted.query.order_by else wanted.order_by("due_at")
        select = Statement.selecting(wanted.values("pk")[:limit])
        change = Statement.updating(
            self.model._default_manager.filter(pk__in=RawSQL("SELECT * FROM due", ())),
            **{
                "status": self._working,
                "version": F("version") + 1,
                "attempts": F("attempts") + 1,
                "leased_by": worker,
                "due_at": self._end_of_lease(),
                **changes,
            },
        )
        table, *columns = map(
            connection.ops.quote_name,
            (self.model._meta.db_table, self.model._meta.pk.column, "version", "attempts"),
        )
        # SQLite locks the database for any statement that changes it.
        lock = f"FOR UPDATE OF {table} SKIP LOCKED" if connection.features.has_select_for_update_skip_locked else ""
        # Materialized, the rows are looked for once; joined, PostgreSQL might do it again and again and lock more.
        return Statement(
            f"WITH due AS MATERIALIZED ({select.sql} {lock}) {change.sql} RETURNING {', '.join(columns)}",
            (*select.parameters, *change.parameters),
        )

    def renew(self, lease: Lease, **changes: object) -> bool:
        """Keep the row for another `lease_s`; False when the lease is lost and the work should stop."""
        return bool(self.held(lease).update(due_at=self._end_of_lease(), **changes))

    def finish(self, lease: Lease, step: str, **changes: object) -> bool:
        """Take the row's last step; False, and nothing changed, when the lease was lost.

        What must be written together with the end is written in the same transaction, after this returned True.

        Raises:
            LocalProtocolError: if the row's table has no such step.
        """
        return bool(take(self.held(lease), self.model.STEPS, step, **changes))

    def release(self, lease: Lease) -> bool:
        """Give the row back at once and uncounted: the worker stops before the work is done."""
        changes = {"due_at": self.now(), "attempts": F("attempts") - 1, "version": F("version") + 1}
        return bool(take(self.held(lease), self.model.STEPS, "release", **changes))

    def held(self, lease: Lease) -> QuerySet[Row]:
        return self.model._default_manager.filter(pk=lease.row_id, version=lease.version, status=self._working)

    def _end_of_lease(self) -> Any:
        return self.now() + timedelta(seconds=self.lease_s)
