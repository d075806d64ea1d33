"""The encoder for sixteen languages: built from its weights, and how its texts are told from English ones."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from voiceapp.engines.embedded import multilingual, use_build
from voiceapp.engines.embedded.english import share_of_english
from voiceapp.engines.embedded.multilingual import UniversalSentenceEncoder
from voiceapp.engines.embedded.sentence_pieces import tokenizer
from voiceapp.engines.models import tokens

Weights = dict[str, NDArray[Any]]

WIDTH, NARROW, MIDDLE = 12, 6, 8
ROWS = 3
"""Of each of the 17 parts of the table."""


def random_weights() -> Weights:
    chance = np.random.default_rng(7)

    def tensor(*shape: int) -> NDArray[np.float32]:
        return chance.normal(0, 0.5, shape).astype(np.float32)

    weights: Weights = {f"q{part + 1}": chance.integers(0, 64, (ROWS, WIDTH), dtype=np.uint8) for part in range(17)}
    weights |= {"scale": tensor(17) / 32, "lo": tensor(17), "eps": np.array(1e-12)}
    for span in (2, 3, 5):
        weights |= {f"proj{span}": tensor(WIDTH, NARROW), f"proj_b{span}": tensor(NARROW)}
        weights |= {f"ln_g{span}": 1 + tensor(NARROW), f"ln_b{span}": tensor(NARROW)}
        for number in (1, 2):
            weights |= {f"w{number}_{span}": tensor(span * NARROW, NARROW), f"b{number}_{span}": tensor(NARROW)}
    features = WIDTH + 3 * NARROW
    weights |= {"ln_g": 1 + tensor(features), "ln_b": tensor(features)}
    weights |= {"cnn_W": tensor(features, WIDTH), "cnn_b": tensor(WIDTH)}
    weights |= {"d0": tensor(WIDTH, MIDDLE), "d1": tensor(MIDDLE, MIDDLE), "p1": tensor(WIDTH, MIDDLE)}
    return weights | {"d2": tensor(MIDDLE, WIDTH), "p3": tensor(MIDDLE, WIDTH), "d3": tensor(WIDTH, WIDTH)}


def use(weights: Weights, ids: list[int]) -> NDArray[np.float64]:
    """What the published implementation does, piece by piece: the measure for the graph."""

    def norm(x: NDArray[np.float64], scale: NDArray[Any], shift: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray((x - x.mean()) / np.sqrt(x.var() + float(weights["eps"])) * scale + shift)

    def around(rows: list[NDArray[np.float64]], place: int, span: int, before: int) -> NDArray[np.float64]:
        inside = range(len(rows))
        near = [place - before + step for step in range(span)]
        return np.concatenate([rows[at] if at in inside else np.zeros(NARROW) for at in near])

    pieces = [
        weights[f"q{piece % 17 + 1}"][piece // 17].astype(np.float64) * weights["scale"][piece % 17]
        + weights["lo"][piece % 17]
        for piece in ids
    ]
    spans = {2: 0, 3: 1, 5: 2}
    joined = {
        name: np.concatenate([weights[f"{name}{span}"] for span in spans], axis=-1)
        for name in ("proj", "proj_b", "ln_g", "ln_b")
    }
    narrow = [norm(piece @ joined["proj"] + joined["proj_b"], joined["ln_g"], joined["ln_b"]) for piece in pieces]
    branches = []
    for number, (span, before) in enumerate(spans.items()):
        rows = [row[number * NARROW : (number + 1) * NARROW] for row in narrow]
        for layer in (1, 2):
            matrix, shift = weights[f"w{layer}_{span}"], weights[f"b{layer}_{span}"]
            seen = [around(rows, place, span, before) for place in range(len(rows))]
            rows = [np.maximum(near @ matrix + shift, 0) + row for near, row in zip(seen, rows, strict=True)]
        branches.append(rows)
    read = [np.concatenate(parts) for parts in zip(pieces, *branches, strict=True)]
    total = sum(norm(row, weights["ln_g"], weights["ln_b"]) @ weights["cnn_W"] + weights["cnn_b"] for row in read)
    x = total / np.sqrt(len(ids))
    second = np.maximum(x @ weights["p1"] + np.maximum(x @ weights["d0"], 0) @ weights["d1"], 0)
    vector = np.tanh(second @ weights["p3"] + np.maximum(second @ weights["d2"], 0) @ weights["d3"])
    return np.asarray(vector / np.linalg.norm(vector))


@pytest.mark.parametrize("ids", [[1, 2], [1, 7, 2], [1, 7, 9, 50, 12, 33, 2]], ids=len)
def test_the_graph_computes_what_the_encoder_does(ids: list[int]) -> None:
    weights = random_weights()
    session = ort.InferenceSession(use_build.encoder(weights).SerializeToString())
    (found,) = session.run(["embedding"], {"ids": np.array(ids)})[0]
    np.testing.assert_allclose(found, use(weights, ids), atol=2e-5)


def test_turned_vectors_have_the_same_cosines_and_say_most_at_their_beginning() -> None:
    weights = random_weights()
    rotation = use_build.directions(weights)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(WIDTH), atol=1e-5)
    session = ort.InferenceSession(use_build.encoder(weights, rotation=rotation).SerializeToString())
    (found,) = session.run(["embedding"], {"ids": np.array([1, 7, 2])})[0]
    np.testing.assert_allclose(found, use(weights, [1, 7, 2]) @ rotation, atol=2e-5)
    pieces = np.stack([use(weights, [1, piece, 2]) for piece in use_build.SAMPLE if piece < 17 * ROWS]) @ rotation
    shares = np.square(pieces).sum(axis=0)
    assert (np.diff(shares) < 1e-6).all()


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
