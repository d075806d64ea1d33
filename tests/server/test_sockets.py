"""WebSockets through the real command: handshakes refused with their status, closes with their code, pressure back."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from tests.serving import PATIENCE_S

from .process import Served


def close_of(talker: ClientConnection) -> tuple[int, str]:
    """Code and reason of the close frame that comes next."""
    with pytest.raises(ConnectionClosed) as ended:
        talker.recv(timeout=PATIENCE_S)
    assert ended.value.rcvd is not None, "the socket was cut without a close frame"
    return ended.value.rcvd.code, ended.value.rcvd.reason


def test_it_carries_text_and_bytes_both_ways(server: Served) -> None:
    with server.open("/echo") as talker:
        for message in ("hé", "", b"\x00\x01", "x" * 125, "x" * 126, "x" * 65_535, "x" * 65_536, b"y" * 900_000):
            talker.send(message)
            assert talker.recv(timeout=PATIENCE_S) == message


def test_it_tells_the_truth_about_a_socket(server: Served) -> None:
    headers = {"Daphne-Root-Path": "/evil", "X-Forwarded-For": "6.6.6.6"}
    with server.open("/whoami", additional_headers=headers) as talker:
        assert json.loads(talker.recv(timeout=PATIENCE_S)) == {"client": "127.0.0.1", "root_path": "", "scheme": "ws"}
        assert close_of(talker) == (1000, "said it")


def test_it_sends_the_application_s_accept_headers_and_subprotocol(server: Served) -> None:
    with server.open("/whoami", subprotocols=["first", "second"]) as talker:
        assert talker.response is not None
        assert talker.response.headers["x-greeting"] == "hello"
        assert talker.subprotocol == "first"
        assert "Server" not in talker.response.headers


def test_it_offers_no_compression(server: Served) -> None:
    with server.open("/echo", compression="deflate") as talker:
        assert talker.response is not None
        assert "Sec-WebSocket-Extensions" not in talker.response.headers


@pytest.mark.parametrize("status", [400, 401, 404, 429, 503])
def test_it_refuses_a_handshake_with_the_application_s_status(server: Served, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused:
        server.open(f"/refuse?{status}")
    response = refused.value.response
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert response.headers["retry-after"] == "7"
    assert json.loads(response.body) == {
        "code": "Refused",
        "message": "As asked.",
        "request_id": response.headers["x-request-id"],
    }


def test_it_answers_403_to_a_close_before_the_accept(server: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        server.open("/close-before-accept")
    assert refused.value.response.status_code == 403


def test_it_answers_500_when_the_application_fails_before_the_accept(server: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        server.open("/fail-before")
    assert refused.value.response.status_code == 500
    assert json.loads(refused.value.response.body)["code"] == "InternalError"


@pytest.mark.parametrize("code", [1000, 1008, 1011, 1012, 1013, 3000, 4012, 4401])
def test_it_closes_with_the_application_s_code_and_reason(server: Served, code: int) -> None:
    with server.open(f"/close?{code}") as talker:
        assert close_of(talker) == (code, "because")


def test_it_closes_when_the_application_fails_or_returns(server: Served) -> None:
    with server.open("/fail-after") as talker:
        assert close_of(talker)[0] == 1011
    with server.open("/return") as talker:
        assert close_of(talker)[0] == 1000


def test_it_ends_a_socket_whose_message_is_too_large(server: Served) -> None:
    with server.open("/echo") as talker:
        with contextlib.suppress(ConnectionClosed):  # refused before it was sent whole
            talker.send("x" * 950_001)  # of the 950 000 that MAX_MESSAGE_BYTES allows
        assert close_of(talker)[0] == 1009


def test_it_waits_for_a_client_that_reads_slowly(server: Served) -> None:
    with server.open("/flood", max_queue=1, close_timeout=0) as slow, server.open("/progress") as asker:

        def sent() -> int:
            asker.send("?")
            return int(asker.recv(timeout=PATIENCE_S))

        slow.recv(timeout=PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        before = -1
        while (now := sent()) != before and time.monotonic() < deadline:
            before = now
            time.sleep(0.5)  # the measure: nothing more is sent in half a second
        assert now == before, f"{now} messages of 10 kB and no end"
        for _ in range(100):
            slow.recv(timeout=PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while sent() == now and time.monotonic() < deadline:
            slow.recv(timeout=PATIENCE_S)
        assert sent() > now, "it does not go on"


def test_it_stops_reading_for_an_application_that_does_not(server: Served) -> None:
    with server.open("/deaf") as talker:
        talker.socket.settimeout(2)
        sent = 0
        try:
            while sent < 200_000_000:
                talker.socket.sendall(b"\x82\xff" + (900_000).to_bytes(8, "big") + b"\0\0\0\0" + b"x" * 900_000)
                sent += 900_000
        except TimeoutError:  # the kernel's buffers are full and stay so
            talker.socket.close()
            return
    raise AssertionError("200 MB were taken and nobody read them")


def test_it_logs_a_socket_once_with_its_outcome(server: Served) -> None:
    with server.open("/close?4403") as talker:
        close_of(talker)
    with pytest.raises(InvalidStatus):
        server.open("/refuse?418")
    outcomes = (" WS /close 4403 127.0.0.1 ", " WS /refuse 418 127.0.0.1 ")
    for outcome in outcomes:
        server.wait_until_logged(outcome)
    log = server.logged()
    assert [log.count(outcome) for outcome in outcomes] == [1, 1]
