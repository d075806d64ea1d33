"""A model cut in two says the same as the whole, part by part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save
from onnxruntime import InferenceSession

from voiceapp.engines.models import weights
from voiceapp.engines.piper import model as piper_model
from voiceapp.engines.piper.model import DECODER, ENCODER, PiperModel, read_settings
from voiceapp.engines.piper.streaming_export import build, build_all
from voiceapp.engines.piper.voices import SHIPPED

PHONEMES = "ðə lˈɪvɪŋ ɹˈuːm ɪz ɔnðə sˈɛkənd flˈoːɹ, ænd ðə kˈɪtʃən ɪz dˌaʊnstˈɛɹz."


def test_parts_are_what_they_would_be_in_the_whole(models: None, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings(weights.path(SHIPPED).with_suffix(""))
    model = PiperModel(replace(settings, noise=0.0, noise_of_lengths=0.0))  # it says the same twice
    parts = list(model.speak(PHONEMES, rate=1.0))
    again = list(model.speak(PHONEMES, rate=1.0))  # with the margin that was found
    monkeypatch.setattr(piper_model, "FIRST_FRAMES", 100_000)
    (whole,) = model.speak(PHONEMES, rate=1.0)
    assert len(parts) > 3
    assert len(parts[0]) < 0.3 * settings.sample_rate_hz
    for joined in (np.concatenate(parts), np.concatenate(again)):
        assert joined.shape == whole.shape
        assert np.abs(joined - whole).max() < 1e-4


def test_a_decoder_shows_how_far_it_looks(models: None, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings(weights.path(SHIPPED).with_suffix(""))
    for narrow, found in ((piper_model.MARGIN_FRAMES, piper_model.MARGIN_FRAMES), (4, piper_model.WIDE_MARGIN_FRAMES)):
        monkeypatch.setattr(piper_model, "MARGIN_FRAMES", narrow)
        model = PiperModel(settings)
        assert list(model.speak(PHONEMES, rate=1.0))
        assert model.margin == found


@pytest.fixture
def no_voice(tmp_path: Path) -> Path:
    value, same = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "none", [value], [same])
    save(helper.make_model(graph), tmp_path / "none.onnx")
    (tmp_path / "none.onnx.json").write_text("{}")
    return tmp_path / "none.onnx"


def test_what_is_no_voice_is_not_cut(no_voice: Path) -> None:
    with pytest.raises(ValueError, match="no decoder"):
        build(no_voice, no_voice.parent)
    assert not list(no_voice.parent.glob("*coder*"))


def test_voices_of_a_folder_are_cut_once_and_others_stay_whole(no_voice: Path) -> None:
    folder = no_voice.parent
    vits(folder / "own.onnx")
    (folder / "damaged.onnx").write_bytes(b"no model")
    for name in ("own", "damaged", "absent"):
        (folder / f"{name}.onnx.json").write_text("{}")
    said = list(build_all(folder))
    assert [line.split(":")[0] for line in said] == ["voice damaged", "voice none", "voice own"]
    assert said[-1] == "voice own: ready."
    assert [line for line in build_all(folder) if "own" in line] == []
    encoder, decoder = (InferenceSession(folder / f"own{ending}") for ending in (ENCODER, DECODER))
    (frames,) = encoder.run(None, {"input": np.ones((1, 4), dtype=np.float32)})
    (sound,) = decoder.run(None, {decoder.get_inputs()[0].name: frames})
    np.testing.assert_allclose(sound, np.full((1, 4), 6.0))


def vits(file: Path) -> None:
    """A model with a decoder by the name that Piper's training gives it, which multiplies what is doubled by three."""
    value = helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, "n"])
    sound = helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, "n"])
    nodes = [
        helper.make_node("Add", ["input", "input"], ["frames"]),
        helper.make_node("Mul", ["frames", "dec.conv_pre.weight"], ["output"]),
    ]
    three = numpy_helper.from_array(np.array([3], dtype=np.float32), "dec.conv_pre.weight")
    graph = helper.make_graph(nodes, "voice", [value], [sound], [three])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), file)
