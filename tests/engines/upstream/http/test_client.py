"""A service elsewhere that fails in every way that a server can, and what its client makes of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.clock import Clock
from tests.engines.upstream.http.conftest import KEY, PATIENCE_S, FaultyService, Reply
from tests.ports import free_port
from voiceapp.engines.openai.client import Busy, Unreachable
from voiceapp.engines.upstream.http.breaker import MOST_FAILURES
from voiceapp.engines.upstream.http.client import (
    EMBEDDING_PATH,
    Address,
    CircuitOpen,
    UpstreamServer,
    services,
)
from voiceapp.errors import DataInspectionFailed, EngineError, EngineRefused, EngineTimeout, EngineUnavailable

LIMIT = 100_000
TASKS = "/api/v1/services/aigc/text2image/image-synthesis"
FINE = Reply({"fine": True})
FAULT = Reply({"code": "InternalError", "message": f"Bearer {KEY} broke it."}, 500)


@pytest.fixture
def clock() -> Clock[float]:
    return Clock(1000.0)


@pytest_asyncio.fixture
async def server(address: Address, clock: Clock[float]) -> AsyncIterator[UpstreamServer]:
    found = UpstreamServer(address, now=clock)
    yield found
    await found.close()


async def ask(server: UpstreamServer, path: str = TASKS) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        return await server.ask(path, {"model": "far"}, limit=LIMIT)


async def test_it_asks_with_our_key_and_the_workspace_under_the_vendors_word(service: FaultyService) -> None:
    service.will(FINE)
    server = services().at(Address(**service.address(vendor="Acme", workspace="ws-1")))
    assert await ask(server) == {"fine": True}
    headers = service.asked[0][2]
    assert (headers["Authorization"], headers["X-Acme-WorkSpace"]) == (f"Bearer {KEY}", "ws-1")


def test_models_of_a_service_share_its_client(address: Address) -> None:
    assert services().at(address) is services().at(address)
    assert KEY not in repr(address)


@pytest.mark.parametrize(
    ("reply", "kind", "requests"),
    [
        (Reply({"code": "InvalidApiKey", "message": f"No {KEY}."}, 401), EngineUnavailable, 1),
        (Reply({"code": "InvalidParameter", "message": f"Not so, {KEY}."}, 400), EngineRefused, 1),
        (FAULT, EngineUnavailable, 1),
        (Reply({}, 504), EngineTimeout, 1),
        (Reply({}, 429, {"Retry-After": "60"}), Busy, 1),
        (Reply({}, 503, {"Retry-After": "60"}), Busy, 1),
        (Reply(b"<html>not JSON</html>"), EngineUnavailable, 1),
        (Reply(b"[" * 50_000), EngineUnavailable, 1),
        (Reply(b"x" * 10_000, ends="endless"), EngineUnavailable, 1),
        (Reply(b'{"half": ', ends="cut"), EngineUnavailable, 1),
        (Reply({}, 302, {"Location": "http://127.0.0.1:1/"}), EngineUnavailable, 1),
    ],
    ids=lambda value: value.ends if isinstance(value, Reply) else "",
)
async def test_every_fault_becomes_an_error_without_the_key(
    service: FaultyService,
    server: UpstreamServer,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    kind: type[EngineError],
    requests: int,
) -> None:
    caplog.set_level(logging.DEBUG)
    service.will(reply)
    with pytest.raises(kind) as caught:
        await ask(server)
    assert len(service.asked) == requests
    assert KEY not in caught.value.for_operators + caplog.text + repr(server.state)


@pytest.mark.parametrize(
    "body",
    [
        {"code": "DataInspectionFailed", "message": "Not that."},
        {"error": {"code": "data_inspection_failed", "message": "Not that."}},
    ],
)
async def test_what_inspection_there_does_not_let_pass_is_refused_as_such(
    service: FaultyService, server: UpstreamServer, body: dict[str, Any]
) -> None:
    service.will(Reply(body, 400))
    with pytest.raises(DataInspectionFailed, match=r"Not that\."):
        await ask(server)


async def test_a_body_that_does_not_come_is_not_waited_for(service: FaultyService) -> None:
    service.will(Reply(b'{"slow": ', ends="never"))
    with pytest.raises(EngineTimeout):
        await ask(services().at(Address(**service.address(timeout_s=0.2))))


async def test_what_cannot_be_reached_is_tried_again_and_then_said() -> None:
    server = UpstreamServer(Address(f"http://127.0.0.1:{free_port()}", KEY, settings="UPSTREAM_ACME"))
    with pytest.raises(Unreachable) as caught:
        await ask(server)
    await server.close()
    assert "UPSTREAM_ACME_BASE_URL" in caught.value.remedy
    assert "UPSTREAM" not in caught.value.message


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_service_is_asked_again_when_it_says(
    service: FaultyService, server: UpstreamServer, status: int
) -> None:
    service.will(Reply({}, status, {"Retry-After": "0"}), FINE)
    assert await ask(server) == {"fine": True}
    assert len(service.asked) == 2


async def test_callers_are_told_when_a_busy_service_can_be_asked_again(
    service: FaultyService, server: UpstreamServer
) -> None:
    service.will(Reply({}, 429, {"Retry-After": "17"}))
    with pytest.raises(Busy) as caught:
        await ask(server)
    assert caught.value.retry_after_s == 17


async def test_work_that_can_be_repeated_is_repeated_after_a_fault(
    service: FaultyService, server: UpstreamServer
) -> None:
    service.will(FAULT, FINE)
    assert await ask(server, EMBEDDING_PATH) == {"fine": True}
    assert service.paths == [EMBEDDING_PATH] * 2


async def test_after_failures_in_a_row_it_refuses_at_once_until_a_trial_succeeds(
    service: FaultyService, server: UpstreamServer, clock: Clock[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    service.will(FAULT)
    for _ in range(MOST_FAILURES):
        with pytest.raises(EngineUnavailable):
            await ask(server)
    with pytest.raises(CircuitOpen) as caught:
        await ask(server, EMBEDDING_PATH)
    assert len(service.asked) == MOST_FAILURES
    assert "asked again" not in caplog.text
    assert (caught.value.http_status, caught.value.retry_after_s) == (503, 2)
    assert server.state.circuit == "open"
    assert "not asked for 2 s" in caplog.text

    clock.now += 2.0
    service.will(FINE)
    assert await ask(server) == {"fine": True}
    assert server.state.circuit == "closed"
    assert server.state.trouble is None


@pytest.mark.parametrize(
    "reply", [Reply({"message": "no"}, 400), Reply({}, 429, {"Retry-After": "60"}), Reply({}, 401)]
)
async def test_a_service_that_refuses_is_there(service: FaultyService, server: UpstreamServer, reply: Reply) -> None:
    service.will(reply)
    for _ in range(MOST_FAILURES + 1):
        with pytest.raises(EngineError):
            await ask(server)
    assert server.state.circuit == "closed"


async def test_the_log_names_the_request_as_the_service_does(
    service: FaultyService, server: UpstreamServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    service.will(Reply({}, headers={"X-Request-ID": "there-4711"}), Reply({}, headers={"X-Request-ID": KEY}))
    await ask(server)
    await ask(server)
    assert "request there-4711" in caplog.text
    assert KEY not in caplog.text


async def test_a_look_at_the_service_serves_for_a_while_whatever_came_of_it(
    service: FaultyService, server: UpstreamServer
) -> None:
    service.will(FAULT)
    await server.probe()
    await server.probe()
    assert service.paths == ["/compatible-mode/v1/models"]
    assert server.state.trouble is not None
