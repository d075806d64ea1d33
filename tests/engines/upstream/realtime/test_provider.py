"""Offers passed on to a service elsewhere: a real HTTP server stands at the other end."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from voiceapp.engines.interfaces import Call
from voiceapp.engines.upstream.realtime.connection import Dialler, ServedModel
from voiceapp.engines.upstream.realtime.media import MAX_ANSWER_BYTES
from voiceapp.engines.upstream.realtime.provider import UpstreamRealtime
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable

KEY = "secret-key-of-the-operator"
OFFER = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
ANSWER = "v=0\r\no=- 3 4 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[..., Awaitable[UpstreamRealtime]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a service that answers so; gives the model that is relayed to it."""
    servers: list[TestServer] = []
    models: list[UpstreamRealtime] = []

    async def serve(answer: Answer, timeout_s: float = 20.0) -> UpstreamRealtime:
        application = web.Application()
        application.router.add_post("/api/v1/webrtc/realtime", answer)
        servers.append(TestServer(application))
        await servers[-1].start_server()
        base_url = str(servers[-1].make_url("/"))
        models.append(UpstreamRealtime(base_url=base_url, api_key=KEY, model="their-model", timeout_s=timeout_s))
        return models[-1]

    yield serve
    for model in models:
        await model.close()
    for server in servers:
        await server.close()


async def test_it_passes_the_offer_on_with_our_key_and_the_answer_back(serve: Serve) -> None:
    seen: list[tuple[str, str, str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(
            (
                request.headers["Authorization"],
                request.headers["Content-Type"],
                request.query["model"],
                await request.text(),
            )
        )
        return web.Response(text=ANSWER, content_type="application/sdp")

    model = await serve(answer)
    assert await model.relay_offer(OFFER, "my-name-for-it") == ANSWER
    assert seen == [(f"Bearer {KEY}", "application/sdp", "their-model", OFFER)]


@pytest.mark.parametrize(
    ("status", "kind", "is_retryable"),
    [
        (400, EngineRefused, False),
        (401, EngineUnavailable, False),
        (403, EngineUnavailable, False),
        (404, EngineRefused, False),
        (429, EngineUnavailable, True),
        (500, EngineUnavailable, True),
        (504, EngineTimeout, True),
        (302, EngineUnavailable, True),
    ],
)
async def test_it_says_what_a_refusal_means_without_the_key(
    serve: Serve, caplog: pytest.LogCaptureFixture, status: int, kind: type[EngineError], is_retryable: bool
) -> None:
    async def answer(request: web.Request) -> web.Response:
        said = {"code": "No", "message": f"Not with {request.headers['Authorization']}."}
        return web.Response(status=status, text=json.dumps(said), headers={"Location": "http://127.0.0.1:1/"})

    caplog.set_level(logging.DEBUG)
    model = await serve(answer)
    with pytest.raises(kind) as caught:
        await model.relay_offer(OFFER, "upstream")
    assert caught.value.retryable is is_retryable
    assert KEY not in caught.value.message + caplog.text


async def test_a_socket_follows_no_redirect() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/inside"})

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    async with TestServer(application) as server:
        base_url = str(server.make_url("/"))
        dialler = Dialler(ServedModel(base_url=base_url, api_key=KEY, name="their-model"))
        with pytest.raises(EngineUnavailable):
            await dialler.dial(Call(session_id="sess_1", model="upstream"))
        await dialler.close()
    assert asked == ["/api-ws/v1/realtime"]


@pytest.mark.parametrize("text", ["", "<html>", ANSWER + "a=note:" + KEY, ANSWER + "a=x\r\n" * MAX_ANSWER_BYTES])
async def test_it_passes_on_nothing_but_a_session_description(serve: Serve, text: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text)

    model = await serve(answer)
    with pytest.raises(EngineUnavailable) as caught:
        await model.relay_offer(OFFER, "upstream")
    assert KEY not in caught.value.message


async def test_it_does_not_wait_for_a_service_that_trickles(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"v")
            await asyncio.sleep(0.05)

    model = await serve(answer, timeout_s=0.5)
    with pytest.raises(EngineTimeout):
        await model.relay_offer(OFFER, "upstream")


async def test_it_says_so_when_nobody_is_there(unused_tcp_port: int) -> None:
    model = UpstreamRealtime(base_url=f"http://127.0.0.1:{unused_tcp_port}", api_key=KEY, model="")
    with pytest.raises(EngineUnavailable) as caught:
        await model.relay_offer(OFFER, "upstream")
    assert "UPSTREAM_BASE_URL" not in caught.value.message
    assert "UPSTREAM_BASE_URL" in caught.value.for_operators
    await model.close()
