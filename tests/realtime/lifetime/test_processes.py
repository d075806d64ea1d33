"""Names of processes: the dead are told from the living, and from those who got their number."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from voiceapp.realtime.lifetime.processes import NAME_LENGTH, is_gone, own_name


def test_a_process_that_lives_is_not_gone(other: tuple[str, subprocess.Popen[str]]) -> None:
    assert len(own_name()) <= NAME_LENGTH
    assert other[0] != own_name()
    assert not is_gone(own_name())
    assert not is_gone(other[0])


def test_a_process_that_was_killed_is_gone(other: tuple[str, subprocess.Popen[str]]) -> None:
    name, process = other
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert is_gone(name)


def test_its_number_given_to_another_does_not_bring_it_back() -> None:
    host, number, _ = own_name().split(":")
    assert number == str(os.getpid())
    assert is_gone(f"{host}:{number}:an-earlier-boot+1")


@pytest.mark.parametrize("name", ["elsewhere:1:boot+1", "elsewhere:999999999:", "", "nonsense"])
def test_of_other_hosts_nothing_is_known(name: str) -> None:
    assert not is_gone(name)
