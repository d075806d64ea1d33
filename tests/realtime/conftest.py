"""Running servers, and words to say to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection

from tests.engines.speech import spoken
from tests.realtime.chat_server import ChatServer
from tests.realtime.product import Home, Product, make_home
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import Samples
from voiceapp.engines.models import weights

Serve = Callable[..., Product]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    if missing := weights.missing():
        pytest.fail(f"Model files are missing ({', '.join(missing)}); run: python manage.py fetch_models")
    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def serve(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start servers, `serve(SESSION_LIFETIME_S="3")`; all of them are stopped after the module."""
    with ExitStack() as running:

        def start(**options: Any) -> Product:
            folder: Path = tmp_path_factory.mktemp("product")
            product = Product(home, folder, **options)
            running.callback(product.stop)
            return product

        yield start


@pytest.fixture(scope="session")
def product(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product with its usual settings, one for all modules of a worker."""
    product = Product(home, tmp_path_factory.mktemp("shared"), DEFAULT_VOICE="")
    yield product
    product.stop()


@pytest.fixture(scope="module")
def chat_server() -> Iterator[ChatServer]:
    """A language model elsewhere, for servers with its `base_url` as CHAT_BASE_URL."""
    with ChatServer() as server:
        yield server


@pytest.fixture(scope="session")
def voices() -> Callable[[str], Samples]:
    """Somebody saying a text: `voices("What time is it?")`, 16 kHz."""
    known: dict[str, Samples] = {}

    async def speak(text: str) -> Samples:
        espeak = Espeak()
        try:
            return await spoken(espeak, text, voice="en-us+m3", rate=0.9)
        finally:
            await espeak.close()

    def say(text: str) -> Samples:
        if text not in known:
            with ThreadPoolExecutor(1) as thread:  # a loop may be running in this one
                known[text] = thread.submit(asyncio.run, speak(text)).result(60)
        return known[text]

    return say


@pytest.fixture
async def offer() -> AsyncIterator[str]:
    """The SDP offer that a browser would send, with all candidates."""
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    connection.addTransceiver("audio")
    connection.createDataChannel("svc-events")
    await connection.setLocalDescription(await connection.createOffer())
    yield connection.localDescription.sdp
    await connection.close()
