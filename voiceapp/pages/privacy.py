"""The privacy page: what this installation keeps of a conversation, for how long, and who can see it."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import ngettext

from voiceapp.agents.answering import Answering
from voiceapp.catalogue.lookup import catalogue
from voiceapp.catalogue.privacy import SOUND, WORDS, is_elsewhere

HOUR_S, DAY_S = 3600, 24 * 3600


@dataclass(frozen=True, slots=True)
class Privacy:
    """The facts, from the settings."""

    transcript_days: int
    """Days for which the words of a conversation are kept; 0 keeps none."""
    recording_days: int
    """Days for which the sound of both sides is kept; 0 records nothing."""
    may_be_heard: bool
    """True if operators may listen in to open conversations."""
    known_for: str
    """Lifetime of the cookie of a login, or of a guest, in words."""
    relayed: tuple[str, ...]
    """Titles of the models that another service runs: it gets the sound."""
    sends_sound: bool
    """True if another server recognises speech for the other models."""
    sends_words: bool
    """True if another server takes part in the replies of the other models."""
    has_inspector: bool
    """True if another server inspects what is said."""


def facts(agent: Answering) -> Privacy:
    realtime = catalogue().of_kind("realtime")
    return Privacy(
        transcript_days=settings.TRANSCRIPT_DAYS,
        recording_days=settings.RECORDING_DAYS,
        may_be_heard=bool(settings.MAX_LISTENERS),
        known_for=_in_words(settings.SESSION_COOKIE_AGE),
        relayed=tuple(card.title or card.name for card in realtime if card.is_held_elsewhere),
        sends_sound=is_elsewhere(SOUND),
        sends_words=is_elsewhere(WORDS) or not (agent.chat is None or agent.chat.runs_here),
        has_inspector=bool(settings.INSPECTION_BASE_URL),
    )


def _in_words(seconds: int) -> str:
    """In days, or in hours where it is less than two days."""
    if seconds >= 2 * DAY_S:
        days = seconds // DAY_S
        return str(ngettext("%(count)d day", "%(count)d days", days) % {"count": days})
    hours = max(1, round(seconds / HOUR_S))
    return str(ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours})
