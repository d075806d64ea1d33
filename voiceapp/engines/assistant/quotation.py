"""Quotations of a document: in full where they are read, and in short sentences where they are spoken."""

from __future__ import annotations

import re

from voiceapp.engines.assistant.retrieval import Hit
from voiceapp.engines.assistant.skills.scene import SkillReply
from voiceapp.protocol.work import Source

MAX_SPOKEN_CHARS = 115
"""Not quite eight seconds of speech."""
LEAST_CLAUSE_CHARS = 35
"""A sentence is not cut at a clause before this many characters."""
UNSPEAKABLE = re.compile(
    r"https?://|wss?://|(?<!\w)[/\\.~][\w{}-]+[/\w{}.-]*|\w+/\w+/|\b\w+_\w+|--\w|\w=\S|\w\(\)|\b\w+\.(?:py|txt|md|env|toml|json)\b"
    r"|[{}<>`]|\b[0-9a-f]{12,}\b|(?<=\s)\.env\b"
)
"""Addresses, paths, settings, identifiers, options and code."""
_CLAUSE = re.compile(r"[,;:](?=\s)")


def quotation(hit: Hit, *, is_spoken: bool, shows_source: bool) -> SkillReply:
    """The reply that a passage gives; when it is spoken, without what cannot be listened to and in eight seconds.

    Its document is named in words only where the source is not shown beside them.
    """
    passage = hit.passage
    source = Source(passage.title, passage.text, page=passage.page)
    if is_spoken:
        return SkillReply(_speakable(hit, MAX_SPOKEN_CHARS) or _ON_SCREEN, source=source, is_quotation=True)
    name = f"the manual, {passage.title}" if passage.is_manual else passage.title
    return SkillReply(hit.text if shows_source else f"From {name}: {hit.text}", source=source, is_quotation=True)


_ON_SCREEN = "That is hard to listen to, so I show it to you instead."


def _speakable(hit: Hit, room: int) -> str:
    """The sentences up to the first that cannot be listened to, as many as there is room for; empty when none can."""
    said = ""
    for sentence in hit.sentences:
        if UNSPEAKABLE.search(sentence) or len(said) + len(sentence) > room:
            break
        said = f"{said} {sentence}".strip()
    first = hit.sentences[0]  # the best one: without it the others may mislead
    return said or ("" if UNSPEAKABLE.search(first) else _beginning(first, room))


def _beginning(sentence: str, room: int) -> str:
    """A sentence up to the end of a clause, if there is room for one that says something."""
    ends = [match.start() for match in _CLAUSE.finditer(sentence) if LEAST_CLAUSE_CHARS <= match.start() <= room]
    return f"{sentence[: ends[0]]}." if ends else ""
