"""The commands of the manual for saving and restoring an installation, run as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from tests.postgres import PostgresServer, program

CREATE, WRITE, READ = "CREATE TABLE keys (name TEXT)", "INSERT INTO keys VALUES ('alice')", "SELECT name FROM keys"


@pytest.fixture
def blocks() -> list[str]:
    """The commands of the manual's section about backups."""
    manual = Path(settings.BASE_DIR, "docs", "manual", "28-operating.md").read_text()
    section = manual.partition("## Backup")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.+?)```", section, flags=re.DOTALL)


def run(commands: str, folder: Path, **variables: str) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "bin" / "python").chmod(0o755)
    path = os.pathsep.join([str(folder / "bin"), str(Path(program("pg_dump")).parent), os.environ["PATH"]])
    subprocess.run(["sh", "-e", "-c", commands], cwd=folder, env={"PATH": path, **variables}, check=True)


def test_a_sqlite_installation_is_saved_while_it_runs_and_restored(blocks: list[str], tmp_path: Path) -> None:
    save, _, save_files, restore, _ = blocks
    file = tmp_path / "var" / "voiceapp.sqlite3"
    (tmp_path / "var" / "tasks").mkdir(parents=True)
    (tmp_path / "var" / "tasks" / "result.json").write_text("{}")
    (tmp_path / ".env").write_text("SECRET_KEY=x")
    with closing(sqlite3.connect(file, isolation_level=None)) as running:
        running.execute("PRAGMA journal_mode=WAL")
        running.execute(CREATE)
        running.execute(WRITE)
        shutil.copy(file, tmp_path / "copy.sqlite3")
        run(save + save_files, tmp_path)
        running.execute("DELETE FROM keys")
    with closing(sqlite3.connect(tmp_path / "copy.sqlite3")) as copy, pytest.raises(sqlite3.OperationalError):
        copy.execute(READ)  # what a plain copy lacks
    shutil.rmtree(tmp_path / "var" / "tasks")
    run(restore, tmp_path)
    with closing(sqlite3.connect(file)) as restored:
        assert restored.execute(READ).fetchall() == [("alice",)]
    assert (tmp_path / "var" / "tasks" / "result.json").read_text() == "{}"
    assert (tmp_path / "backup").stat().st_mode & 0o077 == 0


def test_a_postgresql_installation_is_saved_and_restored(
    blocks: list[str], tmp_path: Path, postgres: PostgresServer
) -> None:
    _, save, save_files, _, restore = blocks
    address = postgres.fresh()
    (tmp_path / "var" / "aoq").mkdir(parents=True)
    with psycopg.connect(address, autocommit=True) as running:
        running.execute(CREATE)
        running.execute(WRITE)
        run(save + save_files, tmp_path, DATABASE_URL=address)
        running.execute("DELETE FROM keys")
    (tmp_path / "var" / "aoq").rmdir()
    run(restore, tmp_path, DATABASE_URL=address)
    with psycopg.connect(address) as restored:
        assert restored.execute(READ).fetchall() == [("alice",)]
    assert (tmp_path / "var" / "aoq").is_dir()
