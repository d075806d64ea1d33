"""The product in processes of its own: the one launcher of management commands and servers for all tests."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

import voiceapp

ROOT = Path(__file__).resolve().parent.parent
LISTENING = r"Serving on http://([0-9.]+:[0-9]+)"
PATIENCE_S = 60.0
"""For what comes at once, unless the machine is busy."""
START_S = 120.0
STOP_S = 40.0

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As of all that a shell starts in the background; what we start would not hear us interrupt it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.template"])


class Process:
    """A running management command. Its log is read all the time, so that it never waits for that."""

    def __init__(
        self, *arguments: str, environment: Mapping[str, str], code: Path = ROOT, is_fresh: bool = False
    ) -> None:
        """`environment` is all that it knows of this process's own; `code` is the folder of `manage.py`.

        It is forked from `tests.template`, which saves half of the CPU time of its start; one that `is_fresh`, or has
        variables that are read before any of our code runs, is a Python of its own.
        """
        self._arguments = arguments
        self._environment = {**environment}
        self._code = code
        self._is_fresh = is_fresh or any(name.startswith(("PYTHON", "MALLOC_")) for name in environment)
        self.start()

    def start(self) -> None:
        """Start it, again after its end, with a new log."""
        self._lines: list[str] = []
        self._looked_at = 0
        self._news = threading.Condition()
        reading, writing = FORKS.Pipe(duplex=False)
        with reading, writing:
            start = _Fresh if self._is_fresh else _Forked
            self._running = start(("manage.py", *self._arguments), self._environment, self._code, writing)
            log = open(os.dup(reading.fileno()), encoding="utf-8")  # noqa: SIM115 - closed by who reads it
        self._reader = threading.Thread(target=self._read, args=(log, self._lines, self._news), daemon=True)
        self._reader.start()

    @staticmethod
    def _read(log: TextIO, lines: list[str], news: threading.Condition) -> None:
        with log:
            for line in log:
                with news:
                    lines.append(line)
                    news.notify_all()
        with news:
            news.notify_all()

    @property
    def environment(self) -> dict[str, str]:
        """For another process of the same installation."""
        return dict(self._environment)

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def log(self) -> str:
        """What it wrote so far, as far as that came through the pipe."""
        return "".join(self._lines)

    def wait_for(self, pattern: str | re.Pattern[str], *, within_s: float = PATIENCE_S) -> re.Match[str]:
        """Read the log on to a line that matches; the process ending first is a failure that shows what it said."""
        deadline = time.monotonic() + within_s
        with self._news:
            while True:
                while self._looked_at < len(self._lines):
                    self._looked_at += 1
                    if found := re.search(pattern, self._lines[self._looked_at - 1]):
                        return found
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not self._reader.is_alive():
                    raise AssertionError(f"{pattern} was never said:\n{self.log}")
                self._news.wait(min(left_s, 0.5))

    def wait_until_logged(self, part: str) -> None:
        with self._news:
            assert self._news.wait_for(lambda: part in self.log, PATIENCE_S), f"{part} was never said:\n{self.log}"

    @property
    def has_ended(self) -> bool:
        return self._running.poll() is not None

    def signal(self, number: int = signal.SIGTERM) -> None:
        with suppress(ProcessLookupError):  # it may end between the look and the signal
            if not self.has_ended:
                os.kill(self.pid, number)

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """The exit code; everything it said is in the log."""
        code = self._running.wait(timeout_s)
        self._reader.join(PATIENCE_S)
        return code

    def kill(self) -> None:
        """A crash: it ends without a word. A child of its may keep the pipe of its log open a little longer."""
        self.signal(signal.SIGKILL)
        self._running.wait(PATIENCE_S)
        self._reader.join(1.0)

    def stop(self, timeout_s: float = STOP_S) -> int:
        """Stop it gracefully, or else kill it; the exit code."""
        if not self.has_ended:
            self.signal()
        try:
            return self.wait(timeout_s)
        finally:
            if not self.has_ended:
                self.kill()

    @property
    def memory_mb(self) -> float:
        return self._memory_mb("VmHWM")

    @property
    def resident_mb(self) -> float:
        return self._memory_mb("VmRSS")

    def _memory_mb(self, name: str) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+) kB", status)
        assert found
        return int(found[1]) / 1024

    @property
    def sockets(self) -> set[str]:
        """The inodes of the sockets that it has open."""
        targets = (_target(link) for link in Path(f"/proc/{self.pid}/fd").iterdir())
        return {target.removeprefix("socket:[").rstrip("]") for target in targets if target.startswith("socket:")}


def manage(*command: str, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a management command to its end: its exit code, and all that it said."""
    process = Process(*command, environment=environment)
    try:
        return process.wait(START_S), process.log
    finally:
        if not process.has_ended:
            process.kill()


class ServerProcess(Process):
    """`manage.py serve`, listening on 127.0.0.1."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        port: int = 0,
        arguments: Sequence[str] = (),
        code: Path = ROOT,
        is_fresh: bool = False,
    ) -> None:
        """Without a port it takes a free one, and another one each time that it starts."""
        command = ("serve", "--port", str(port), *arguments)
        super().__init__(*command, environment=environment, code=code, is_fresh=is_fresh)

    def start(self) -> None:
        """Start it and wait until it listens: on a port that is shared, another one may answer before."""
        super().start()
        try:
            self.address = self.wait_for(LISTENING, within_s=START_S)[1]
        except BaseException:
            self.kill()
            raise

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def origin(self) -> str:
        return f"http://{self.address}"

    def reasons(self) -> list[str] | None:
        """Why it is not ready, as codes; empty when it is, None while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.origin}/readyz", timeout=5):
                return []
        except urllib.error.HTTPError as refused:
            with refused:
                return [reason["code"] for reason in json.load(refused)["reasons"]]
        except OSError:  # a refusal, and a response that a busy machine does not give in time
            return None

    def wait_until_ready(self, *, or_lacking: bool = False, every_s: float = 0.1) -> None:
        """Until a session can begin; `or_lacking` is for a server that lacks something, and has warmed up then."""
        deadline = time.monotonic() + START_S
        while True:
            reasons = self.reasons()
            if reasons == [] or (or_lacking and reasons and "warming_up" not in reasons):
                return
            if self.has_ended or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"The server did not become ready: {reasons}\n{self.log}")
            time.sleep(every_s)

    def wait_until_answering(self) -> None:
        deadline = time.monotonic() + START_S
        while self.reasons() is None:
            if self.has_ended or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"The server never answered:\n{self.log}")
            time.sleep(0.1)


class _Fresh:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Connection) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-u", *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log.fileno(),
            stderr=subprocess.STDOUT,
        )
        self.pid = self._popen.pid
        self.poll = self._popen.poll
        self.wait = self._popen.wait


class _Forked:
    """A fork of `tests.template`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Connection) -> None:
        self._process = FORKS.Process(target=_run, args=(command, environment, folder, log), daemon=True)
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout_s: float) -> int:
        self._process.join(timeout_s)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} has not ended within {timeout_s:g} s")
        return self._process.exitcode


def _run(command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Connection) -> None:
    """Begin as a Python of its own would: its log, its variables, its folder."""
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    log.close()
    os.environ.clear()
    os.environ.update(environment)
    importlib.reload(voiceapp)  # it sets variables of libraries
    time.tzset()
    os.chdir(folder)
    sys.path[:0] = [str(folder), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [*command]
    runpy.run_path(command[0], run_name="__main__")


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # closed since it was listed
        return ""
