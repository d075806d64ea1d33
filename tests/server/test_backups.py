"""An installation is saved while it runs, and restored on both databases, by the commands of the manual."""

from __future__ import annotations

import os
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres import program
from tests.prepared import environment_of, prepare
from tests.realtime.product import make_home
from tests.serving import manage

SECRET = "the-secret-of-this-installation"


@contextmanager
def rows(url: str) -> Iterator[Any]:
    """A connection that stays open, as a server's."""
    is_file = url.startswith("sqlite:///")
    made = sqlite3.connect(url[10:], isolation_level=None) if is_file else psycopg.connect(url, autocommit=True)
    with closing(made) as connection:
        yield connection


@pytest.fixture(params=["sqlite", "postgresql"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Variables of an installation with keys and with the file of a task."""
    folder = tmp_path / "var"
    url = f"sqlite:///{folder / 'voiceapp.sqlite3'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").fresh()
    make_home(folder, SECRET_KEY=SECRET, DATABASE_URL=url)
    if request.param == "postgresql":
        (folder / "voiceapp.sqlite3").unlink()
    for name in ("tasks/result.json", "aoq/relay.pem", "development-key"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name} of before")
    path = os.pathsep.join([str(Path(program("pg_dump")).parent), os.environ["PATH"]])
    return environment_of(folder) | {"SECRET_KEY": SECRET, "DATABASE_URL": url, "PATH": path}


def run(environment: dict[str, str], *arguments: object, fails: bool = False) -> str:
    status, log = manage(*map(str, arguments), environment=environment)
    assert status == int(fails), log
    return log


def test_it_is_saved_while_it_runs_and_restored(environment: dict[str, str], tmp_path: Path) -> None:
    file, url, folder = tmp_path / "saved.tar.gz", environment["DATABASE_URL"], tmp_path / "var"
    with rows(url) as running:
        running.execute("UPDATE accounts_apikey SET name = 'of late'")  # which a copy of SQLite's file lacks
        assert "Keep SECRET_KEY with it" in run(environment, "backup", file)
        assert "exists already" in run(environment, "backup", file, fails=True)
        assert file.stat().st_mode & 0o077 == 0
        running.execute("DELETE FROM accounts_apikey")
        running.execute("CREATE TABLE newer (name TEXT)")
        assert "stop the server" in run(environment, "restore", file, "--replace", fails=True)
    with tarfile.open(file) as archive:
        assert [name for name in archive.getnames() if name.startswith("var")] == ["var/tasks/result.json"]
        archive.extractall(tmp_path / "opened", filter="data")
    contents = b"".join(each.read_bytes() for each in (tmp_path / "opened").rglob("*") if each.is_file())
    assert SECRET.encode() not in contents
    (folder / "tasks" / "result.json").write_text("of later")
    (folder / "tasks" / "orphan.json").touch()
    assert "Add --replace" in run(environment, "restore", file, fails=True)
    other = environment | {"SECRET_KEY": "another-one"}
    assert "SECRET_KEY is another one" in run(other, "restore", file, "--replace", fails=True)
    assert (folder / "tasks" / "orphan.json").exists()
    assert "Restored what version" in run(environment, "restore", file, "--replace")
    with rows(url) as restored:
        assert restored.execute("SELECT DISTINCT name FROM accounts_apikey").fetchall() == [("of late",)]
        with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedTable)):
            restored.execute("SELECT name FROM newer")
    assert [each.name for each in (folder / "tasks").iterdir()] == ["result.json"]
    assert (folder / "tasks" / "result.json").read_text() == "tasks/result.json of before"
    run(environment, "check", "--database", "default")


def test_what_is_no_backup_is_refused_in_a_sentence(tmp_path: Path) -> None:
    prepare(tmp_path / "var")
    environment = environment_of(tmp_path / "var")
    (tmp_path / "text").write_text("no archive")
    with tarfile.open(tmp_path / "empty", "w:gz"):
        pass
    for name, said in (("text", "cannot be restored"), ("empty", "no backup"), ("missing", "cannot be restored")):
        log = run(environment, "restore", tmp_path / name, fails=True)
        assert said in log
        assert "Traceback" not in log
