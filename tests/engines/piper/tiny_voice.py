"""A Piper model that hums: a tone for each phoneme, an octave higher for the second speaker. Small and honest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RATE_HZ = 16_000
SAMPLES_PER_ID = 800
TONE_HZ = 440


def write_voice(file: Path, *, speakers: Mapping[str, int]) -> None:
    """Write the model to `file` and its settings beside it; it reads letters."""
    angle = np.float32(2 * np.pi * TONE_HZ / RATE_HZ)

    def constant(name: str, value: np.ndarray) -> onnx.TensorProto:
        return numpy_helper.from_array(value, name)

    nodes = [
        helper.make_node("Mul", ["input_lengths", "per_id"], ["count"]),
        helper.make_node("Squeeze", ["count"], ["limit"]),
        helper.make_node("Range", ["zero", "limit", "one"], ["places"]),
        helper.make_node("Cast", ["places"], ["times"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["sid"], ["speaker"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["speaker", "one_float"], ["octave"]),
        helper.make_node("Mul", ["times", "angle"], ["phase"]),
        helper.make_node("Mul", ["phase", "octave"], ["pitched"]),
        helper.make_node("Sin", ["pitched"], ["sine"]),
        helper.make_node("Reshape", ["sine", "shape"], ["output"]),
        helper.make_node("Identity", ["input"], ["unused_input"]),
        helper.make_node("Identity", ["scales"], ["unused_scales"]),
    ]
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.INT64, [1, "n"]),
        helper.make_tensor_value_info("input_lengths", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
        helper.make_tensor_value_info("sid", TensorProto.INT64, [1]),
    ]
    constants = [
        constant("per_id", np.array([SAMPLES_PER_ID], dtype=np.int64)),
        constant("zero", np.array(0, dtype=np.int64)),
        constant("one", np.array(1, dtype=np.int64)),
        constant("one_float", np.array([1], dtype=np.float32)),
        constant("angle", np.array([angle], dtype=np.float32)),
        constant("shape", np.array([1, 1, 1, -1], dtype=np.int64)),
    ]
    outputs = [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 1, 1, "samples"])]
    graph = helper.make_graph(nodes, "tones", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(file))
    symbols = "_^$ abcdefghijklmnopqrstuvwxyz.,?!"
    settings = {
        "audio": {"sample_rate": RATE_HZ},
        "phoneme_type": "text",
        "phoneme_id_map": {symbol: [number] for number, symbol in enumerate(symbols)},
        "speaker_id_map": dict(speakers),
        "language": {"code": "xx_XX"},
    }
    file.with_name(f"{file.name}.json").write_text(json.dumps(settings))
