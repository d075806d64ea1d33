"""Clients that read slowly, or not at all, and what they cost: memory, connections, and the patience of others.

`make soak` runs the same with a hundred clients and ten rounds: SLOW_READERS, SLOW_ROUNDS.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.prepared import prepare
from tests.serving import PATIENCE_S, ROOT

from .application import LARGE
from .process import Served, environment_in, served

READERS = int(os.environ.get("SLOW_READERS", "20"))
ROUNDS = int(os.environ.get("SLOW_ROUNDS", "2"))
FILE_BYTES = 1_000_000_000
STILL_S = 0.5
"""How long memory must stand still to be believed."""

_MAKE_FILE = """
import sys
import django
django.setup()
from pathlib import Path
from django.conf import settings
from voiceapp.accounts.models import Account, Workspace
from voiceapp.tasks.storage import files
from voiceapp.tasks.models import Task, TaskFile
from voiceapp.tasks.states import Status
from django.utils import timezone
workspace = Workspace.objects.create(account=Account.objects.create(name="Acme"), name="Default")
task = Task.objects.create(
    account=workspace.account, workspace=workspace, kind="audio/tts/synthesis", model_name="tts-1",
    status=Status.SUCCEEDED, ended_at=timezone.now(),
)
name = f"tasks/{task.task_id}/0/0-speech.wav"
size = int(sys.argv[1])
TaskFile.objects.create(task=task, name=name, content_type="audio/wav", size=size)
path = Path(files.storage().path(name))
path.parent.mkdir(parents=True)
with path.open("wb") as sparse:
    sparse.truncate(size)
print(files.link(name, "http://x"))
"""


class Product(Served):
    """The product without models, and a result of a gigabyte that takes no room on the disk."""

    def __init__(self, folder: Path, **variables: str) -> None:
        prepare(folder)
        environment = environment_in(
            folder,
            DATABASE_URL=f"sqlite:///{folder / 'voiceapp.sqlite3'}",
            TESTED_APPLICATION="voiceapp.asgi.application",
            TESTED_URLS="voiceapp.urls",
            MAX_CONNECTIONS_PER_ADDRESS="1000",
            TASK_ENGINE="worker",
            **variables,
        )
        made = subprocess.run(
            [sys.executable, "-c", _MAKE_FILE, str(FILE_BYTES)],
            cwd=ROOT,
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
        self.file = made.stdout.strip().removeprefix("http://x")
        super().__init__(environment)

    @contextlib.contextmanager
    def asked(self, path: str, *, times: int = 1, peers: int = 1) -> Iterator[None]:
        """Within the block, so many clients have asked for this so many times, and read nothing of what comes."""
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(self.raw()) for _ in range(peers)]
            for peer in connections:
                peer.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * times)
                assert peer.recv(1, socket.MSG_PEEK)
            inodes = [self.socket_of(peer) for peer in connections]
            yield
        self.wait_until_closed(inodes)

    def resident_at_rest_mb(self, at_most: float = 4096) -> float:
        """Its memory, once that stands still; more than `at_most` is a failure at once."""
        deadline = time.monotonic() + PATIENCE_S
        before = self.resident_mb
        while time.monotonic() < deadline:
            time.sleep(STILL_S)
            now = self.resident_mb
            assert now < at_most
            if abs(now - before) < 0.5:
                return now
            before = now
        raise AssertionError("its memory never stands still")


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    running = Product(tmp_path_factory.mktemp("product"))
    try:
        with running.asked("/openapi.json"):  # made at the first request, and kept
            pass
        yield running
    finally:
        running.kill()


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The small application, which cuts off after two seconds."""
    with served(tmp_path_factory.mktemp("strict"), SEND_TIMEOUT_S="2", TASK_ENGINE="worker") as process:
        process.wait_until_warm()
        yield process


def test_clients_that_do_not_read_a_file_cost_at_most_a_megabyte_each(product: Product) -> None:
    with product.asked(product.file):  # what the first download needs for good
        before = product.resident_at_rest_mb()
    alone = latency_ms(product)
    left = []
    for _ in range(ROUNDS):
        with product.asked(product.file, peers=READERS):
            most = product.resident_at_rest_mb(at_most=before + READERS) - before
            beside = latency_ms(product)
        left.append(product.resident_at_rest_mb() - before)
        print(f"\n{READERS} clients that do not read: {most:.1f} MB, {left[-1]:.1f} MB afterwards", end="; ")
        print(f"95 % of other requests within {beside:.1f} ms, {alone:.1f} ms alone")
    assert left[-1] < READERS


def test_requests_that_are_sent_ahead_wait_until_the_responses_are_read(product: Product) -> None:
    before = product.resident_at_rest_mb()
    with product.asked("/openapi.json", times=500, peers=5):
        assert product.resident_at_rest_mb(at_most=before + 10) - before < 10


def test_requests_that_are_sent_ahead_are_answered_in_their_order(server: Served) -> None:
    wanted = [f"/{number:0>4}/{'x' * 500}" for number in range(200)]
    with server.raw() as peer:
        peer.sendall("".join(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n" for path in wanted).encode())
        peer.sendall(b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = "".join(part.decode() for part in iter(lambda: peer.recv(100_000), b""))
    assert re.findall(r'"path": "(.*?)"', received) == [*wanted, "/last"]


def test_a_stream_of_events_waits_for_a_client_that_reads_slowly(server: Served) -> None:
    def sent() -> int:
        return int(server.request("GET", "/poured")[1])  # type: ignore[call-overload]

    with server.raw() as slow:
        slow.sendall(b"GET /pour HTTP/1.1\r\nHost: x\r\n\r\n")
        slow.recv(1000)
        before = -1
        deadline = time.monotonic() + PATIENCE_S
        while (now := sent()) != before and time.monotonic() < deadline:
            before = now
            time.sleep(STILL_S)
        assert now == before, f"{now} events of 10 kB and no end"
        assert now < 300
        while sent() == now and time.monotonic() < deadline:
            slow.recv(100_000)
        assert sent() > now, "it does not go on"


def test_a_stream_ends_with_its_client(server: Served) -> None:
    def sent() -> int:
        return int(server.request("GET", "/poured")[1])  # type: ignore[call-overload]

    with server.raw() as leaving:
        leaving.sendall(b"GET /pour HTTP/1.1\r\nHost: x\r\n\r\n")
        leaving.recv(1000)
    deadline = time.monotonic() + PATIENCE_S
    before, now = -1, sent()
    while now != before and time.monotonic() < deadline:
        time.sleep(STILL_S)
        before, now = now, sent()
    assert now == before, "it is sent to nobody, without end"


def test_pongs_do_not_pile_up_for_a_client_that_does_not_read(server: Served) -> None:
    ping = b"\x89\xfd" + b"\0\0\0\0" + b"x" * 125
    with server.open("/echo", ping_interval=None) as talker:
        before = server.resident_mb
        talker.socket.settimeout(PATIENCE_S)
        for _ in range(100):
            talker.socket.sendall(ping * 1000)
        assert server.resident_mb - before < 6
        talker.socket.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param("GET /large HTTP/1.1\r\nHost: x\r\n\r\n", id="while it is sent"),
        pytest.param("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", id="before it is closed"),
        pytest.param("GET /pour HTTP/1.1\r\nHost: x\r\n\r\n", id="a stream of events"),
        pytest.param(
            "GET /refuse-at-length HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            id="a refused socket",
        ),
    ],
)
def test_a_client_that_reads_nothing_is_cut_off(strict: Served, request_: str) -> None:
    with strict.raw() as peer:
        peer.sendall(request_.encode())
        assert peer.recv(1000)
        strict.wait_until_closed([strict.socket_of(peer)])
        with pytest.raises(ConnectionError):  # after what had arrived before
            list(iter(lambda: peer.recv(1_000_000), b""))


def test_a_client_that_reads_slowly_gets_everything(strict: Served) -> None:
    with strict.raw() as peer:
        peer.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = 0
        while received < LARGE // 2:  # for six seconds and more
            received += len(peer.recv(20_000))
            time.sleep(0.05)
        received += sum(map(len, iter(lambda: peer.recv(1_000_000), b"")))
        assert received > LARGE


def latency_ms(served: Served) -> float:
    """How long 95 % of a hundred requests take at most."""
    took = []
    for _ in range(100):
        began = time.perf_counter()
        assert served.request("GET", "/healthz")[0] == 200
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)[94]
