"""Documents that the assistant replies from, for callers who ask."""

from __future__ import annotations

from collections.abc import Sequence

from voiceapp.engines.assistant.documents import Passage
from voiceapp.engines.assistant.skills.words import listed

MOST_TITLES = 5
"""Titles that are read aloud: of a longer list, listeners remember no more."""
NO_DOCUMENTS = "I have read no documents."
ONLY_MANUAL = "I have read the manual of this program, and no other documents."


def known_documents(passages: Sequence[Passage]) -> str:
    """The titles of the documents that operators added, the first few of them by name."""
    titles = list(dict.fromkeys(passage.title for passage in passages if not passage.is_manual))
    if not titles:
        return ONLY_MANUAL if passages else NO_DOCUMENTS
    count = f"{len(titles)} documents" if len(titles) > 1 else "one document"
    manual = " I also know the manual of this program." if any(passage.is_manual for passage in passages) else ""
    return f"I reply from {count}: {_listed(titles)}.{manual}"


def _listed(titles: Sequence[str]) -> str:
    if len(titles) > MOST_TITLES:
        return f"{', '.join(titles[:MOST_TITLES])}, and {len(titles) - MOST_TITLES} more"
    return listed(titles)
