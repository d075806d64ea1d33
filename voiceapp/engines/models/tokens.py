"""Counting text in tokens, and cutting it to the limits that the interface documents.

The measure is the vocabulary of the embedded embedding model, without the marks at a text's ends. The counts are exact
for that model and differ from those of other models; where its file is missing (a server that only passes requests
on needs none) a token is taken to be four bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tokenizers import Tokenizer

from voiceapp.engines.models import weights
from voiceapp.engines.models.lanes import lanes

TOKENIZER_FILE = "minilm/tokenizer.json"

BYTES_PER_TOKEN = 4
"""Bytes of a token of English text, when nothing can count better."""
INLINE_CHARS = 2_000
"""So much text is counted within a millisecond: quicker where it stands than by way of a lane."""
PART_CHARS = 16_000

LONGEST_WORD = 100
"""Characters of the longest word that the tokenizer reads."""

_LONG_WORD = re.compile(rf"[^ \t\r\n!-/:-@\[-`{{-~]{{{LONGEST_WORD}}}")
_SPACE = re.compile(r"[ \t\r\n]")


@dataclass(frozen=True, slots=True)
class Counted:
    """A text that was read through the tokenizer."""

    text: str
    count: int
    ids: tuple[int, ...] = ()
    """Tokens of the text; empty where they were estimated."""
    was_cut: bool = False
    """`text` is the beginning of a longer one."""


async def count(texts: Sequence[str], *, limit: int | None = None) -> list[Counted]:
    """The tokens of each text; texts longer than `limit` tokens are cut to it.

    Raises:
        EngineUnavailable: if the lane is full.
    """
    if sum(map(len, texts)) <= INLINE_CHARS and _is_loaded():
        return count_now(texts, limit=limit)
    return await lanes().batch.run(lambda: count_now(texts, limit=limit))


def count_now(texts: Sequence[str], *, limit: int | None = None) -> list[Counted]:
    """Count tokens; blocks: 1,000 tokens take about 2 ms."""
    if not weights.path(TOKENIZER_FILE).is_file():
        return [_estimated(text, limit) for text in texts]
    reader = tokenizer()
    # One by one: the tokenizer's own batches take every core, and at a priority that is not a lane's.
    return [_counted(reader, text, limit) for text in texts]


@cache
def tokenizer() -> Any:
    """The tokenizer, neither cutting nor padding. Blocks for about 50 ms when first called.

    Raises:
        EngineUnavailable: if its file is missing.
    """
    reader = Tokenizer.from_file(str(weights.require(TOKENIZER_FILE)))
    reader.no_truncation()  # the file asks for 128 tokens, cut and padded
    reader.no_padding()
    return reader


def _is_loaded() -> bool:
    return tokenizer.cache_info().currsize > 0


def _counted(reader: Any, text: str, limit: int | None) -> Counted:
    ids: list[int] = []
    for start, part in _parts(text):
        encoding = reader.encode(part, add_special_tokens=False)
        if limit is not None and len(ids) + len(encoding) > limit:
            room = limit - len(ids)
            end = start + encoding.token_to_chars(room - 1)[1] if room else start
            return Counted(text[:end].rstrip(), limit, (*ids, *encoding.ids[:room]), was_cut=True)
        ids += encoding.ids
    return Counted(text, len(ids), tuple(ids))


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield stretches of the text, and where each begins. They end before white space or within a word of more than
    LONGEST_WORD characters, which would else be a single unknown token however long it is.

    The tokenizer reads words apart, so the tokens of the parts are those of the whole; and of a text that is far too
    long only the beginning is read.
    """
    start = 0
    while start < len(text):
        end = min(start + PART_CHARS, len(text))
        if end < len(text) and (gap := _SPACE.search(text, end, end + LONGEST_WORD)):
            end = gap.start()
        while word := _LONG_WORD.search(text, start, end):
            yield start, text[start : word.end()]
            start = word.end()
        if start < end:
            yield start, text[start:end]
        start = end


def estimated(text: str) -> int:
    """Tokens of a text, from its length alone."""
    return _estimated(text, None).count


def _estimated(text: str, limit: int | None) -> Counted:
    data = text.encode()
    tokens = -(-len(data) // BYTES_PER_TOKEN)
    if limit is None or tokens <= limit:
        return Counted(text, tokens)
    return Counted(data[: limit * BYTES_PER_TOKEN].decode(errors="ignore"), limit, was_cut=True)
