"""Calls with the real server and its real engines: spoken, typed, with any channel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.speech import word_errors
from tests.realtime.conftest import Servers
from tests.realtime.product import Product
from tests.realtime.webrtc.caller import calling
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.interfaces import Samples

Voices = Callable[[str], Samples]

QUESTION = "What is twelve times twelve?"
ANSWER = "12 times 12 is 144."


@pytest.fixture(scope="module")
def product(servers: Servers) -> Product:
    return servers("daphne")


async def test_a_spoken_question_is_recognised_and_answered_aloud(product: Product, voices: Voices) -> None:
    async with calling(product.origin, product.keys["good"]) as caller:
        await caller.microphone.say(voices(QUESTION))
        done = await caller.wait("response.done")
        await caller.wait_quiet()
        heard = await Moonshine().recognize(caller.speech())
    transcript = caller.all("conversation.item.input_audio_transcription.completed")[0]["transcript"]
    assert word_errors(QUESTION, transcript) <= 1
    assert done["response"]["status"] == "completed"
    assert word_errors(ANSWER, heard.text) <= 2, heard.text
    assert not caller.all("response.audio.delta")
