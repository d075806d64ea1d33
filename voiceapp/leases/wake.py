"""Telling whoever works on a line that there is something to do. A hint: what gets lost is found by the next poll."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.db import transaction

_listeners: list[Callable[[str], None]] = []


def on_wake(listener: Callable[[str], None]) -> Callable[[], None]:
    """Be told the name of the line, from whatever thread commits; returns what ends it."""
    _listeners.append(listener)
    return partial(_listeners.remove, listener)


def wake(line: str) -> None:
    """There is work on a line, once the transaction at hand is committed."""
    transaction.on_commit(partial(_tell, line))


def _tell(line: str) -> None:
    for listener in list(_listeners):
        listener(line)
