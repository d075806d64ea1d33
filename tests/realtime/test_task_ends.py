"""A caller who asked for it hears in the conversation that a task of their account has ended, with the real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from aiohttp import web

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import PATIENCE_S, Talker, call

KIND = "/api/v1/services/embeddings/text-embedding/text-embedding"
ASKED = "Tell me when my task is done."


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(FETCH_ALLOWED_NETWORKS="127.0.0.0/8")


class TextFile:
    """A file on a server of the caller's, which is not sent before `is_ready`."""

    def __init__(self) -> None:
        self.is_ready = asyncio.Event()
        self.url = ""

    async def answer(self, request: web.BaseRequest) -> web.Response:
        await self.is_ready.wait()
        return web.Response(text="A line to embed.\n")


@pytest_asyncio.fixture
async def file() -> AsyncIterator[TextFile]:
    file = TextFile()
    runner = web.ServerRunner(web.Server(file.answer), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    file.url = f"http://127.0.0.1:{runner.addresses[0][1]}/texts.txt"
    yield file
    await runner.cleanup()


@pytest_asyncio.fixture
async def program(product: Product) -> AsyncIterator[httpx.AsyncClient]:
    """Another program of the same account."""
    headers = {"Authorization": f"Bearer {product.keys['good']}"}
    async with httpx.AsyncClient(base_url=product.origin, headers=headers, timeout=PATIENCE_S) as client:
        yield client


async def create(program: httpx.AsyncClient, file: TextFile) -> str:
    body = {"model": "text-embedding-async-v2", "input": {"url": file.url}}
    answer = await program.post(KIND, json=body, headers={"X-DashScope-Async": "enable"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["output"]["task_id"])


async def status(program: httpx.AsyncClient, task_id: str) -> str:
    return str((await program.get(f"/api/v1/tasks/{task_id}")).json()["output"]["task_status"])


def said(talker: Talker) -> list[str]:
    return [event["transcript"] for event in talker.all("response.audio_transcript.done")]


async def test_the_end_of_a_task_is_told_aloud(product: Product, program: httpx.AsyncClient, file: TextFile) -> None:
    task_id = await create(program, file)
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask(ASKED)
        await talker.wait("response.done")
        assert await status(program, task_id) in ("PENDING", "RUNNING")
        assert said(talker) == ["I will tell you when it is done."]
        file.is_ready.set()
        told = await talker.wait("response.done", count=2)
        assert said(talker)[1:] == ["Your task is done."]
        assert talker.audio(told["response"]["id"])
    assert await status(program, task_id) == "SUCCEEDED"


async def test_without_a_task_the_caller_is_told_that_there_is_none(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask(ASKED)
        await talker.wait("response.done", count=2)
        assert said(talker) == ["I will tell you when it is done.", "No task of yours is under way."]
