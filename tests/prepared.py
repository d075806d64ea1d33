"""What every server that a test starts would have to make first, made once for all workers: tables, the index over
the manual, static files."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from django.conf import settings

MAKE_S = 240.0
LIGHT_VOICE = {"DEFAULT_VOICE": "en-us"}
"""espeak-ng speaks: a neural voice costs each server seconds of a core, so tests that need it ask for it."""
SHARED = "TESTS_SHARED_FOLDER"
"""The variable that tells workers where the process that started them keeps what is prepared."""

_MAKE = """
import asyncio
import django
django.setup()
from django.core.management import call_command
from voiceapp.engines.assistant.chat import RetrievalAssistant
call_command("migrate", verbosity=0)
asyncio.run(RetrievalAssistant().warm())
"""


def environment_of(folder: Path) -> dict[str, str]:
    """Variables of an installation in `folder`: of this process's own, only what says where programs and people are."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return kept | {
        "DJANGO_SETTINGS_MODULE": "voiceapp.settings",
        "DEBUG": "1",
        "SECRET_KEY": "for-tests-only",
        "VAR_DIR": str(folder),
        "DATABASE_URL": f"sqlite:///{folder / 'voiceapp.sqlite3'}",
        "MODELS_DIR": str(settings.MODELS_DIR),
        "LOG_LEVEL": "INFO",
        "TURN_BUDGET_MS": "0",  # a busy machine refuses no test
        "AOQ_PORT": "0",  # tests of the relay choose a free one
        "DATABASE_WAIT_S": "30",  # a busy machine is no database that is away
    }


def prepare(folder: Path) -> None:
    """Put tables (`voiceapp.sqlite3`) and the index over the manual (`retrieval`) into a folder, there or not."""
    shutil.copytree(_prepared(), folder, dirs_exist_ok=True)


def _make(folder: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-c", _MAKE],
        cwd=settings.BASE_DIR,
        env=environment_of(folder) | LIGHT_VOICE,
        capture_output=True,
        text=True,
        timeout=MAKE_S,
    )
    assert made.returncode == 0, made.stderr


@cache
def _prepared() -> Path:
    return once("installation", _make)


def collect_static_files(root: Path) -> None:
    """Put what `collectstatic` makes into a folder, there or not, which STATIC_ROOT may name."""
    shutil.copytree(once("static", _collect), root, dirs_exist_ok=True)


def _collect(folder: Path) -> None:
    made = subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"],
        cwd=settings.BASE_DIR,
        env=environment_of(folder) | {"DEBUG": "0", "STATIC_ROOT": str(folder)},
        capture_output=True,
        text=True,
        timeout=MAKE_S,
    )
    assert made.returncode == 0, made.stderr


def once(name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` filled: in the process that came first, for all workers of this run."""
    shared = shared_folder()
    folder, done = shared / name, shared / f"{name}.made"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that failed at it
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def shared_folder() -> Path:
    """A folder for the processes of this run, which is gone when the process that asked for it first is."""
    if SHARED not in os.environ:
        folder = Path(tempfile.mkdtemp(prefix="voiceapp-prepared-"))
        atexit.register(shutil.rmtree, folder)
        os.environ[SHARED] = str(folder)
    return Path(os.environ[SHARED])
