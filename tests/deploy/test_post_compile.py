"""The hook at the end of a build installs the extras that are named, and refuses others before it installs anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.serving import ROOT

ALWAYS = ["manage.py fetch_models", "manage.py collectstatic --noinput --verbosity 0"]


def build(folder: Path, extras: str | None) -> tuple[int, list[str], str]:
    """Exit status, what was asked of Python, and what was said."""
    python = folder / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"} | ({} if extras is None else {"EXTRAS": extras})
    command = [ROOT / "bin" / "post_compile"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(
    ("extras", "files"),
    [(None, []), ("", []), ("redis", ["redis"]), ("redis celery, llm", ["redis", "celery", "llm"])],
)
def test_it_installs_what_is_named_and_fetches_the_models(tmp_path: Path, extras: str | None, files: list[str]) -> None:
    status, asked, _ = build(tmp_path, extras)
    listed = "".join(f" -r requirements-{name}.txt" for name in files)
    pip = [f"-m pip install --disable-pip-version-check --no-cache-dir --require-hashes{listed}"] if files else []
    assert (status, asked) == (0, [*pip, *ALWAYS])


@pytest.mark.parametrize("extras", ["redis,nosuch", "models", "*", "../requirements"])
def test_it_refuses_what_does_not_exist(tmp_path: Path, extras: str) -> None:
    status, asked, said = build(tmp_path, extras)
    assert (status, asked) == (1, [])
    assert f"EXTRAS names {extras.removeprefix('redis,')}, which does not exist. Choose from: aoq celery " in said
    assert " models" not in said.partition(":")[2]
