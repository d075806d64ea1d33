"""What visitors are told about their words: what this installation keeps, for how long, and who can see it."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from voiceapp.catalogue.lookup import catalogue
from voiceapp.catalogue.privacy import SOUND, WORDS, is_elsewhere

HOUR_S, DAY_S = 3600, 24 * 3600


@dataclass(frozen=True, slots=True)
class Privacy:
    """The facts, from the settings."""

    transcript_days: int
    """How long the words of a conversation are kept; 0: they are not."""
    known_for: str
    """How long the browser keeps the cookie of a login, or of a guest, in words."""
    relayed: tuple[str, ...]
    """Titles of the models that another service runs: it gets the sound."""
    sends_sound: bool
    """Whether another server recognises the speech of the other models."""
    sends_words: bool
    """Whether another server takes part in the replies of the other models."""
    has_inspector: bool
    """Whether another server looks for what may not be said."""


def facts() -> Privacy:
    """What holds on this server."""
    realtime = catalogue().of_kind("realtime")
    return Privacy(
        transcript_days=settings.TRANSCRIPT_DAYS,
        known_for=_in_words(settings.SESSION_COOKIE_AGE),
        relayed=tuple(card.title or card.name for card in realtime if card.is_held_elsewhere),
        sends_sound=is_elsewhere(SOUND),
        sends_words=is_elsewhere(WORDS),
        has_inspector=bool(settings.INSPECTION_BASE_URL),
    )


def _in_words(seconds: int) -> str:
    """In days, or in hours where it is less than two days."""
    count, unit = (seconds // DAY_S, "day") if seconds >= 2 * DAY_S else (max(1, round(seconds / HOUR_S)), "hour")
    return f"{count} {unit}{'' if count == 1 else 's'}"
