"""Conversations in another language. The German is synthetic: espeak-ng's, on both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import pytest
import pytest_asyncio

from tests.engines.speech import spoken, words
from tests.ports import free_udp_port
from tests.realtime.aoq import peer
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call
from tests.realtime.webrtc import caller
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import Samples

COMPLETED = "conversation.item.input_audio_transcription.completed"
ENGLISH_ONLY = "Ich kann nur auf Englisch antworten."


@pytest.fixture(scope="module")
def german_server(serve: Serve) -> Product:
    return serve(SPEECH_LANGUAGES="de", AOQ_PORT=str(free_udp_port()))


@pytest_asyncio.fixture
async def german() -> AsyncIterator[Samples]:
    espeak = Espeak()
    try:
        yield await spoken(espeak, "Ich möchte morgen früh nach Hamburg fahren.", voice="de")
    finally:
        await espeak.close()


@pytest.mark.parametrize("settings", [{"language": "de"}, {"language": "auto"}])
async def test_a_german_caller_is_understood(german_server: Product, german: Samples, settings: dict[str, str]) -> None:
    async with call(german_server.url, german_server.keys["good"], has_microphone=True) as talker:
        await talker.send("session.update", session={"input_audio_transcription": settings})
        await talker.say(german)
        heard = await talker.wait(COMPLETED, timeout_s=60)
        done = (await talker.wait("response.done", timeout_s=60))["response"]
    assert {"morgen", "hamburg", "fahren"} <= set(words(heard["transcript"])), heard
    assert heard["language"] == "de"
    assert done["output"][0]["content"][0]["transcript"].startswith(ENGLISH_ONLY)


@pytest.mark.parametrize(("header", "is_german"), [("de-AT,en;q=0.5", True), ("en-GB,en;q=0.5", False)])
@pytest.mark.parametrize("way", ["socket", "offer", "grant"])
async def test_only_the_languages_of_the_client_are_detected(
    german_server: Product, german: Samples, way: str, header: str, is_german: bool
) -> None:
    origin, key, headers = german_server.origin, german_server.keys["good"], {"Accept-Language": header}
    async with AsyncExitStack() as stack:
        if way == "socket":
            talker = await stack.enter_async_context(call(german_server.url, key, headers=headers, has_microphone=True))
            await talker.say(german)
            heard = await talker.wait(COMPLETED, timeout_s=60)
        elif way == "offer":
            post = partial(caller.post_offer, origin, key, **headers)
            web = await stack.enter_async_context(caller.calling(origin, key, post=post))
            await web.microphone.say(german)
            heard = await web.wait(COMPLETED, timeout_s=60)
        else:
            grant = await peer.granted(origin, key, headers=headers)
            mobile = await stack.enter_async_context(peer.calling(grant))
            await mobile.say(german)
            heard = await mobile.wait(COMPLETED, timeout_s=60)
    assert (heard["language"] == "de") == is_german, heard
    assert ("Hamburg" in heard["transcript"]) == is_german, heard
