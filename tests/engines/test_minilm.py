"""The embedding model: built from its weights, and running with the real ones."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from voiceapp.engines.embedded import minilm_build
from voiceapp.engines.embedded.embedding import DIMENSIONS, WINDOW_TOKENS, MiniLM

Weights = dict[str, NDArray[np.float32]]

WIDTH, WIDE, WORDS, PLACES, LAYERS, HEADS = 64, 128, 50, 40, 2, 2


def random_weights() -> Weights:
    """A BERT of two layers and two heads."""
    chance = np.random.default_rng(7)

    def tensor(*shape: int) -> NDArray[np.float32]:
        return chance.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": tensor(WORDS, WIDTH),
        "embeddings.position_embeddings.weight": tensor(PLACES, WIDTH),
        "embeddings.token_type_embeddings.weight": tensor(2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        for part, (rows, columns) in {
            "attention.self.query": (WIDTH, WIDTH),
            "attention.self.key": (WIDTH, WIDTH),
            "attention.self.value": (WIDTH, WIDTH),
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (WIDE, WIDTH),
            "output.dense": (WIDTH, WIDE),
        }.items():
            weights[f"{name}.{part}.weight"] = tensor(rows, columns)
            weights[f"{name}.{part}.bias"] = tensor(rows)
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
    for name in norms:
        weights[f"{name}.weight"] = 1 + tensor(WIDTH)
        weights[f"{name}.bias"] = tensor(WIDTH)
    return weights


def bert(weights: Weights, ids: list[int]) -> NDArray[np.float64]:
    """What the paper says, one text at a time: the measure for the graph."""

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return np.asarray(x * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def linear(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])

    x = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    ).astype(np.float64)
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        query, key, value = (linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        heads = []
        for head in range(HEADS):
            at = slice(head * WIDTH // HEADS, (head + 1) * WIDTH // HEADS)
            scores = query[:, at] @ key[:, at].T / math.sqrt(WIDTH // HEADS)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(scores / scores.sum(-1, keepdims=True) @ value[:, at])
        x = norm(
            linear(np.concatenate(heads, -1), f"{name}.attention.output.dense") + x,
            f"{name}.attention.output.LayerNorm",
        )
        wide = linear(x, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        x = norm(linear(wide, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
    mean = x.mean(0)
    return np.asarray(mean / np.linalg.norm(mean))


def run(session: ort.InferenceSession, *texts: list[int]) -> NDArray[np.float32]:
    longest = max(map(len, texts))
    ids = np.array([text + [0] * (longest - len(text)) for text in texts], dtype=np.int64)
    mask = np.array([[1] * len(text) + [0] * (longest - len(text)) for text in texts], dtype=np.int64)
    return np.asarray(session.run(["embedding"], {"ids": ids, "mask": mask})[0])


TEXTS = ([1, 7, 9, 12, 2], [1, 4, 2], list(range(1, 31)))


def test_the_graph_computes_what_bert_does() -> None:
    weights = random_weights()
    session = ort.InferenceSession(minilm_build.encoder(weights).SerializeToString())
    expected = np.stack([bert(weights, text) for text in TEXTS])
    np.testing.assert_allclose(run(session, *TEXTS), expected, atol=2e-5)


def test_the_built_file_is_quantized_and_stays_near(tmp_path: Path) -> None:
    weights = random_weights()
    save_file(weights, tmp_path / "model.safetensors")
    minilm_build.build(tmp_path / "model.safetensors", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["model_int8.onnx"]
    plain = len(minilm_build.encoder(weights).SerializeToString())
    assert (tmp_path / "out" / "model_int8.onnx").stat().st_size < plain / 2
    vectors = run(ort.InferenceSession(str(tmp_path / "out" / "model_int8.onnx")), *TEXTS)
    expected = np.stack([bert(weights, text) for text in TEXTS])
    assert (vectors * expected).sum(-1).min() > 0.97


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
