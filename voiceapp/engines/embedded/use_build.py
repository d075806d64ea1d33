"""Makes the files of the multilingual encoder: the published weights written as an ONNX graph, and its tokenizer.

The Universal Sentence Encoder (multilingual, version 3; Yang et al. 2019, https://arxiv.org/abs/1907.04307) reads word
pieces through three convolutions, sums them up and sends the sum through a small network. Only the command that fetches
the models runs this.

The table of word pieces stays in the eight bits that it is published in. The rest stays float32: int8 was measured to
be twice as fast, but the vectors were off by 0.4 % and found a little less, and the table is what needs the room.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto

from voiceapp.engines.embedded.onnx_graph import Graph
from voiceapp.engines.embedded.sentence_pieces import tokenizer

Weights = Mapping[str, NDArray[np.generic]]

START, END = 1, 2
"""The marks at the ends of a text."""
CHUNKS = 17
"""The table is published in so many parts: the row of a piece lies in part number `id % 17`."""
SPANS = ((2, 0), (3, 1), (5, 2))
"""Pieces that each of the three convolutions sees at once, and how many of them stand before."""
SAMPLE = range(6, 128_000, 40)
"""Pieces whose vectors tell which directions say most. The first six are marks."""


def build(weights_npz: Path, sp_model: Path, target_dir: Path) -> None:
    """Write `encoder.onnx` and `tokenizer.json` into `target_dir`, which is empty. Takes 10 s and 500 MB of memory.

    Raises:
        KeyError: if the weights are not those of this encoder.
    """
    with np.load(weights_npz, allow_pickle=False) as archive:
        weights = {name: archive[name] for name in archive.files}
    onnx.save(encoder(weights, rotation=directions(weights)), target_dir / "encoder.onnx")
    tokenizer(sp_model.read_bytes()).save(str(target_dir / "tokenizer.json"), pretty=False)


def directions(weights: Weights) -> NDArray[np.float32]:
    """An orthogonal matrix that turns vectors so that their first numbers say most: a shorter vector is a beginning.

    The principal components of single pieces in all languages, which no document has a part in.
    """
    plain = ort.InferenceSession(encoder(weights).SerializeToString())
    rows = sum(weights[f"q{chunk + 1}"].shape[0] for chunk in range(CHUNKS))
    found = [plain.run(None, {"ids": np.array([START, piece, END])})[0][0] for piece in SAMPLE if piece < rows]
    sample = np.array(found, dtype=np.float64)
    _, turned = np.linalg.eigh(sample.T @ sample)
    turned = turned[:, ::-1]  # the largest first
    signs = np.sign(turned[np.abs(turned).argmax(axis=0), np.arange(turned.shape[1])])  # else left to the library
    return np.asarray(turned * signs, dtype=np.float32)


def encoder(weights: Weights, *, rotation: NDArray[np.float32] | None = None) -> onnx.ModelProto:
    """From `ids`, int64 [length], one text with the marks at its ends, to `embedding`, unit float32 [1, width]."""
    graph = _Graph(weights)
    pieces = graph.pieces()
    total = graph.op("ReduceSum", graph.read(pieces), graph.numbers(0), keepdims=1)
    length = graph.op("Cast", graph.op("Shape", "ids"), to=TensorProto.FLOAT)
    projected = graph.op("Add", graph.times(total, "cnn_W"), graph.op("Mul", length, graph.weight("cnn_b")))
    vector = graph.dense(graph.op("Div", projected, graph.op("Sqrt", length)))
    if rotation is not None:
        vector = graph.op("MatMul", vector, graph.constant(rotation))
    graph.result("LpNormalization", vector, axis=-1, p=2)
    return graph.model("use_multilingual", inputs={"ids": ["length"]}, output=[1, weights["d3"].shape[1]])


class _Graph(Graph):
    """The encoder in the making."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self._weights = weights
        self._epsilon = float(weights["eps"])

    def weight(self, name: str) -> str:
        return self.constant(self._weights[name])

    def times(self, x: str, name: str) -> str:
        return self.op("MatMul", x, self.weight(name))

    def pieces(self) -> str:
        """The rows of the table for all pieces of the text, [length, width]."""
        chunks = [self._weights[f"q{chunk + 1}"] for chunk in range(CHUNKS)]
        table = np.stack(chunks, axis=1).reshape(-1, chunks[0].shape[1])
        rows = self.op("Cast", self.op("Gather", self.constant(table), "ids"), to=TensorProto.FLOAT)
        chunk = self.op("Mod", "ids", self.constant(np.array(CHUNKS, dtype=np.int64)))
        scale, low = (
            self.op("Gather", self.constant(self._weights[name][:, np.newaxis]), chunk) for name in ("scale", "lo")
        )
        return self.op("Add", self.op("Mul", rows, scale), low)

    def read(self, pieces: str) -> str:
        """The pieces with what three convolutions see around each of them, normalized."""
        spans = [span for span, _ in SPANS]
        joined = {
            name: self.constant(np.concatenate([self._weights[f"{name}{span}"] for span in spans], axis=-1))
            for name in ("proj", "proj_b", "ln_g", "ln_b")
        }
        narrow = self.op("Add", self.op("MatMul", pieces, joined["proj"]), joined["proj_b"])
        narrow = self.normalize(narrow, joined["ln_g"], joined["ln_b"])
        branches, start = [], 0
        for span, before in SPANS:
            end = start + self._weights[f"proj{span}"].shape[1]
            branch = self.op("Slice", narrow, self.numbers(start), self.numbers(end), self.numbers(1))
            branches.append(self.convolve(self.convolve(branch, 1, span, before), 2, span, before))
            start = end
        features = self.op("Concat", pieces, *branches, axis=-1)
        return self.normalize(features, self.weight("ln_g"), self.weight("ln_b"))

    def convolve(self, x: str, number: int, span: int, before: int) -> str:
        """`x` plus what a convolution makes of each row and its neighbours; beyond the ends there are zeros."""
        padded = self.op("Pad", x, self.numbers(before, 0, span - 1 - before, 0))
        length = self.op("Gather", self.op("Shape", "ids"), self.numbers(0))
        neighbours = []
        for place in range(span):
            end = self.op("Add", length, self.numbers(place))
            neighbours.append(self.op("Slice", padded, self.numbers(place), end, self.numbers(0)))
        product = self.times(self.op("Concat", *neighbours, axis=-1), f"w{number}_{span}")
        return self.op("Add", self.op("Relu", self.op("Add", product, self.weight(f"b{number}_{span}"))), x)

    def dense(self, x: str) -> str:
        """The small network at the end, with two residual connections."""
        first = self.op("Relu", self.times(x, "d0"))
        second = self.op("Relu", self.op("Add", self.times(x, "p1"), self.times(first, "d1")))
        third = self.op("Relu", self.times(second, "d2"))
        return self.op("Tanh", self.op("Add", self.times(second, "p3"), self.times(third, "d3")))

    def normalize(self, x: str, scale: str, shift: str) -> str:
        return self.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=self._epsilon)
