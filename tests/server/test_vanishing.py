"""Clients whose network is gone: their conversations end on the server as well.

`make soak` has two hundred of them and the usual times: VANISHING_CLIENTS.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.serving import ROOT

CLIENTS = int(os.environ.get("VANISHING_CLIENTS", "20"))
QUICK = {"PING_S": "3"} if CLIENTS < 200 else {}
"""Shorter than usual; two hundred are given the usual times."""
GONE_S = 60.0
PATIENCE_S = 250.0


PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


def new_network() -> list[str]:
    """What runs a command in a network of its own; nothing where the system does not allow that."""
    command = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    trial = [*command, "ip", "link", "add", "far", "type", "veth", "peer", "name", "near"]
    return (
        command if subprocess.run(trial, capture_output=True, env=os.environ | {"PATH": PATH}).returncode == 0 else []
    )


def test_what_clients_held_who_vanished_is_gone_within_a_minute() -> None:
    apart = new_network()
    how = "cable" if apart else "frozen"
    command = [sys.executable, "-m", "tests.server.vanishing", how, str(CLIENTS), json.dumps(QUICK)]
    done = subprocess.run(
        [*apart, *command],
        cwd=ROOT,
        env=os.environ | {"PATH": PATH},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"{CLIENTS} clients, {how}: gone after {found['within_s']:.0f} s")
    assert [0.8 * CLIENTS <= held <= CLIENTS for held in found["held"]] == [True, True]
    assert max(found["left"]) <= 0
    assert found["within_s"] < GONE_S
    assert set(found["close_codes"]) <= {1005, 1006}
    assert (found["status"], found["log"]) == (0, [])
