"""A Whisper fetched as an archive: unpacked safely, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engines.models.test_download import LOOPBACK, Server, server
from voiceapp.engines.models import archives
from voiceapp.engines.models.archives import fetch_whisper
from voiceapp.engines.models.fetching import FetchError

__all__ = ["server"]
MODEL = {"model.bin": bytes(range(256)) * 400, "config.json": b"{}", "vocabulary.json": b"[]", "README.md": b"read"}


def tar(files: dict[str, bytes], link: str = "") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tape:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tape.addfile(member, io.BytesIO(content))
        if link:
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tape.addfile(member)
    return packed.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "models" / "whisper" / "0123"
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]
    outside = {path.name for path in files if path.parent.name != "0123"}
    assert not outside, outside


def fetch(server: Server, folder: Path, content: bytes, sha256: str | None = None) -> list[str]:
    server.content = content
    lines: list[str] = []
    checksum = hashlib.sha256(content).hexdigest() if sha256 is None else sha256
    fetch_whisper(server.url, folder, sha256=checksum, report=lines.append, allowed_networks=LOOPBACK)
    return lines


@pytest.mark.parametrize("pack", [tar, zipped, lambda files: gzip.compress(tar(files))], ids=["tar", "zip", "tar.gz"])
def test_it_is_unpacked_once_from_any_folder(
    server: Server, folder: Path, pack: Callable[[dict[str, bytes]], bytes]
) -> None:
    content = pack({f"some/where/{name}": data for name, data in MODEL.items()})
    fetch(server, folder, content)
    assert {file.name for file in folder.iterdir()} == {*MODEL, archives.CHECKSUM_FILE} - {"README.md"}
    assert (folder / "model.bin").read_bytes() == MODEL["model.bin"]
    assert fetch(server, folder, content) == ["Whisper: present."]
    assert len(server.ranges) == 1
    larger = pack({**MODEL, "model.bin": b"another"})
    fetch(server, folder, larger)
    assert (folder / "model.bin").read_bytes() == b"another"


def test_paths_and_links_lead_nowhere(server: Server, folder: Path, tmp_path: Path) -> None:
    fetch(server, folder, tar({**MODEL, "../../vocabulary.txt": b"words"}, link="config.json"))
    assert (folder / "vocabulary.txt").read_bytes() == b"words"
    assert (folder / "config.json").read_bytes() == b"{}"
    with pytest.raises(FetchError, match=r"lacks config\.json"):
        fetch(server, folder, tar({"model.bin": b"x"}, link="config.json"))
    assert (folder / "model.bin").read_bytes() == MODEL["model.bin"]  # the one before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no archive", "is no .tar, .tar.gz or .zip archive"),
        (zipped({**MODEL, "other/model.bin": b"x"}), "more than one model"),
        (tar({"config.json": b"{}"}), "lacks model.bin"),
        (zipped(MODEL)[:-3000] + zipped(MODEL)[-400:], "cannot be unpacked|is no"),
        (gzip.compress(tar(MODEL))[:-200], "cannot be unpacked"),
    ],
    ids=["text", "two", "lacking", "broken zip", "broken tar.gz"],
)
def test_what_is_no_such_model_is_refused_in_a_sentence(
    server: Server, folder: Path, content: bytes, reason: str
) -> None:
    with pytest.raises(FetchError, match=reason):
        fetch(server, folder, content)
    assert not folder.exists()


@pytest.mark.parametrize("pack", [tar, zipped])
def test_its_size_is_bounded(
    server: Server, folder: Path, pack: Callable[[dict[str, bytes]], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 103_000)
    fetch(server, folder, pack(MODEL))
    with pytest.raises(FetchError, match="holds more than"):
        fetch(server, folder, pack({**MODEL, "padding": bytes(2000)}))


def test_another_checksum_is_refused(server: Server, folder: Path) -> None:
    with pytest.raises(FetchError, match="ASR_MODEL_SHA256"):
        fetch(server, folder, tar(MODEL), sha256="0" * 64)
    fetch(server, folder, tar(MODEL), sha256="")
