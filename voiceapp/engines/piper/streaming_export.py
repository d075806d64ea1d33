"""Cuts the graph of a Piper model in two, so that its sound can be made in parts while the first is already heard.

A Piper model (VITS, https://arxiv.org/abs/2106.06103) turns phonemes into latent frames, and those into sound. The
second half is most of the work and looks at a few neighbours of each frame only. Only the command that fetches the
models runs this; `onnx` is needed nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx.shape_inference import infer_shapes
from onnx.utils import Extractor

from voiceapp.engines.piper.model import DECODER, ENCODER

_INPUTS_OF_DECODER = ("dec.conv_pre.weight", "dec.cond.weight")
"""The weights that are multiplied with its inputs: the latent frames, and the speaker where there are several."""


def build(source: Path, target_dir: Path) -> None:
    """Write the two files of the model `source` into `target_dir`.

    Takes about a second and 300 MB of memory.

    Raises:
        ValueError: if the file is not a Piper model.
    """
    model = infer_shapes(onnx.load(source))
    weights = {name: node.input[0] for node in model.graph.node for name in node.input if name in _INPUTS_OF_DECODER}
    seam = [weights[name] for name in _INPUTS_OF_DECODER if name in weights]
    if _INPUTS_OF_DECODER[0] not in weights:
        raise ValueError("it has no decoder by the name that Piper's training gives it")
    extractor = Extractor(model)
    encoder = extractor.extract_model([each.name for each in model.graph.input], seam)
    decoder = extractor.extract_model(seam, [each.name for each in model.graph.output])
    for half, ending in ((encoder, ENCODER), (decoder, DECODER)):
        onnx.save(half, target_dir / f"{source.stem}{ending}")


def build_all(folder: Path) -> Iterator[str]:
    """Cut every voice in `folder` that is whole still; what became of each, in a line.

    A voice that stays whole speaks as well, and is heard a little later.
    """
    for settings in sorted(folder.glob("*.onnx.json")):
        source = settings.with_suffix("")
        if not source.is_file() or source.with_suffix(DECODER).is_file():
            continue
        try:
            build(source, folder)
        except (OSError, ValueError, DecodeError) as error:
            yield f"voice {source.stem}: it stays whole, since {error}."
        else:
            yield f"voice {source.stem}: ready."
