"""Fetches a model from an address that the operator named, once: with progress, and resumed if need be."""

from __future__ import annotations

import asyncio
import errno
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from voiceapp.engines.models import hub
from voiceapp.engines.models.fetching import PROGRESS_S, FetchError, locked
from voiceapp.engines.models.weights import sha256_of
from voiceapp.errors import VoiceError
from voiceapp.outbound.addresses import Network
from voiceapp.outbound.client import Outbound

STALLED_S = 60.0
MAX_BYTES = 100_000_000_000
MAGIC = b"GGUF"
"""First bytes of such a file."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """The file that an address leads to."""

    title: str
    checksum_setting: str
    form: str
    is_one: Callable[[Path], bool]
    """Return whether a file has that form."""


def _is_gguf(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


LANGUAGE_MODEL = Kind("language model", "CHAT_MODEL_SHA256", "GGUF model", _is_gguf)


def fetch_model(
    given: str,
    to: Path,
    *,
    sha256: str,
    report: Report,
    allowed_networks: Sequence[Network] = (),
    kind: Kind = LANGUAGE_MODEL,
) -> None:
    """Bring the file at an address, or of a hub (`hf:…`), to `to`; one that is there and verified is left alone.

    What has come stays beside it when this fails, and the next call goes on behind it.

    Raises:
        FetchError: offline, disk full, wrong checksum, or a file of another kind.
    """
    try:
        if not _is_there(to, sha256):
            to.parent.mkdir(parents=True, exist_ok=True)
            with locked(to.with_name(f"{to.name}.lock"), report):
                if not _is_there(to, sha256):
                    _fetch(given, to, sha256, report, allowed_networks, kind)
                    return
        report(f"{kind.title.capitalize()} {to.name}: present.")
    except VoiceError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full(to) from error
        raise FetchError(f"The {kind.title} could not be fetched: {error.message} Run the command again.") from error
    except OSError as error:
        raise not_written(error, to, kind) from error


def _is_there(to: Path, sha256: str) -> bool:
    return to.is_file() and (not sha256 or sha256_of(to) == sha256)


def _fetch(given: str, to: Path, sha256: str, report: Report, allowed_networks: Sequence[Network], kind: Kind) -> None:
    part, url = to.with_name(f"{to.name}.part"), given
    report(f"{kind.title.capitalize()} {to.name}: fetching …")
    if given.startswith(hub.PREFIX):
        on_hub = asyncio.run(hub.find(given, allowed_networks))
        url, sha256 = on_hub.url, sha256 or on_hub.sha256
        report(f"  {on_hub.size // 1_000_000} MB from {url}")
    asyncio.run(_resume(url, part, report, allowed_networks))
    found = _verified(part, sha256, kind)
    part.replace(to)
    report(f"{kind.title.capitalize()} {to.name}: ready.")
    if not sha256:
        report(f"Its checksum was not compared. Set {kind.checksum_setting}={found} to have the same file everywhere.")


async def _resume(url: str, part: Path, report: Report, allowed_networks: Sequence[Network]) -> None:
    told_at = time.monotonic()

    def progress(size: int, whole: int) -> None:
        nonlocal told_at
        if time.monotonic() - told_at > PROGRESS_S:
            told_at = time.monotonic()
            report(f"  {size // 1_000_000} of {whole // 1_000_000 or '?'} MB")

    async with Outbound(allowed_networks=allowed_networks) as outbound:
        await outbound.resume(url, to=part, max_bytes=MAX_BYTES, stalled_s=STALLED_S, progress=progress)


def _verified(part: Path, sha256: str, kind: Kind) -> str:
    """Return the checksum of a file that is what was wanted; remove one that is not.

    Raises:
        FetchError: if it is not.
    """
    is_model = kind.is_one(part)
    found = sha256_of(part) if is_model else ""
    if is_model and (not sha256 or found == sha256):
        return found
    part.unlink()
    if is_model:
        raise FetchError(
            f"The file that came has another checksum than {kind.checksum_setting} or its hub says; nothing was kept."
        )
    raise FetchError(f"The file that came is no {kind.form}; nothing was kept.")


def not_written(error: OSError, to: Path, kind: Kind) -> FetchError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full(to)
    return FetchError(f"Cannot write the {kind.title}: {error}.")


def _full(to: Path) -> FetchError:
    free_mb = shutil.disk_usage(to.parent).free // 1_000_000
    return FetchError(f"The disk of {to.parent} is full ({free_mb} MB free); free some and run the command again.")
