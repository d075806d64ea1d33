"""A PostgreSQL server of a test's own: a port and a folder that nobody else knows, and nothing kept."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import psycopg
from psycopg import sql

from tests.ports import free_port

START_S = 90.0
IN_A_HURRY = ("fsync=off", "full_page_writes=off", "max_connections=200")


class PostgresServer:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._data = folder / "data"
        # It refuses to run as root, so root starts it as another user.
        self._become: list[str] = []
        if os.geteuid() == 0:
            user = next(entry.pw_name for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody"))
            shutil.chown(folder, user)
            self._become = [shutil.which("runuser") or "/usr/sbin/runuser", "-u", user, "--"]
        made = [program("initdb"), "-D", str(self._data), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"]
        self._run(*made)

    def url(self, database: str) -> str:
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
            if not known:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        return self._address(database)

    def fresh(self) -> str:
        """A value of DATABASE_URL that nobody has used before."""
        return self.url(f"test_{uuid.uuid4().hex[:12]}")

    def start(self) -> None:
        options = [part for option in IN_A_HURRY for part in ("-c", option)]
        at = ["-D", str(self._data), "-p", str(self.port), "-k", str(self._folder), "-h", "127.0.0.1"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._become, program("postgres"), *at, *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
            )
        deadline = monotonic() + START_S
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert monotonic() < deadline, "PostgreSQL does not answer"

    def stop(self) -> None:
        """As when the machine under it fails: connections are cut, nothing is tidied."""
        self._run(program("pg_ctl"), "-D", str(self._data), "stop", "-m", "immediate")
        self._process.wait(START_S)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Within the block it is not there; afterwards it is again, with what was committed before."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Within the block it takes connections and bytes, as its system does for it, and says nothing."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGCONT)  # runuser stops with what it runs, and does not notice this

    def _signal(self, number: int) -> None:
        """Send a signal to the server and all of its children, of which a running one may make more meanwhile."""
        main = int((self._data / "postmaster.pid").read_text().split()[0])
        reached: set[int] = set()
        while found := {main, *_children_of(main)} - reached:
            for process in sorted(found, key=lambda one: one != main):
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(process, number)
            reached |= found
            sleep(0.01)

    def _run(self, *command: str) -> None:
        subprocess.run([*self._become, *command], check=True, stdout=subprocess.DEVNULL, cwd=self._folder)

    def _address(self, database: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def _answers(self) -> bool:
        try:
            psycopg.connect(self._address("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def program(name: str) -> str:
    """Where one of PostgreSQL's programs is; Debian keeps them off the path."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda home: float(home.parent.name), reverse=True)
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, homes)))
    assert found is not None, f"{name} is missing: apt-get install postgresql"
    return found


@contextmanager
def start_postgres() -> Iterator[PostgresServer]:
    """A server until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as name:  # its socket's path has to be short
        server = PostgresServer(Path(name))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _children_of(process: int) -> list[int]:
    children = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # proc(5): field 4 is the parent, counted behind the name, which may hold anything.
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
        if parent == process:
            children.append(int(entry.parent.name))
    return children
