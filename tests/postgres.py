"""A PostgreSQL server of a test's own: a port and a folder that nobody else knows, and nothing kept."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import psycopg
from psycopg import sql

from tests.ports import free_port

START_S = 90.0
IN_A_HURRY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200")


@dataclass(frozen=True)
class PostgresServer:
    """A server that runs."""

    port: int

    def url(self, database: str) -> str:
        """A value of DATABASE_URL; the database is made when there is none of this name."""
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
            if not known:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        return self._address(database)

    def fresh(self) -> str:
        """A value of DATABASE_URL that nobody has used before."""
        return self.url(f"test_{uuid.uuid4().hex[:12]}")

    def _address(self, database: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"


def program(name: str) -> str:
    """Where one of PostgreSQL's programs is; Debian keeps them off the path."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda home: float(home.parent.name), reverse=True)
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, homes)))
    assert found is not None, f"{name} is missing: apt-get install postgresql"
    return found


@contextmanager
def start_postgres() -> Iterator[PostgresServer]:
    """A server until the end of the block. It refuses to run as root, so root starts it as somebody else."""
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as name:  # its socket's path has to be short
        folder = Path(name)
        become: list[str] = []
        if os.geteuid() == 0:
            user = next(entry.pw_name for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody"))
            shutil.chown(folder, user)
            become = [shutil.which("runuser") or "/usr/sbin/runuser", "-u", user, "--"]
        data = folder / "data"
        initdb = [program("initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"]
        subprocess.run([*become, *initdb], check=True, stdout=subprocess.DEVNULL, cwd=folder)
        port = free_port()
        options = [part for option in IN_A_HURRY for part in ("-c", option)]
        log = (folder / "log").open("wb")
        command = [
            program("postgres"),
            "-D",
            str(data),
            "-p",
            str(port),
            "-k",
            str(folder),
            "-h",
            "127.0.0.1",
            *options,
        ]
        process = subprocess.Popen([*become, *command], stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            server = PostgresServer(port)
            deadline = monotonic() + START_S
            while not _answers(port):
                assert process.poll() is None, (folder / "log").read_text()
                assert monotonic() < deadline, "PostgreSQL does not answer"
            yield server
        finally:
            _stop(data, become)
            process.wait(START_S)
            log.close()


def _stop(data: Path, become: list[str]) -> None:
    subprocess.run(
        [*become, program("pg_ctl"), "-D", str(data), "stop", "-m", "immediate"],
        stdout=subprocess.DEVNULL,
        check=True,
        cwd=data.parent,
    )


def _answers(port: int) -> bool:
    try:
        psycopg.connect(f"postgres://postgres@127.0.0.1:{port}/postgres", connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
