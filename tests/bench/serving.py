"""The real server in a process of its own, and what that process and its children cost."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.clips import ROOT
from tests.ports import free_port
from tests.serving import START_S, Process, ServerProcess

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ENVIRONMENT = {
    "DEBUG": "0",
    "HTTPS": "0",
    "SECRET_KEY": "benchmark",
    "LOG_LEVEL": "INFO",
    "DEFAULT_VOICE": "",
    "MAX_SESSIONS": "1000",
    "TURN_BUDGET_MS": os.environ.get("TURN_BUDGET_MS", "0"),
    "MAX_SESSIONS_PER_ACCOUNT": "1000",
    "MAX_CONNECTIONS_PER_ADDRESS": "1000",
    "RATE_LIMITS": "default=off",
}
"""As in production, the voice included, which the settings of tests replace; only the limits that keep one caller from
taking everything are out of the way."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process and its children have used so far, and hold now."""

    at: float
    """Seconds on the clock of `time.monotonic`."""
    cpu_s: float
    rss_mb: float
    pss_mb: float
    """Proportional: pages shared between the processes counted once."""


class Server:
    """`manage.py serve` with a folder of its own; a context manager that ends it."""

    def __init__(self, var_dir: Path, *, code_dir: Path = ROOT, **variables: str) -> None:
        self._variables = variables
        self._var_dir = var_dir
        self._code_dir = code_dir
        self.port = free_port()
        self.ready_s = 0.0
        """From the start of the process to the first 200 of /readyz."""

    def __enter__(self) -> Server:
        begun = time.monotonic()
        self._process = ServerProcess(self._environment(), port=self.port, code=self._code_dir, is_fresh=True)
        self._process.wait_until_ready(every_s=0.02)
        self.ready_s = time.monotonic() - begun
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/api-ws/v1/realtime?model=voice"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> str:
        """Migrate the database and return a new key."""
        self._run("migrate", "--verbosity", "0")
        return self._run("createkey", "--account", "bench").split()[-1]

    def cost(self) -> Cost:
        """Of the whole process tree, now."""
        return process_cost(self._process.pid)

    def _run(self, *arguments: str) -> str:
        run = Process(*arguments, environment=self._environment(), code=self._code_dir, is_fresh=True)
        assert run.wait(START_S) == 0, run.log
        return run.log

    def _environment(self) -> dict[str, str]:
        models = os.environ.get("MODELS_DIR") or str(ROOT / "var" / "models")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO_")}
        return {**inherited, **ENVIRONMENT, **self._variables, "VAR_DIR": str(self._var_dir), "MODELS_DIR": models}


def process_cost(root: int) -> Cost:
    """Of a process and all its descendants, now."""
    cpu, rss, pss = 0.0, 0.0, 0.0
    for process_id in _tree(root):
        try:
            # proc(5): fields 14 and 15 of stat, counted behind the name, which may hold anything.
            fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
            memory = Path(f"/proc/{process_id}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        cpu += (int(fields[11]) + int(fields[12])) / TICKS_PER_S
        sizes = {line.split()[0]: int(line.split()[1]) / 1024 for line in memory.splitlines()[1:]}
        rss += sizes["Rss:"]
        pss += sizes["Pss:"]
    return Cost(time.monotonic(), cpu, rss, pss)


def _tree(process_id: int) -> list[int]:
    found = [process_id]
    for parent in found:
        try:
            for thread in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (thread / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found
