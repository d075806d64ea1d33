"""Requests after something told: "The kettle is boiling. What time is it in Tokyo?" """

from __future__ import annotations

import re
from collections.abc import Iterator

from voiceapp.engines.assistant.skills.phrases import read
from voiceapp.engines.assistant.skills.words import plain, request
from voiceapp.engines.sentences import SentenceSplitter

_ASKS, _IS_A_TASK = (re.compile(read("words")[name]) for name in ("asks", "is_a_task"))
_LEANS = re.compile(r"\b(?:this|that|these|those|they|them|he|she|him|her|(?<!is )(?<!was )(?<!be )it)\b")
"""A question about what was told just before, which no skill has read; unless "again" follows."""
_AGAIN = re.compile(r"\bagain\b")
_QUOTES = re.compile('[:"“”«»„`]')


def last_requests(text: str) -> Iterator[str]:
    """Yield the ends of `text` that stand for themselves as a question or command after statements; longest first.

    "Translate this. What time is it?" has none: the question may be what the sentence before it is about.
    """
    splitter = SentenceSplitter(first_clause_chars=0)
    sentences = [*splitter.feed(text), *splitter.flush()]
    for at in range(1, len(sentences)):
        if not _is_told(sentences[at - 1]):
            return
        rest = "".join(sentences[at:]).strip()
        asked = request(rest)
        if (rest.endswith("?") or _ASKS.match(asked)) and len(asked.split()) > 1 and not _leans(plain(rest)):
            yield rest


def _leans(said: str) -> bool:
    return _LEANS.search(_AGAIN.split(said)[-1]) is not None


def _is_told(sentence: str) -> bool:
    has_mark = sentence.rstrip().endswith("?") or _QUOTES.search(sentence) is not None
    return not has_mark and _IS_A_TASK.match(request(sentence)) is None
