"""Clients that go away, and first words that come at once, through the server as it runs in production."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.generation.conftest import TEXT
from tests.realtime.chat_server import FIRST, KEY, ChatServer
from tests.realtime.product import Product, make_home

PATIENCE_S = 60.0
COMPATIBLE = "/compatible-mode/v1/chat/completions"


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, elsewhere: ChatServer) -> Iterator[Product]:
    folder: Path = tmp_path_factory.mktemp("product")
    running = Product(
        make_home(folder / "home"),
        folder / "served",
        CHAT_BASE_URL=elsewhere.base_url,
        CHAT_API_KEY=KEY,
    )
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def _nothing_happened(elsewhere: ChatServer) -> None:
    elsewhere.left.clear()
    elsewhere.go_on.clear()


def body_for(path: str, said: str, *, stream: bool) -> dict[str, Any]:
    messages = [{"role": "user", "content": said}]
    return {"model": "qwen-plus", "messages": messages, "stream": stream, "input": {"messages": messages}}


def ask(product: Product, path: str, said: str, *, stream: bool = True) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(product.address, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {product.keys['good']}", "Content-Type": "application/json"}
    if stream and path == TEXT:
        headers["X-DashScope-SSE"] = "enable"
    connection.request("POST", path, json.dumps(body_for(path, said, stream=stream)), headers)
    return connection


@pytest.mark.parametrize("path", [TEXT, COMPATIBLE])
def test_the_first_words_do_not_wait_for_the_rest(product: Product, elsewhere: ChatServer, path: str) -> None:
    connection = ask(product, path, "Tell me a story.")
    response = connection.getresponse()
    heard = b""
    while FIRST.split()[0].encode() not in heard:
        heard += response.readline()
    assert not elsewhere.go_on.is_set()  # the model has not said the rest yet
    elsewhere.go_on.set()
    assert b"later" in response.read()
    connection.close()


@pytest.mark.parametrize("path", [TEXT, COMPATIBLE])
async def test_a_reader_who_leaves_stops_the_model_and_is_charged(
    product: Product, elsewhere: ChatServer, path: str
) -> None:
    connection = ask(product, path, "An endless one, please.")
    response = connection.getresponse()
    assert response.status == 200
    response.readline()
    connection.close()
    response.close()
    assert elsewhere.left.wait(PATIENCE_S), "the model went on talking to nobody"
    row = await product.row(
        "select quantity from accounts_usagerecord where request_id = ? and unit = 'output_tokens'",
        response.headers["X-Request-ID"],
    )
    assert row["quantity"] > 0


@pytest.mark.parametrize("path", [TEXT, COMPATIBLE])
def test_a_caller_who_does_not_wait_for_the_whole_answer_stops_the_model(
    product: Product, elsewhere: ChatServer, path: str
) -> None:
    known = len(elsewhere.requests)
    connection = ask(product, path, "An endless one, please.", stream=False)
    deadline = time.monotonic() + PATIENCE_S
    while len(elsewhere.requests) == known:
        assert time.monotonic() < deadline, "the model was never asked"
        time.sleep(0.01)
    connection.close()
    assert elsewhere.left.wait(PATIENCE_S), "the model went on talking to nobody"


def test_a_server_that_served_leavers_serves_on(product: Product) -> None:
    connection = ask(product, TEXT, "Are you there?", stream=False)
    response = connection.getresponse()
    assert json.loads(response.read())["output"]["text"] == "I am here."
    connection.close()
    assert "Traceback" not in product.log
