"""What was packed is found as in the dictionary."""

from __future__ import annotations

from hibari.g2p import G2P

from tests.engines.voices.test_synthesizer import SENTENCES
from voiceapp.engines.hibari.packed import Packed
from voiceapp.engines.hibari.voices import find_voices


def test_every_value_is_found_and_nothing_else() -> None:
    entries = {"read": {"DEFAULT": "ɹˈid", "VBD": "ɹˈɛd"}, "": "", "ê": 1.5, "am": None, "x" * 500: ["a"]}
    kept = Packed(entries)
    assert {key: kept.get(key) for key in entries} == entries
    assert [kept.get(key) for key in ("Read", "e", "z")] == [None] * 3
    assert Packed({}).get("read") is None


def test_sentences_are_read_as_with_the_dictionaries() -> None:
    model, rules = next(find_voices()).model, G2P()
    read = [" ".join(phonemes for _, phonemes in model.read(text)) for text in SENTENCES]
    assert read == [rules(text) for text in SENTENCES]
