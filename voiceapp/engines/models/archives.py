"""Fetches a Whisper in CTranslate2's form, which is several files, in an archive at an address that operators name.

Only files with the names that such a model has are unpacked, without their folders; links are left out.
"""

from __future__ import annotations

import errno
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from voiceapp.engines.models.download import Kind, Report, fetch_model, not_written
from voiceapp.engines.models.fetching import FetchError
from voiceapp.engines.models.weights import sha256_of
from voiceapp.outbound.addresses import Network

NEEDED = frozenset({"model.bin", "config.json"})
NAMES = NEEDED | {"vocabulary.json", "vocabulary.txt"}
MAX_UNPACKED_BYTES = 20_000_000_000
"""All that an archive may hold."""
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
CHECKSUM_FILE = "archive.sha256"

WHISPER = Kind(
    "Whisper",
    "ASR_MODEL_SHA256",
    ".tar, .tar.gz or .zip archive",
    lambda file: tarfile.is_tarfile(file) or zipfile.is_zipfile(file),
)


def fetch_whisper(
    url: str, folder: Path, *, sha256: str, report: Report, allowed_networks: Sequence[Network] = ()
) -> None:
    """Bring the model in the archive at `url` into `folder`; one that is there and verified is left alone.

    Raises:
        FetchError: as `fetch_model`, or the archive cannot be unpacked or holds no such model.
    """
    told = folder / CHECKSUM_FILE
    if told.is_file() and sha256 in ("", told.read_text()):
        report("Whisper: present.")
        return
    archive, unpacked = folder.with_name(f"{folder.name}.archive"), folder.with_name(f"{folder.name}.unpacked")
    fetch_model(url, archive, sha256=sha256, report=report, allowed_networks=allowed_networks, kind=WHISPER)
    try:
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir()
        for name, stream in _members(archive):
            with (unpacked / name).open("xb") as file:
                shutil.copyfileobj(stream, file, 1 << 20)
        if missing := sorted(name for name in NEEDED if not (unpacked / name).is_file()):
            raise FetchError(f"The archive at ASR_MODEL lacks {', '.join(missing)}; nothing was kept.")
        (unpacked / CHECKSUM_FILE).write_text(sha256_of(archive))
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.replace(folder)
    except FileExistsError as error:
        raise FetchError("The archive at ASR_MODEL holds more than one model; nothing was kept.") from error
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
            raise not_written(error, folder, WHISPER) from error
        raise FetchError(f"The archive at ASR_MODEL cannot be unpacked ({error}); nothing was kept.") from error
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
        archive.unlink(missing_ok=True)


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield name and content of each of the model's files; none is read to more than the size that was counted.

    Raises:
        FetchError: if all that the archive holds is too large.
    """
    left = MAX_UNPACKED_BYTES
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > left:
                raise _too_large()
            for entry in packed.infolist():
                if (name := PurePosixPath(entry.filename).name) in NAMES and not entry.is_dir():
                    with packed.open(entry) as stream:
                        yield name, stream
        return
    with tarfile.open(archive) as tape:
        for member in tape:
            if (left := left - member.size) < 0:
                raise _too_large()
            if (
                (name := PurePosixPath(member.name).name) in NAMES
                and member.isreg()
                and (file := tape.extractfile(member))
            ):
                yield name, file


def _too_large() -> FetchError:
    return FetchError(f"The archive at ASR_MODEL holds more than {MAX_UNPACKED_BYTES // 10**9} GB; nothing was kept.")
