"""The embedding model: built from its weights, and running with the real ones."""

from __future__ import annotations

import numpy as np
import pytest

from voiceapp.engines.embedded import minilm_build
from voiceapp.engines.embedded.embedding import DIMENSIONS, WINDOW_TOKENS, MiniLM

PUBLISHED = {
    ("The weather is lovely today.", "It's so sunny outside!"): 0.666,
    ("The weather is lovely today.", "He drove to the stadium."): 0.105,
    ("It's so sunny outside!", "He drove to the stadium."): 0.141,
    ("The new movie is awesome", "The new movie is so great"): 0.894,
    ("The cat sits outside", "The dog plays in the garden"): 0.284,
}
"""Cosines that the model's makers print in their documentation (sbert.net), in float32."""


@pytest.mark.parametrize("pair", PUBLISHED)
async def test_the_built_graph_computes_what_its_makers_publish(models: None, pair: tuple[str, str]) -> None:
    one, other = await MiniLM().embed(pair)
    assert one @ other == pytest.approx(PUBLISHED[pair], abs=0.03)


def test_weights_of_another_kind_are_refused() -> None:
    with pytest.raises(KeyError):
        minilm_build.encoder({"weight": np.zeros((2, 2), dtype=np.float32)})


async def test_it_puts_near_what_means_the_same(models: None) -> None:
    question, same, other = await MiniLM().embed(
        [
            "How do I stop the assistant while it speaks?",
            "You can interrupt it by talking.",
            "The recipe needs two eggs and some butter.",
        ]
    )
    assert question @ same > 0.35
    assert question @ other < 0.15


async def test_vectors_have_unit_length_and_keep_the_order(models: None) -> None:
    texts = ["short", "a rather longer sentence about nothing much at all", "", "mid sized words", "x " * 40, "end"]
    vectors = await MiniLM().embed(texts)
    assert vectors.shape == (len(texts), DIMENSIONS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    alone = MiniLM()
    for text, vector in zip(texts, vectors, strict=True):
        assert alone.embed_now(text) @ vector > 0.97  # padding moves the int8 scales a little


async def test_a_long_text_is_read_to_its_end(models: None) -> None:
    filler = "The meeting was held in a large room. " * 40
    assert len(filler.split()) > WINDOW_TOKENS
    ending = "Penguins are birds that live near the south pole and eat fish."
    long, cut, birds = await MiniLM().embed([filler + ending * 12, filler, "What do penguins eat?"])
    assert long @ birds > cut @ birds + 0.15


async def test_no_texts_give_no_vectors(models: None) -> None:
    assert (await MiniLM().embed([])).shape == (0, DIMENSIONS)
