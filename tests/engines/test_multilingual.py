"""The encoder for sixteen languages: built from its weights, and how its texts are told from English ones."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from voiceapp.engines.embedded import multilingual, use_build
from voiceapp.engines.embedded.english import share_of_english
from voiceapp.engines.embedded.multilingual import UniversalSentenceEncoder
from voiceapp.engines.embedded.sentence_pieces import tokenizer
from voiceapp.engines.models import tokens

COSINES = {
    ("You can interrupt it by talking.", "How do I stop the assistant while it speaks?"): 0.289,
    ("Wie unterbreche ich den Assistenten, während er spricht?", "You can interrupt it by talking."): 0.21,
    ("こんにちは、元気ですか", "Hello, how are you?"): 0.56,
    ("The recipe needs two eggs and some butter.", "Hello, how are you?"): 0.04,
}
"""As a graph had them that was compared with the published implementation, piece by piece."""


@pytest.mark.parametrize("pair", COSINES)
async def test_the_built_graph_computes_what_the_encoder_does(models: None, pair: tuple[str, str]) -> None:
    one, other = await UniversalSentenceEncoder().embed(pair)
    assert one @ other == pytest.approx(COSINES[pair], abs=0.01)


async def test_vectors_say_most_at_their_beginning(models: None) -> None:
    vectors = await UniversalSentenceEncoder().embed([text for pair in COSINES for text in pair])
    parts = np.square(vectors).reshape(-1, 4, 128).sum(axis=2).mean(axis=0)
    assert (np.diff(parts) < 0).all(), parts


def test_weights_of_another_kind_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "weights.npz", weight=np.zeros((2, 2), dtype=np.float32))
    with pytest.raises(KeyError):
        use_build.build(tmp_path / "weights.npz", tmp_path / "sp.model", tmp_path)


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"\x0b", b"not a model at all"])
def test_a_file_that_is_no_vocabulary_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="The file"):
        tokenizer(data)


def test_a_vocabulary_needs_its_table_of_characters() -> None:
    piece = b"\x0a\x01a\x15" + struct.pack("<f", -1.0)
    with pytest.raises(ValueError, match="table of characters"):
        tokenizer(b"\x0a" + bytes([len(piece)]) + piece)


async def test_a_translation_is_near(models: None) -> None:
    question, german, chinese, other = await UniversalSentenceEncoder().embed(
        [
            "How do I reset my password?",
            "Wie setze ich mein Passwort zurück?",
            "如何重置我的密码？",
            "It rains in Oslo.",
        ]
    )
    assert question @ german > 0.8
    assert question @ chinese > 0.8
    assert question @ other < 0.2


@pytest.mark.parametrize("text", ["How do I reset it?", "api key", "The recipe needs two eggs.", "", "12 : 34"])
async def test_english_is_told(text: str, models: None) -> None:
    (counted,) = await tokens.count([text])
    assert share_of_english(counted.ids) == 1


@pytest.mark.parametrize(
    "text", ["Wie ist das Wetter?", "Je n'entends aucune réponse", "No oigo ninguna respuesta", "聞こえません", "날씨"]
)
async def test_other_languages_are_told(text: str, models: None) -> None:
    (counted,) = await tokens.count([text])
    assert share_of_english(counted.ids) < 0.2


def test_of_a_text_whose_words_the_other_model_does_not_know_only_the_beginning_is_read(models: None) -> None:
    assert len(multilingual._pieces("ab1\U0001f9ff-" * 100_000)) == multilingual.MAX_PIECES
    assert len(multilingual._pieces("Guten Tag. " * 1_000)) < multilingual.MAX_PIECES
