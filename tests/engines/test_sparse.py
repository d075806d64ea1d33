"""Vectors of a text's words."""

from __future__ import annotations

import numpy as np
import pytest

from voiceapp.engines.embedded.sparse import hashed, sparse
from voiceapp.engines.models import tokens
from voiceapp.engines.text_interfaces import SparseEntry

pytestmark = pytest.mark.usefixtures("models")


def entries(text: str, *, is_query: bool = False) -> dict[str, SparseEntry]:
    (counted,) = tokens.count_now([text])
    return {entry.token: entry for entry in sparse(counted.ids, is_query=is_query)}


def product(query: str, document: str) -> float:
    asked, held = entries(query, is_query=True), entries(document)
    return sum(entry.value * held[token].value for token, entry in asked.items() if token in held)


def test_every_entry_names_a_piece_of_the_vocabulary() -> None:
    found = entries("Penguins swim, penguins waddle.")
    assert {"swim", "penguins"} <= found.keys()
    for token, entry in found.items():
        assert tokens.tokenizer().token_to_id(token) == entry.index
        assert entry.value > 0


def test_entries_come_by_index_each_once() -> None:
    (counted,) = tokens.count_now(["to be or not to be, that is the question"])
    places = [entry.index for entry in sparse(counted.ids, is_query=False)]
    assert places == sorted(set(places))


def test_marks_and_unknown_characters_are_left_out() -> None:
    assert entries("?! … 🎉 --").keys() == set()


def test_a_document_weighs_what_it_repeats_and_less_the_longer_it_is() -> None:
    once, twice = entries("circle"), entries("circle circle")
    assert once["circle"].value < twice["circle"].value < 2 * once["circle"].value
    assert entries("circle " + "voice " * 300)["circle"].value < once["circle"].value


def test_a_query_weighs_what_is_rare() -> None:
    asked = entries("the knight", is_query=True)
    assert asked["knight"].value > 10 * asked["the"].value
    assert entries("the knight")["the"].value == entries("the knight")["knight"].value


def test_the_product_finds_the_document_with_the_querys_words() -> None:
    query = "when does a key expire"
    assert product(query, "A key can expire by itself.") > product(query, "When does a bird sing in a tree?")
    assert product(query, "Nothing shared here!") == 0


def test_hashed_words_have_length_one_and_meet_where_words_are_shared() -> None:
    one, other, none = (
        hashed(text, 640) for text in ("revoke the key", "keys that were revoked", "two eggs and butter")
    )
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-6)
    assert one @ other > 0.9
    assert abs(float(one @ none)) < 0.35


def test_a_text_without_words_hashes_to_nothing() -> None:
    assert not hashed("the of and ?!", 128).any()


def test_hashes_are_the_same_in_every_process() -> None:
    vector = hashed("penguin", 640)
    assert np.flatnonzero(vector).tolist() == [387]
    assert vector[387] == -1
