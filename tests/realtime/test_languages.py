"""Conversations in another language. The German is synthetic: espeak-ng's, on both sides."""

from __future__ import annotations

import pytest

from tests.engines.speech import spoken, words
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call
from voiceapp.engines.espeak.voice import Espeak

COMPLETED = "conversation.item.input_audio_transcription.completed"
ENGLISH_ONLY = "Ich kann nur auf Englisch antworten."


@pytest.fixture(scope="module")
def german_server(serve: Serve) -> Product:
    return serve(SPEECH_LANGUAGES="de")


@pytest.mark.parametrize("settings", [{"language": "de"}, {"language": "auto"}])
async def test_a_german_caller_is_understood(german_server: Product, settings: dict[str, str]) -> None:
    espeak = Espeak()
    try:
        speech = await spoken(espeak, "Ich möchte morgen früh nach Hamburg fahren.", voice="de")
    finally:
        await espeak.close()
    async with call(german_server.url, german_server.keys["good"], has_microphone=True) as talker:
        await talker.send("session.update", session={"input_audio_transcription": settings})
        await talker.say(speech)
        heard = await talker.wait(COMPLETED, timeout_s=60)
        done = (await talker.wait("response.done", timeout_s=60))["response"]
    assert {"morgen", "hamburg", "fahren"} <= set(words(heard["transcript"])), heard
    assert heard["language"] == "de"
    assert done["output"][0]["content"][0]["transcript"].startswith(ENGLISH_ONLY)
