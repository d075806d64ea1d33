"""Timers and reminders that the caller set: said later, without being asked.

A session loses them with its connection, so its client is told of them, and brings them to the session in which the
conversation goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.wire.reading import JsonObject
from voiceapp.protocol.wire.values import read_number, read_text

MAX_REMINDERS = 10
MAX_REMINDER_S = 2 * 3600
"""A conversation lasts so long at most."""
MAX_CHARS = 500
"""Length of each text of a reminder that a client restores."""
MAX_KNOWN = 100
"""So many are remembered as taken, so that none is said twice."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """Something to be said later."""

    name: str
    """Name that the caller hears, such as `the 5 minute timer`."""
    in_s: float
    """Seconds from now."""
    text: str
    id: str = ""
    """Given by the session that it is set in, and kept when another one takes it up."""

    def to_wire(self) -> JsonObject:
        return {"id": self.id, "name": self.name, "text": self.text, "due_in_ms": round(self.in_s * 1000)}


@dataclass(frozen=True, slots=True)
class ReminderChange:
    sets: Reminder | None = None
    cancels_all: bool = False


class Reminders:
    """Timers and reminders of one session, by the clock that the session is told."""

    def __init__(self, new_id: Callable[[str], str]) -> None:
        self._new_id = new_id
        self._due: list[tuple[float, Reminder]] = []
        self._known: list[str] = []
        self._has_news = False

    def change(self, change: ReminderChange, now: float) -> None:
        """Do what a reply asked for."""
        if change.cancels_all:
            self._has_news = self._has_news or bool(self._due)
            self._due.clear()
        if change.sets is not None:
            self._add(replace(change.sets, id=self._new_id("reminder")), now)

    def restore(self, given: Iterable[JsonObject], now: float) -> None:
        """Take up those of a session whose connection was lost; one that this session had already is left alone.

        Raises:
            InvalidParameter: if one cannot be read, or they are too many; none is taken up then.
        """
        found = [_read(wire, f"reminders[{position}]") for position, wire in enumerate(given)]
        new = {reminder.id: reminder for reminder in found if reminder.id not in self._known}
        if len(self._due) + len(new) > MAX_REMINDERS:
            raise InvalidParameter(f"A session keeps {MAX_REMINDERS} reminders at most.", param="reminders")
        for reminder in new.values():
            self._add(reminder, now)
        self._has_news = True  # the client hears what stands now, whatever was new

    def take_news(self) -> bool:
        """Return whether the client has yet to be told what is pending, and forget it."""
        has_news, self._has_news = self._has_news, False
        return has_news

    def next_due(self) -> float | None:
        """Time at which the first of them is to be said."""
        return self._due[0][0] if self._due else None

    def take_due(self, now: float) -> str:
        said = [reminder.text for due, reminder in self._due if due <= now]
        self._due = [entry for entry in self._due if entry[0] > now]
        self._has_news = self._has_news or bool(said)
        return " ".join(said)

    def pending(self, now: float) -> tuple[Reminder, ...]:
        """Return those that are set, the next one first, by the time that is left."""
        return tuple(replace(reminder, in_s=max(0.0, due - now)) for due, reminder in self._due)

    def _add(self, reminder: Reminder, now: float) -> None:
        self._known = [*self._known, reminder.id][-MAX_KNOWN:]
        self._due.append((now + reminder.in_s, reminder))
        self._due.sort(key=lambda entry: entry[0])
        self._has_news = True


def _read(wire: JsonObject, param: str) -> Reminder:
    due_in_ms = read_number(wire.get("due_in_ms"), f"{param}.due_in_ms", 0, MAX_REMINDER_S * 1000)
    given = {name: read_text(wire.get(name), f"{param}.{name}", limit=MAX_CHARS) for name in ("id", "name", "text")}
    if not given["id"] or not given["text"].strip():
        raise InvalidParameter(f"{param} needs an id and a text.", param=param)
    return Reminder(in_s=due_in_ms / 1000, **given)
