"""Counting and cutting text by the embedding model's vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from voiceapp.engines.models import tokens

pytestmark = pytest.mark.usefixtures("models")

LONG = "The circle grows with the loudness of your voice, doesn't it? " * 2_000


async def test_it_counts_word_pieces_without_the_marks_at_the_ends() -> None:
    hello, none, pieces = await tokens.count(["Hello, world!", "", "unbelievably"])
    assert (hello.count, none.count) == (4, 0)
    assert pieces.count == len(pieces.ids) > 1
    assert not hello.was_cut


async def test_it_counts_a_long_text_in_parts_as_it_would_in_one() -> None:
    assert len(LONG) > 4 * tokens.PART_CHARS
    (counted,) = await tokens.count([LONG])
    assert list(counted.ids) == tokens.tokenizer().encode(LONG, add_special_tokens=False).ids
    assert counted.text == LONG


@pytest.mark.parametrize("word", ["a", "é", "a\u0301", "a\u200b", "a\x1f", "👍"])
async def test_a_word_without_end_is_as_long_as_it_looks(word: str) -> None:
    """One of a megabyte was a single unknown token."""
    (cut,) = await tokens.count([word * (1_000_000 // len(word))], limit=8_192)
    assert (cut.count, cut.was_cut) == (8_192, True)
    assert len(cut.text) < 1_000_000


@pytest.mark.parametrize("limit", [1, 14, 4_000, 8_192])
async def test_it_cuts_after_exactly_so_many_tokens(limit: int) -> None:
    (cut,) = await tokens.count([LONG], limit=limit)
    assert cut.was_cut
    assert cut.count == len(cut.ids) == limit
    assert LONG.startswith(cut.text)
    (again,) = await tokens.count([cut.text])
    assert again.ids == cut.ids


async def test_a_text_that_just_fits_is_left_whole() -> None:
    (whole,) = await tokens.count(["one two three"], limit=3)
    assert (whole.text, whole.count, whole.was_cut) == ("one two three", 3, False)


async def test_a_cut_at_the_border_of_two_parts_loses_nothing() -> None:
    text = "ab " * (tokens.PART_CHARS // 3 + 1) + "ende " * 10
    (first,) = await tokens.count([text[: text.index("ende")]])
    (cut,) = await tokens.count([text], limit=first.count)
    assert cut.ids == first.ids
    assert cut.was_cut


async def test_a_text_far_over_the_limit_is_not_read_to_its_end() -> None:
    class Reader:
        def __init__(self) -> None:
            self.chars = 0

        def encode(self, text: str, *, add_special_tokens: bool) -> object:
            self.chars += len(text)
            return tokens.tokenizer().encode(text, add_special_tokens=add_special_tokens)

    reader = Reader()
    tokens._counted(reader, LONG * 20, 100)
    assert reader.chars < 2 * tokens.PART_CHARS


async def test_without_the_model_a_token_is_four_bytes(settings: Settings, tmp_path: Path) -> None:
    settings.MODELS_DIR = tmp_path
    short, cut, wide = await tokens.count(["12345678", "x" * 100, "é" * 4], limit=5)
    assert (short.count, short.ids, short.was_cut) == (2, (), False)
    assert (cut.count, cut.text, cut.was_cut) == (5, "x" * 20, True)
    assert wide.count == 2
