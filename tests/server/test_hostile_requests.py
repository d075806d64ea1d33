"""Requests of strangers, all that the other tests think up, against the real server: what its log says of them.

An ERROR in the log asks an operator to do something. Nothing that a stranger can send may write one, nor a traceback,
nor a line without end.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection

from tests.http.test_content_types import CODECS, EXTENDED, form
from tests.http.test_content_types import PATHS as FORM_PATHS
from tests.http.test_middleware import HOSTILE as HOSTILE_BODIES
from tests.realtime.conftest import Serve
from tests.realtime.hostile_frames import BROKEN, ODD, opened, text_frame, until_ended
from tests.realtime.product import Product
from tests.realtime.records.test_ends import TEXTS
from tests.realtime.webrtc.test_offers import bad_offers, mutated

from .test_http import FRAMINGS

LONGEST_LINE = 700
"""Of the log: what a stranger writes is cut off."""
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO|WARNING) \S+ ")
"""How every line begins that is neither an error nor a part of one."""
PATIENCE_S = 60.0

POSTED = (
    "/api/v1/services/aigc/text-generation/generation",
    "/api/v1/services/audio/tts/synthesis",
    "/compatible-mode/v1/chat/completions",
    "/compatible-api/v1/reranks",
    "/api/v1/agentstudio/webhook_endpoints",
    "/api/v1/tokens",
)
HOSTS = (
    *("evil.example", "x" * 5000, "[::1", "127.0.0.1:99999", "127.0.0.1@evil.example", "evil.example/..", "a b", ""),
    *("127.0.0.1, evil.example", "\u00e9.example", "%00", "localhost\tx", "..", "_"),
)
PLACES = ("/", "/login", "/docs", "/voice/config", "/admin/login/", "/nowhere", "/api/v1/tasks", "/openapi.json")
ADDRESSES = (
    *("/%00", "/a%0a2026-01-01%20FAKE", "/" + "a" * 9000, "//evil.example/", "/..%2f..%2fetc%2fpasswd", "/%ff%fe"),
    *("/login?next=//evil.example", "/login?next=" + "x" * 5000, "/api/v1/tasks?" + "a=1&" * 1001, "/?a=%00"),
    *("/api/v1/tasks/%00", "/api/v1/tasks/" + "x" * 5000, "/api/v1/files/x:y:z/../../a", "/docs/manual/%2e%2e"),
    *("/api/v1/tasks?page_no=nine", "/api/v1/tasks?start_time=" + "9" * 400, "/static/%2e%2e/settings.py", "/a;b=c"),
)
METHODS = ("TRACE", "NONSENSE", "x" * 3000, "get", "PROPFIND", "CONNECT")
HEADERS = (
    *("Authorization: Bearer " + "x" * 5000, "Authorization: Bearer \u00ff\u00fe", "Authorization: Basic YTpi"),
    *("Cookie: sessionid=" + "x" * 3000, 'Cookie: csrftoken="; sessionid=\\', "Cookie: " + "a=b; " * 300),
    *("Range: bytes=-1,5-,x", "If-Modified-Since: never", "If-None-Match: " + '"x",' * 500, "Accept-Language: ," * 90),
    *("X-Forwarded-For: 6.6.6.6", "Content-Encoding: gzip", "Expect: 200-nothing", "Referer: \u00ff", "Origin: null"),
    *("X-DashScope-Async: perhaps", "X-DashScope-OssResourceResolve: \u00ff", "Upgrade: h2c", "Upgrade: websocket"),
)
NO_REQUESTS = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET\r\n\r\n",
    b"\0" * 300 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n folded: x\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nab",
    random.Random(5).randbytes(2000) + b"\r\n\r\n",
)
WITHOUT_AN_ANSWER_S = 3.0


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(
        HEADER_TIMEOUT_S="1",
        BODY_TIMEOUT_S="1",
        WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8",
        MAX_CONNECTIONS_PER_ADDRESS="1000",
    )


def log_of(product: Product, since: int = 0) -> list[str]:
    """The lines that the server has written by now, which is marked by a last request: its log comes through a pipe."""
    mark = f"/until-here-{uuid4().hex}"
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{product.origin}{mark}", timeout=PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while mark not in product.log:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return product.log.splitlines()[since:]


def assert_readable(lines: list[str]) -> None:
    strange = [line for line in lines if not LINE.match(line)]
    assert not strange, "\n".join(strange)
    assert [line[:80] for line in lines if len(line) > LONGEST_LINE] == []


def warnings(lines: list[str]) -> list[str]:
    return [line for line in lines if " WARNING " in line]


async def sent(product: Product, raw: bytes) -> int:
    """The status that comes back; 0 if the server hangs up without one, or says nothing."""
    host, _, port = product.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answer = b""
    try:
        writer.write(raw)
        async with asyncio.timeout(WITHOUT_AN_ANSWER_S):
            while more := await reader.read(65_536):
                answer = (answer + more)[:100]
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.transport.abort()
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(found[1]) if found else 0


def request(
    product: Product,
    method: str,
    target: str,
    *headers: str,
    body: bytes = b"",
    host: str | None = None,
    key: str | None = "good",
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {product.address if host is None else host}", "Connection: close"]
    if key and not any(header.startswith("Authorization:") for header in headers):
        lines.append(f"Authorization: Bearer {product.keys[key]}")
    if body and not any(header.startswith(("Content-Length:", "Transfer-Encoding:")) for header in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, *headers, "", ""]).encode("utf-8", "surrogateescape") + body


async def no_failures(product: Product, requests: list[bytes]) -> None:
    """Send them, some at a time; none is answered with a 5xx."""
    room = asyncio.Semaphore(8)

    async def one(raw: bytes) -> None:
        async with room:
            status = await sent(product, raw)
        assert status < 500, (status, raw[:300])

    async with asyncio.TaskGroup() as tasks:
        for raw in requests:
            tasks.create_task(one(raw))


async def test_requests_of_strangers_write_no_error(product: Product) -> None:
    bodies = [body if isinstance(body, bytes) else str(body).encode() for body in _texts(HOSTILE_BODIES)]
    json_ = "Content-Type: application/json"
    kinds = [f"; charset={name}" for name in CODECS] + [f"; {parameter}" for parameter in EXTENDED]
    chance = random.Random(3)
    requests = [
        *(request(product, "GET", place, host=host) for host in HOSTS for place in PLACES),
        *(request(product, "POST", path, json_, body=body) for path in POSTED for body in bodies if body),
        *(
            request(product, "POST", path, f"Content-Type: multipart/form-data; boundary=b{kind}"[:8000], body=form())
            for path in chance.sample(FORM_PATHS, 3)
            for kind in kinds
        ),
        *(
            request(
                product, "POST", "/api/v1/uploads", "Content-Type: multipart/form-data; boundary=b", body=form(head)
            )
            for head in (*(f"X-Other: a; {parameter}"[:900] for parameter in EXTENDED), "Content-Length: -5")
        ),
        *(request(product, "GET", address, key=key) for address in ADDRESSES for key in ("good", None)),
        *(request(product, method, place) for method in METHODS for place in PLACES),
        *(request(product, "GET", place, header) for header in HEADERS for place in PLACES),
        *(
            request(product, "POST", "/login", body=body)
            for body in (b"username=a&password=b", b"\xff" * 50, b"a" * 9000)
        ),
        *(_framed(product, framing) for framing in FRAMINGS.values()),
        *NO_REQUESTS,
    ]
    await no_failures(product, requests)
    assert_readable(log_of(product))
    assert not [name for name, key in product.keys.items() if key in product.log]


def test_a_thousand_requests_in_one_packet_write_no_error(product: Product) -> None:
    last = request(product, "GET", "/healthz", key=None)
    host, _, port = product.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as peer:
        peer.sendall(last.replace(b"Connection: close", b"Connection: keep-alive") * 1199 + last)
        assert until_ended(peer).count(b"HTTP/1.1 200 ") == 1200
    assert_readable(log_of(product))


async def test_offers_of_strangers_write_no_error(product: Product) -> None:
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    connection.addTransceiver("audio")
    connection.createDataChannel("svc-events")
    await connection.setLocalDescription(await connection.createOffer())
    offer = connection.localDescription.sdp
    await connection.close()
    chance = random.Random(17)
    offers = [offer.encode() if isinstance(offer, str) else offer for offer in bad_offers(offer).values()]
    offers += [mutated(offer, chance).encode("utf-8", "replace") for _ in range(60)]
    path = "/api/v1/webrtc/realtime?model=voice"
    await no_failures(
        product, [request(product, "POST", path, "Content-Type: application/sdp", body=one) for one in offers]
    )
    assert_readable(log_of(product))


async def test_frames_of_strangers_write_no_error(product: Product) -> None:
    def on_one(frames: list[bytes]) -> bytes:
        with opened(product.address, product.keys["good"]) as peer:
            for frame in frames:
                peer.sendall(frame)
            return until_ended(peer)

    finish = text_frame(b'{"type": "session.finish"}')
    no_events = [text_frame(text.encode("utf-8", "replace")) for text in TEXTS]
    for frame in BROKEN.values():
        await asyncio.to_thread(on_one, [frame])
    said = await asyncio.to_thread(on_one, [*ODD.values(), *no_events, finish])
    assert b"session.finished" in said
    for head in (
        request(product, "GET", "/api-ws/v1/realtime", "Upgrade: websocket", "Sec-WebSocket-Version: 99"),
        request(product, "GET", "/voice/socket", "Upgrade: websocket", "Sec-WebSocket-Key: x", host="evil.example"),
        request(product, "GET", "/api-ws/v1/" + "x" * 5000, "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    ):
        assert await sent(product, head.replace(b"Connection: close", b"Connection: Upgrade")) < 500
    assert_readable(log_of(product))


async def test_a_foreign_host_is_one_warning_without_its_words_in_full(product: Product) -> None:
    before = len(log_of(product))
    assert await sent(product, request(product, "GET", "/", host="evil.example" + "x" * 5000, key=None)) == 400
    lines = log_of(product, before)
    assert_readable(lines)
    (warning,) = warnings(lines)
    assert "ALLOWED_HOSTS" in warning or "Invalid HTTP_HOST header" in warning


async def test_a_webhook_test_that_fails_is_one_warning(product: Product) -> None:
    def ask(method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        asked = urllib.request.Request(
            f"{product.origin}/api/v1/agentstudio/webhook_endpoints{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {product.keys['good']}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)

    _, made = ask("POST", "", {"url": "http://127.0.0.1:9/" + "x" * 1500, "events": ["task.finished"]})
    before = len(log_of(product))
    status, said = ask("POST", f"/{made['id']}/test")
    assert (status, said["error"]["code"]) == (502, "11800015")
    lines = log_of(product, before)
    assert_readable(lines)
    assert len(warnings(lines)) == 1
    ask("DELETE", f"/{made['id']}")


def _texts(table: dict[str, Any]) -> Iterator[bytes | str]:
    for body in table.values():
        yield body if isinstance(body, bytes | str) else json.dumps(body)


def _framed(product: Product, framing: str) -> bytes:
    smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    return f"POST /login HTTP/1.1\r\nHost: {product.address}\r\n{framing}\r\n{smuggled}".encode()
