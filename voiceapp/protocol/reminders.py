"""What a session says later without being asked: timers and reminders that the caller set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reminder:
    """Something to be said later."""

    name: str
    """What the caller hears it called, such as `the 5 minute timer`."""
    in_s: float
    """Seconds from now."""
    text: str
    """What is said then."""


@dataclass(frozen=True, slots=True)
class ReminderChange:
    """What a reply does to the reminders of its session."""

    sets: Reminder | None = None
    cancels_all: bool = False
    awaits_task: bool = False
    """The caller wants to be told when the next of their tasks ends."""


class Reminders:
    """Those of one session, by the clock that the session is told."""

    def __init__(self) -> None:
        self._due: list[tuple[float, Reminder]] = []
        self._awaits_task = False

    def change(self, change: ReminderChange, now: float) -> None:
        """Do what a reply asked for."""
        if change.cancels_all:
            self._due.clear()
        if change.sets is not None:
            self._due.append((now + change.sets.in_s, change.sets))
            self._due.sort(key=lambda entry: entry[0])
        self._awaits_task = self._awaits_task or change.awaits_task

    def take_wait_for_task(self) -> bool:
        """Whether the caller has asked to be told of the end of a task; it is forgotten here."""
        awaits, self._awaits_task = self._awaits_task, False
        return awaits

    def next_due(self) -> float | None:
        """When the first of them is to be said."""
        return self._due[0][0] if self._due else None

    def take_due(self, now: float) -> str:
        """What is to be said now; it is forgotten here."""
        said = [reminder.text for due, reminder in self._due if due <= now]
        self._due = [entry for entry in self._due if entry[0] > now]
        return " ".join(said)

    def pending(self, now: float) -> tuple[Reminder, ...]:
        """Those that are set, the next one first, by the time that is left."""
        return tuple(Reminder(reminder.name, max(0.0, due - now), reminder.text) for due, reminder in self._due)
