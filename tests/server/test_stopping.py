"""SIGTERM: readiness turns first, conversations end in their own words, nobody is cut off, the exit is clean."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from tests.serving import PATIENCE_S

from .process import Served, served
from .test_sockets import close_of

Start = Callable[..., AbstractContextManager[Served]]

FOR_EVER_S = "300"
AT_ONCE_S = 30.0
"""Generous, for machines that are busy: who waits for what ends by itself waits for longer."""


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return lambda **environment: served(tmp_path, **environment)


def test_it_stops_at_once_when_nobody_is_served(start: Start) -> None:
    with start(DRAIN_S=FOR_EVER_S) as server:
        server.signal()
        assert server.wait(AT_ONCE_S) == 0
        assert_clean(server)


def test_it_waits_for_a_conversation_and_refuses_new_ones(start: Start) -> None:
    with start(DRAIN_S="8") as server, server.open("/echo") as talker:
        server.signal()
        server.signal()  # hosts repeat themselves
        wait_until_draining(server)
        status, answer, _ = server.request("GET", "/readyz")
        assert status == 503
        assert "draining" in [reason["code"] for reason in answer["reasons"]]
        assert server.request("GET", "/healthz")[0] == 200
        with pytest.raises(InvalidStatus) as refused:
            server.open("/echo")
        assert refused.value.response.status_code == 503
        assert json.loads(refused.value.response.body)["code"] == "ServiceUnavailable"

        talker.send("still here")
        assert talker.recv(timeout=PATIENCE_S) == "still here"
        assert close_of(talker) == (4012, "server is stopping")
        server.signal()
        assert server.wait() == 0
        assert_clean(server)


def test_it_tells_conversations_and_stops_when_they_have_ended(start: Start) -> None:
    with start(DRAIN_S=FOR_EVER_S) as server, server.open("/polite") as talker:
        server.signal()
        assert talker.recv(timeout=PATIENCE_S) == "closing"
        assert close_of(talker) == (4012, "stopping")
        assert server.wait(AT_ONCE_S) == 0
        assert_clean(server)


def test_it_finishes_a_request_in_progress(start: Start) -> None:
    with start() as server, server.raw() as peer:
        peer.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        server.request("GET", "/")  # the slow one has begun
        server.signal()
        answer = b""
        while part := peer.recv(10_000):
            answer += part
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"path": "/slow"' in answer
        assert server.wait() == 0
        assert_clean(server)


def test_it_stops_within_its_time_with_an_application_that_never_ends(start: Start) -> None:
    with start(DRAIN_S="1") as server, server.open("/deaf") as talker:
        server.signal()
        assert close_of(talker)[0] == 4012
        assert server.wait(AT_ONCE_S) == 0
        assert_clean(server)


def test_it_stops_waiting_at_a_second_interrupt(start: Start) -> None:
    with start(DRAIN_S=FOR_EVER_S) as server, server.open("/echo") as talker:
        server.signal(signal.SIGINT)
        wait_until_draining(server)
        server.signal(signal.SIGINT)
        assert close_of(talker)[0] == 4012
        assert server.wait(AT_ONCE_S) == 0
        assert_clean(server)


def test_it_says_which_port_is_taken(tmp_path: Path) -> None:
    from tests.serving import Process

    from .process import environment_in

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = Process("serve", "--port", port, environment=environment_in(tmp_path))
        assert process.wait() == 1
        process.kill()
    assert f"Cannot listen on 127.0.0.1 port {port}" in process.log
    assert "Traceback" not in process.log


def wait_until_draining(server: Served) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if "draining" in (server.reasons() or ()):
            return
    raise AssertionError("it never began to drain")


def assert_clean(server: Served) -> None:
    assert "Stopped" in server.log
    assert "Traceback" not in server.log
    errors = [line for line in server.log.splitlines() if " ERROR " in line]
    assert all("Not ready:" in line for line in errors), "it has no tables, and says so"
