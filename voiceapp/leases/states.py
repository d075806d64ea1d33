"""State machines of rows: tables from (status, step) to status, and the conditional UPDATE that takes a step.

A step leads to one status, whichever status it starts from, so that a single UPDATE can take it for many rows. A row
whose status does not have the step stays as it is: of two processes that want to take different steps, one does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from voiceapp.errors import LocalProtocolError

StepTable = Mapping[tuple[Any, str], Any]
"""Table from (status, step) to status; statuses are members of a `TextChoices`."""


def before(table: StepTable, name: str) -> tuple[str, ...]:
    """The statuses that a step may be taken from.

    Raises:
        LocalProtocolError: if the table has no such step.
    """
    found = tuple(status for status, step in table if step == name)
    if not found:
        raise LocalProtocolError(f"The table has no step '{name}'.")
    return found


def after(table: StepTable, name: str) -> Any:
    """The status that a step leads to.

    Raises:
        LocalProtocolError: if the table has no such step, or one that leads to several statuses.
    """
    found = {table[status, name] for status in before(table, name)}
    if len(found) > 1:
        raise LocalProtocolError(f"The step '{name}' leads to several statuses: {', '.join(sorted(found))}.")
    return found.pop()


def take(rows: QuerySet[Any], table: StepTable, name: str, **changes: object) -> int:
    """Take a step for those of the rows that may take it, and set further columns; returns how many took it.

    Raises:
        LocalProtocolError: if the table has no such step.
    """
    return int(rows.filter(status__in=before(table, name)).update(status=after(table, name), **changes))
