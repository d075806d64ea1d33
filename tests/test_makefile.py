"""What `make` decides by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def development(folder: Path, **environment: str) -> str:
    """What `make` says about DEBUG to the commands that it starts in this folder."""
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "show.mk").write_text('show:\n\t@echo "$$DEBUG"\n')
    clean = {name: value for name, value in os.environ.items() if name not in ("DEBUG", "SECRET_KEY", "MAKEFLAGS")}
    command = ["make", "--silent", "-f", "Makefile", "-f", "show.mk", "show"]
    told = subprocess.run(command, cwd=folder, env={**clean, **environment}, capture_output=True, text=True, check=True)
    return told.stdout.strip()


def test_a_fresh_checkout_is_for_development(tmp_path: Path) -> None:
    assert development(tmp_path) == "1"


def test_it_stays_so_when_the_example_of_settings_is_copied(tmp_path: Path) -> None:
    shutil.copy(ROOT / ".env.example", tmp_path / ".env")
    with (tmp_path / ".env").open("a") as settings:
        settings.write("CHAT_BASE_URL=http://127.0.0.1:11434/v1\n")
    assert development(tmp_path) == "1"


@pytest.mark.parametrize("line", ["SECRET_KEY=long-and-random", "DEBUG=0"])
def test_an_installation_with_a_secret_or_a_word_about_it_is_left_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / ".env").write_text(f"{line}\n")
    assert development(tmp_path) == ""


def test_the_environment_has_the_last_word(tmp_path: Path) -> None:
    assert development(tmp_path, SECRET_KEY="long-and-random") == ""
    assert development(tmp_path, DEBUG="0") == "0"


def test_it_says_what_it_installs_and_leaves_standard_output_to_the_key(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.txt", "requirements-aoq.txt"):
        (tmp_path / name).touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\ncase "$*" in *createkey*) echo sk-1 ;; *) echo "Downloading for $*" ;; esac\n')
    python.chmod(0o755)
    command = ["make", "--silent", "key", "ACCOUNT=Acme"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout == "sk-1\n"
    announced, progress, aoq = told.stderr.splitlines()
    assert announced == "Installing the packages of the server: about 172 MB to download, once."
    assert progress.startswith("Downloading for -m pip install ")
    assert "--quiet" not in progress
    assert aoq.endswith("-r requirements-aoq.txt")


def commands(folder: Path, **environment: str) -> list[str]:
    """Which management commands `make run` gives in this folder, with everything installed."""
    shutil.copy(ROOT / "Makefile", folder)
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$2"\n')
    python.chmod(0o755)
    for needed in (
        "requirements.txt",
        "requirements-llm.txt",
        "requirements-aoq.txt",
        ".venv/runtime.stamp",
        ".venv/llm.stamp",
    ):
        (folder / needed).touch()
    clean = {name: value for name, value in os.environ.items() if name not in ("DEBUG", "SECRET_KEY", "MAKEFLAGS")}
    command = ["make", "--silent", "run"]
    told = subprocess.run(command, cwd=folder, env={**clean, **environment}, capture_output=True, text=True, check=True)
    return told.stdout.split()


def test_it_collects_what_the_pages_of_production_need(tmp_path: Path) -> None:
    usual = ["fetch_models", "bootstrap", "serve"]
    (tmp_path / "laptop").mkdir()
    (tmp_path / "server").mkdir()
    assert commands(tmp_path / "laptop") == usual
    assert commands(tmp_path / "server", SECRET_KEY="long-and-random") == ["collectstatic", *usual]
