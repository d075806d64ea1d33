"""Room on the disks: what is looked at, how often, and what happens when there is too little."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from voiceapp.disk import DiskFull, Disks, disks, free_bytes_of, is_full

HOME, OTHER = Path("/home-of-the-server"), Path("/another")
MIB = 1024**2


class Volumes:
    """What is free, and how often it was asked for."""

    def __init__(self, **free_mib: int) -> None:
        self.free = {Path(f"/{name}"): mib * MIB for name, mib in free_mib.items()}
        self.looks = 0
        self.now = 50.0

    def free_bytes(self, folder: Path) -> int:
        self.looks += 1
        return self.free[folder]

    def clock(self) -> float:
        return self.now

    def watched(self) -> Disks:
        places = {f"what is in {folder}": folder for folder in self.free}
        return Disks(places, free_bytes=self.free_bytes, is_writable=lambda folder: True, clock=self.clock)


@pytest.fixture(autouse=True)
def _reserve(settings: Any) -> None:
    settings.DISK_RESERVE_BYTES = 100 * MIB


def test_the_fullest_disk_decides() -> None:
    volumes = Volumes(first=5000, second=99)
    watched = volumes.watched()
    assert str(watched.shortage()) == (
        "Only 99 MiB of disk space are left for what is in /second, less than 100 MiB (DISK_RESERVE_BYTES): make room."
    )
    with pytest.raises(DiskFull) as refused:
        watched.require_room()
    assert (refused.value.http_status, refused.value.retry_after_s) == (503, 60)
    assert "/second" not in refused.value.message


def test_it_looks_once_a_second_at_most() -> None:
    volumes = Volumes(only=100)
    watched = volumes.watched()
    for _ in range(100):
        assert watched.shortage() is None
    assert volumes.looks == 1
    volumes.free[Path("/only")] -= 1
    volumes.now += 1.0
    assert watched.shortage()
    assert volumes.looks == 2


def test_what_runs_may_use_half_of_the_reserve() -> None:
    watched = Volumes(only=60).watched()
    watched.require_room_in_progress(10 * MIB)
    with pytest.raises(DiskFull):
        watched.require_room_in_progress(10 * MIB + 1)
    with pytest.raises(DiskFull):
        watched.require_room()


def test_without_a_reserve_no_disk_is_too_full(settings: Any) -> None:
    settings.DISK_RESERVE_BYTES = 0
    Volumes(only=0).watched().require_room()


@pytest.mark.parametrize("reserve", [0, 1])
def test_a_folder_that_cannot_be_written_is_found(settings: Any, tmp_path: Path, reserve: int) -> None:
    settings.DISK_RESERVE_BYTES = reserve
    Disks({"VAR_DIR": tmp_path / "not" / "made"}).require_room()
    (tmp_path / "file").touch()
    watched = Disks({"VAR_DIR": tmp_path / "file" / "var"})
    with pytest.raises(DiskFull) as refused:
        watched.require_room()
    assert refused.value.message == "The server cannot write its files. Try again later."
    assert str(watched.shortage()).startswith(f"{tmp_path / 'file' / 'var'} cannot be written, the folder of VAR_DIR: ")


def test_it_finds_what_is_free_where_a_folder_will_be(tmp_path: Path) -> None:
    there = free_bytes_of(tmp_path / "not" / "made" / "yet")
    assert abs(there - free_bytes_of(tmp_path)) < 1024 * MIB
    assert there > 0


def test_this_installation_watches_its_folders_and_no_bucket(settings: Any) -> None:
    disks.cache_clear()
    try:
        assert disks().shortage() is None
        settings.DISK_RESERVE_BYTES = 2**62
        assert disks().shortage()
    finally:
        disks.cache_clear()


@pytest.mark.parametrize(("number", "found"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False)])
def test_it_knows_a_disk_that_is_full_by_its_error(number: int, found: bool) -> None:
    assert is_full(OSError(number, "")) is found
