"""Normalization of speech to the plain form that skills match: lower case, no punctuation, no courtesies.

Recognised speech has unreliable punctuation and apostrophes, and people wrap a request in many words. A skill then
matches the whole of what is left, never a part of it: a wrong reply to another question is worse than none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from voiceapp.engines.assistant.skills.phrases import read

_CONTRACTIONS: dict[str, str] = read("words")["contractions"]
_NOISE, _LEAD_INS = (re.compile(read("words")[name]) for name in ("noise", "lead_ins"))
_LISTED = re.compile(r"\b(?:add|put|remove|take)\b[^.?!]{1,300} list\b|\blist with [^.?!]{1,300}")
"""Requests whose commas stand between the items of a list."""
_COMMA = re.compile(r",(?: and)? (?!please\b|thanks?\b|(?:on)?to\b)")
_TAILS = tuple(f" {words}" for words in read("words")["tails"])


def plain(text: str) -> str:
    """Lower case, contractions written out, only the punctuation that belongs to numbers.

    "What's 3,000 ÷ 2.5?" becomes "what is 3000 / 2.5".
    """
    text = text.lower().replace("’", "'").replace("‘", "'").replace("−", "-").replace("–", "-").replace("—", " ")
    text = text.replace("×", " * ").replace("÷", " / ").replace("²", " squared").replace("³", " cubed")
    text = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text))  # "são paulo" is "sao paulo"
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = _LISTED.sub(lambda found: _COMMA.sub(" and ", found[0]), text)
    text = re.sub(r"\bper cent\b", "percent", text)
    text = re.sub(r"\b([ap])\.? ?m\b\.?", r"\1m", text)
    text = " ".join(_CONTRACTIONS.get(word.strip('.,;:!?"()'), word) for word in text.split())
    text = re.sub(r"'s\b", "s", text)
    text = re.sub(r"(?<=[a-z])\*+(?=[a-z])", "", text)
    text = re.sub(r"(?<!\d)[.:](?!\d)|(?<=\d)[.:](?!\d)|(?<![\d ])[.:](?=\d)", " ", text)
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text)
    text = re.sub(r"(?<=[a-z])/(?=[a-z])", " ", text)
    text = re.sub(r"[^a-z0-9.:+\-*/^%()°$√ ]", " ", text)
    return " ".join(text.split())


def request(text: str) -> str:
    """`plain` text without the words that people wrap around a request; never empty when `plain` is not."""
    said = plain(text)
    for _ in range(3):
        for pattern in (_NOISE, _LEAD_INS):
            said = pattern.sub("", said) or said
        said = _without_tails(said)
    return said


def _without_tails(said: str) -> str:
    end = len(said)
    while (tail := next((tail for tail in _TAILS if said.endswith(tail, 0, end)), None)) is not None:
        end -= len(tail)
    return said[:end]


def listed(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
