"""Room on the disk for work in progress, of processes that end in any way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from pytest_django.fixtures import Settings

from voiceapp.tasks.storage.scratch import Scratch

HOLDING = """
import sys
from django.conf import settings
from voiceapp.tasks.storage.scratch import Scratch

settings.configure(VAR_DIR=sys.argv[1])
with Scratch().folder() as folder:
    (folder / "film").write_bytes(b"much")
    print(folder, flush=True)
    sys.stdin.read()
"""


def holding(var: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process in the middle of its work, and the folder that it works in."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(var)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_is_removed_and_what_another_needs_is_not(
    settings: Settings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    killed, left = holding(tmp_path)
    living, needed = holding(tmp_path)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert (left / "film").exists()
    scratch = Scratch()
    with scratch.folder() as folder:
        assert list(folder.iterdir()) == []
        assert not left.parent.exists()
        assert (needed / "film").exists()
    scratch.close()
    living.communicate()
    assert [list(root.rglob("film")) for root in (tmp_path / "work").iterdir()] == [[]]
