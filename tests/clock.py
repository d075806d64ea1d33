"""Time that a test moves by hand."""

from __future__ import annotations

from typing import Generic, TypeVar

Moment = TypeVar("Moment")


class Clock(Generic[Moment]):
    """Gives `now`, which stands still unless the test moves it."""

    def __init__(self, now: Moment) -> None:
        self.now = now

    def __call__(self) -> Moment:
        return self.now
