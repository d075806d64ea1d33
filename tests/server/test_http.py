"""Plain HTTP through the real command: the probes that a bare server fails."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from tests.serving import PATIENCE_S
from voiceapp.server.runner import bind

from .process import Served, served

LONGER_S = 9.0
"""Than this server waits for headers or a body, and less than one does that was not told how long."""


def test_it_serves_without_naming_its_software(server: Served) -> None:
    status, seen, headers = server.request("GET", "/some/path?x=1")
    assert (status, seen["path"], seen["client"], seen["received"]) == (200, "/some/path", "127.0.0.1", 0)
    assert "server" not in headers
    assert len(headers["x-request-id"]) == 36


def test_it_passes_a_body_on_whole(server: Served) -> None:
    for size in (1, 8192, 8193, 200_000):
        status, seen, _ = server.request("POST", "/", body=b"x" * size)
        assert (status, seen["received"]) == (200, size)


def test_it_refuses_a_body_announced_too_large(server: Served) -> None:
    status, refusal, headers = server.request("POST", "/", body=b"x" * 3_000_000)
    assert (status, refusal["code"]) == (413, "InvalidParameter")
    assert "200000 bytes" in refusal["message"]
    assert refusal["request_id"] == headers["x-request-id"]


def test_it_refuses_in_the_shape_that_the_clients_of_an_address_read(server: Served) -> None:
    _, refusal, _ = server.request("POST", "/compatible-mode/v1/chat/completions", body=b"x" * 3_000_000)
    assert "200000 bytes" in refusal["error"]["message"]
    assert refusal["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_page_of_another_origin_reads_a_refusal_of_the_server_itself(server: Served, chunked: bool) -> None:
    for path, expected in (("/v1/chat/completions", "*"), ("/voice/webrtc", None)):
        body: Any = iter([b"x" * 100_000] * 4) if chunked else b"x" * 400_000
        headers = {"Origin": "https://a.example"}
        status, _, said = server.request("POST", path, body, headers, encode_chunked=chunked)
        assert (status, said["Access-Control-Allow-Origin"]) == (413, expected)
    status, refusal, _ = server.request("POST", "/", b"x" * 400_000, {"Origin": "\xff"})
    assert (status, refusal["code"]) == (413, "InvalidParameter"), (
        "an origin that is no UTF-8 is refused like any other"
    )


def test_it_takes_more_where_recordings_are_uploaded_but_not_without_end(server: Served) -> None:
    status, seen, _ = server.request("POST", "/compatible-mode/v1/audio/transcriptions", body=b"x" * 300_000)
    assert (status, seen["received"]) == (200, 300_000)
    status, refusal, _ = server.request("POST", "/compatible-mode/v1/audio/transcriptions", body=b"x" * 500_000)
    assert (status, "400000 bytes" in refusal["error"]["message"]) == (413, True)


def test_it_refuses_a_chunked_body_that_grows_too_large(server: Served) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * 50_000

    status, refusal, _ = server.request("POST", "/", body=chunks(), encode_chunked=True)
    assert (status, refusal["code"]) == (413, "InvalidParameter")


def test_it_hangs_up_on_a_body_without_end(server: Served) -> None:
    sent = 0
    with server.raw() as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while sent < 500_000_000:
                peer.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                sent += 65536
        except OSError:
            assert server.memory_mb < 300
            return
    raise AssertionError("half a gigabyte was taken")


def test_it_refuses_a_body_before_taking_it(server: Served) -> None:
    with server.raw() as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 419430400\r\nExpect: 100-continue\r\n\r\n")
        assert peer.recv(1000).startswith(b"HTTP/1.1 413 ")


def test_it_refuses_a_body_that_comes_too_slowly(server: Served) -> None:
    started = time.monotonic()
    with server.raw() as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
        assert everything(peer).startswith(b"HTTP/1.1 408 ")
    assert 0.5 < time.monotonic() - started < LONGER_S


def test_it_hangs_up_on_headers_that_drip(server: Served) -> None:
    dripping = [server.raw() for _ in range(20)]
    for peer in dripping:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Drip: ")
    dropped = 0
    deadline = time.monotonic() + LONGER_S
    for peer in dripping:
        peer.settimeout(0.05)
        while time.monotonic() < deadline:
            try:
                peer.sendall(b"a")
                if peer.recv(1000).startswith(b"HTTP/1.1 408 "):
                    dropped += 1
                    break
            except TimeoutError:
                continue
            except OSError:
                dropped += 1
                break
        peer.close()
    assert dropped == len(dripping)


def test_it_gives_a_second_request_s_headers_a_deadline_too(server: Served) -> None:
    with server.raw() as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += peer.recv(10_000)
        time.sleep(2.5)  # an idle connection may stay
        peer.sendall(b"GET / HTTP/1.1\r\nX-Drip: ")
        assert peer.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_it_ignores_a_root_path_from_outside(server: Served) -> None:
    _, seen, _ = server.request("GET", "/", headers={"Daphne-Root-Path": "/evil", "X-Forwarded-Prefix": "/evil"})
    assert seen["root_path"] == ""


def test_it_ignores_forwarded_headers_when_no_proxy_is_trusted(server: Served) -> None:
    forged = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "https", "X-Real-IP": "6.6.6.6"}
    _, seen, _ = server.request("GET", "/", headers=forged)
    assert (seen["client"], seen["scheme"]) == ("127.0.0.1", "http")


def test_it_answers_500_in_json_when_the_application_fails(server: Served) -> None:
    status, refusal, _ = server.request("GET", "/fail")
    assert (status, refusal["code"], refusal["message"]) == (500, "InternalError", "The server failed.")


def test_it_closes_connections_beyond_the_limit_of_one_address(server: Served) -> None:
    peers, answered = [], 0
    for _ in range(75):
        peers.append(server.raw())
        try:
            peers[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answered += peers[-1].recv(1000).startswith(b"HTTP/1.1 200 ")
        except OSError:
            continue
    for peer in peers:
        peer.close()
    assert 50 <= answered <= 60  # other tests' connections may still be closing
    assert_again_free(server)


def test_a_path_stays_on_its_line_of_the_log(server: Served) -> None:
    server.request("GET", "/a%0a2026-01-01%20FAKE%00%C3%A9%1b")
    with pytest.raises(InvalidStatus):
        server.open("/refuse%0aFAKE?404")
    lines = server.logged().splitlines()
    assert any("GET /a%0A2026-01-01%20FAKE%00%C3%A9%1B 200 " in line for line in lines)
    assert any("WS /refuse%0AFAKE " in line for line in lines)
    assert not any(line.startswith(("2026-01-01 FAKE", "FAKE")) for line in lines)


def test_it_logs_a_request_without_its_query(server: Served) -> None:
    _, _, headers = server.request("GET", "/logged?token=do-not-log")
    log = server.logged()
    assert "GET /logged 200 127.0.0.1" in log
    assert headers["x-request-id"] in log
    assert "do-not-log" not in log


def test_it_names_the_client_that_the_trusted_proxy_saw(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("proxied")
    with served(folder, TRUST_PROXY="1", MAX_CONNECTIONS_PER_ADDRESS="1") as server:
        forged = {"X-Forwarded-For": "6.6.6.6, 203.0.113.7", "X-Forwarded-Proto": "https"}
        _, seen, _ = server.request("GET", "/", headers=forged)
        assert (seen["client"], seen["scheme"]) == ("203.0.113.7", "https")
        with server.open("/whoami", additional_headers=forged) as talker:
            assert '"203.0.113.7"' in str(talker.recv())

        with server.open("/echo", additional_headers=forged):
            status, refusal, headers = server.request("GET", "/", headers=forged)
            assert (status, refusal["code"], headers["retry-after"]) == (429, "Throttling.Concurrency", "1")
            assert server.request("GET", "/", headers={"X-Forwarded-For": "203.0.113.8"})[0] == 200


@pytest.mark.parametrize(
    ("forwarded", "status"), [("https", 200), ("http, https", 200), ("https, http", 403), ("http", 403), ("ftp", 403)]
)
def test_a_client_cannot_claim_to_come_by_https(proxied: Served, forwarded: str, status: int) -> None:
    assert proxied.request("GET", "/openapi.json", headers={"X-Forwarded-Proto": forwarded})[0] == status


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The product behind a proxy that ends TLS."""
    with served(
        tmp_path_factory.mktemp("proxied"),
        TESTED_APPLICATION="voiceapp.asgi.application",
        TESTED_URLS="voiceapp.urls",
        TRUST_PROXY="1",
        HTTPS="1",
        TASK_ENGINE="worker",
    ) as process:
        yield process


FRAMINGS = {
    "identity": "Transfer-Encoding: identity\r\nContent-Length: 5\r\n",
    "gzip": "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n",
    "a list": "Transfer-Encoding: gzip, chunked\r\n",
    "the same twice in a list": "Transfer-Encoding: chunked, chunked\r\n",
    "twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "identity, then chunked": "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
    "chunked, then identity": "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "an empty one": "Transfer-Encoding:\r\n",
    "a parameter": "Transfer-Encoding: chunked;q=1\r\n",
    "a length as well": "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "a length before": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "two lengths": "Content-Length: 5\r\nContent-Length: 6\r\n",
    "a length that is none": "Content-Length: +5\r\n",
    "a space in the name": "Transfer-Encoding : chunked\r\n",
}


@pytest.mark.parametrize("framing", FRAMINGS)
def test_it_refuses_a_body_whose_end_could_be_read_in_two_ways(server: Served, framing: str) -> None:
    with server.raw() as peer:
        smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
        peer.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{FRAMINGS[framing]}\r\n{smuggled}".encode())
        head, _, body = everything(peer).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["code"] == "InvalidParameter"
    assert "/smuggled" not in server.logged()


def test_it_takes_a_chunked_body_whatever_the_case_of_the_word(server: Served) -> None:
    with server.raw() as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n")
        peer.sendall(b"3\r\nabc\r\n0\r\n\r\n")
        head, _, body = everything(peer).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body)["received"] == 3


def test_a_body_that_is_malformed_in_the_middle_ends_its_connection(server: Served) -> None:
    before = len(server.logged())
    with server.raw() as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nxyz\r\n")
        head, _, body = everything(peer).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["code"] == "InvalidParameter"
    assert " ERROR " not in server.logged()[before:]


def everything(peer: socket.socket) -> bytes:
    """What arrives until the server hangs up."""
    answer = b""
    while part := peer.recv(10_000):
        answer += part
    return answer


def assert_again_free(server: Served) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if server.request("GET", "/healthz")[0] == 200:
                return
        except OSError:
            continue
    raise AssertionError("connections that were closed still count")


@pytest.mark.parametrize("knows_ipv6", [True, False])
def test_a_host_of_two_colons_is_every_address_of_both_families(
    monkeypatch: pytest.MonkeyPatch, knows_ipv6: bool
) -> None:
    if not knows_ipv6:
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with bind("::", 0, send_timeout_s=30) as listening:
        assert listening.family == (socket.AF_INET6 if knows_ipv6 else socket.AF_INET)
        socket.create_connection(("127.0.0.1", listening.getsockname()[1]), timeout=5).close()
