"""A running server, and the client libraries that call it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dashscope
import openai
import pytest
from django.utils import timezone

from tests.realtime.chat_server import KEY, ChatServer
from tests.realtime.conftest import home, serve
from tests.realtime.product import Home, Product
from voiceapp.realtime.aoq.models import AoqRelay

__all__ = ["home", "serve"]


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[ChatServer]:
    """The language model of `product`."""
    with ChatServer() as server:
        yield server


@pytest.fixture(scope="session")
def product(home: Home, tmp_path_factory: pytest.TempPathFactory, elsewhere: ChatServer) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    running = Product(home, folder, CHAT_BASE_URL=elsewhere.base_url, CHAT_API_KEY=KEY)
    yield running
    running.stop()


@pytest.fixture
def old(product: Product) -> dict[str, Any]:
    """Options of every call of the 1.x library."""
    return {"api_key": product.keys["good"], "base_address": f"{product.origin}/api/v1"}


@pytest.fixture
def new(product: Product) -> Iterator[dashscope.Client]:
    with dashscope.Client(api_key=product.keys["good"], base_url=f"{product.origin}/api/v1", max_retries=0) as client:
        yield client


@pytest.fixture
def compatible(product: Product) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        api_key=product.keys["good"], base_url=f"{product.origin}/compatible-mode/v1", max_retries=0
    ) as client:
        yield client


@pytest.fixture
def a_relay_lives(db: None) -> None:
    """One that grants may name; nothing connects to it."""
    AoqRelay.objects.create(
        endpoint="relay.example",
        port=8443,
        fingerprint="ab" * 32,
        capacity=10,
        heartbeat_at=timezone.now(),
        served_by="somewhere:1:2",
    )
