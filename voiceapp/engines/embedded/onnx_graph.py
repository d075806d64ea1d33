"""ONNX graphs written by hand, for weights that are published without one. `onnx` is needed for building alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
"""The first with Gelu; LayerNormalization is there since 17."""
IR_VERSION = 9


class Graph:
    """Nodes and constants in the making. Each method that adds one returns the name of its result."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        result = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [result], **attributes))
        return result

    def result(self, kind: str, *inputs: str, **attributes: object) -> None:
        """The last operation, whose result is the model's `embedding`."""
        self._nodes.append(helper.make_node(kind, list(inputs), ["embedding"], **attributes))

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def numbers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def scalar(self, value: float) -> str:
        return self.constant(np.array(value, dtype=np.float32))

    def model(self, name: str, *, inputs: Mapping[str, Sequence[str]], output: Sequence[str | int]) -> onnx.ModelProto:
        """The finished model, from int64 `inputs` (their shapes by name) to a float32 `embedding`."""
        model = helper.make_model(
            helper.make_graph(
                self._nodes,
                name,
                [helper.make_tensor_value_info(key, TensorProto.INT64, shape) for key, shape in inputs.items()],
                [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, output)],
                self._constants,
            ),
            opset_imports=[helper.make_opsetid("", OPSET)],
        )
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model)
        return model
