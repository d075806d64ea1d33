"""One attempt, against real receivers on loopback, the good and the bad."""

from __future__ import annotations

import asyncio
import gzip
import socket
import time
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.certificates import self_signed
from tests.outbound.test_client import LOOPBACK
from tests.web import Handler
from tests.webhooks.conftest import receiving
from voiceapp.outbound.client import Outbound
from voiceapp.webhooks.delivery import KEPT_BYTES, TOTAL_S, attempt
from voiceapp.webhooks.rules import FailureKind, Outcome

SIGNATURE = {"webhook-id": "whe_1", "webhook-timestamp": "1", "webhook-signature": "v1,abc"}


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    async with Outbound(allowed_networks=LOOPBACK) as made:
        yield made


async def endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    try:
        while True:
            await answer.write(b"x" * 65536)
    except ConnectionError:
        return answer


async def dripping(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    try:
        while True:
            await answer.write(b"x")
            await asyncio.sleep(0.05)
    except ConnectionError:
        return answer


async def hanging(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def test_it_sends_the_body_as_it_is_with_its_signature(outbound: Outbound) -> None:
    seen: list[tuple[bytes, dict[str, str]]] = []

    async def receiver(request: web.Request) -> web.Response:
        seen.append((await request.read(), {name.lower(): value for name, value in request.headers.items()}))
        return web.Response(status=202, text="thanks")

    async with receiving(receiver) as url:
        attempted = await attempt(outbound, url, b'{"a" : "\xc3\xa9"}', SIGNATURE)

    [(body, headers)] = seen
    assert body == b'{"a" : "\xc3\xa9"}'
    assert headers["content-type"] == "application/json"
    assert {name: headers[name] for name in SIGNATURE} == SIGNATURE
    assert (attempted.outcome, attempted.answer_start, attempted.error) == (Outcome(202), "thanks", "")
    assert 0 <= attempted.duration_ms < 5000


@pytest.mark.parametrize("name", ["Retry-After", "retry-after"])
async def test_it_hands_on_when_to_come_back(outbound: Outbound, name: str) -> None:
    async def receiver(_: web.Request) -> web.Response:
        return web.Response(status=503, headers={name: "15"})

    async with receiving(receiver) as url:
        assert (await attempt(outbound, url, b"{}", SIGNATURE)).outcome == Outcome(503, retry_after="15")


async def test_it_keeps_a_kib_that_any_database_can_hold(outbound: Outbound) -> None:
    async def receiver(_: web.Request) -> web.Response:
        return web.Response(body=b"a\0\xff" * 5000)

    async with receiving(receiver) as url:
        kept = (await attempt(outbound, url, b"{}", SIGNATURE)).answer_start
    assert kept.startswith("a\ufffd\ufffda")
    assert len(kept) == KEPT_BYTES
    assert "\0" not in kept


async def test_a_letter_that_the_kib_ends_in_is_left_out(outbound: Outbound) -> None:
    async def receiver(_: web.Request) -> web.Response:
        return web.Response(text="x" + "ü" * KEPT_BYTES)

    async with receiving(receiver) as url:
        kept = (await attempt(outbound, url, b"{}", SIGNATURE)).answer_start
    assert kept == "x" + "ü" * 511


async def test_nobody_listening_is_trouble_of_the_network(outbound: Outbound) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening: refused at once
        attempted = await attempt(outbound, f"http://127.0.0.1:{taken.getsockname()[1]}/", b"{}", SIGNATURE)
    assert attempted.outcome == Outcome(trouble=FailureKind.NETWORK)


async def test_a_certificate_that_proves_nothing_is_told_from_a_broken_handshake(
    outbound: Outbound, tmp_path: Path
) -> None:
    async with receiving(hanging, self_signed(tmp_path)) as url:
        assert (await attempt(outbound, url, b"{}", SIGNATURE)).outcome == Outcome(trouble=FailureKind.TLS)
    async with receiving(hanging) as url:
        plain = url.replace("http:", "https:")
        assert (await attempt(outbound, plain, b"{}", SIGNATURE)).outcome == Outcome(trouble=FailureKind.NETWORK)


@pytest.mark.parametrize("receiver", [hanging, dripping])
async def test_it_waits_for_nobody_beyond_its_time(outbound: Outbound, receiver: Handler) -> None:
    async with receiving(receiver) as url:
        began = time.monotonic()
        attempted = await attempt(outbound, url, b"{}", SIGNATURE, total_s=0.5)
        took_s = time.monotonic() - began
    assert attempted.outcome == Outcome(trouble=FailureKind.TIMEOUT)
    assert 0.4 < took_s < TOTAL_S  # which it has unless told otherwise


async def test_an_endless_answer_and_a_bomb_cost_no_memory(outbound: Outbound) -> None:
    bomb = gzip.compress(bytes(50_000_000))

    async def exploding(_: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async with receiving(endless) as url, receiving(exploding) as bomb_url:
        tracemalloc.start()
        try:
            for address in (url, bomb_url):
                assert (await attempt(outbound, address, b"{}", SIGNATURE)).outcome == Outcome(200)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 8_000_000
