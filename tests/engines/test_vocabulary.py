"""What the vocabulary knows of words."""

from __future__ import annotations

import pytest

from voiceapp.engines.embedded.vocabulary import MAX_WORD_CHARS, presence, rarity, words
from voiceapp.engines.models import tokens

pytestmark = pytest.mark.usefixtures("models")


def test_words_are_stemmed_and_stop_words_left_out() -> None:
    assert words("The keys were revoked, and it was quick.") == ["key", "revok", "quick"]


def test_scripts_without_spaces_give_pairs_of_characters() -> None:
    assert words("语音识别 models 字") == ["语音", "音识", "识别", "model", "字"]


def test_what_is_too_long_for_a_word_is_not_remembered_whole() -> None:
    assert [len(word) for word in words("xy" * 1_000_000 + " y7")] == [MAX_WORD_CHARS, 2]


def test_common_words_are_less_rare_and_in_more_documents() -> None:
    the, knight = (tokens.tokenizer().token_to_id(word) for word in ("the", "knight"))
    assert 0 < rarity(the) < rarity(knight)
    assert presence("people") > presence("knight") > presence("zyzzyva") > 0
    assert presence("hous") == presence("house")
