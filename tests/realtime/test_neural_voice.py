"""A conversation in which the neural voice speaks, because nobody chose another."""

from __future__ import annotations

from tests.engines.speech import samples, word_errors, words
from tests.realtime.product import Product
from tests.realtime.talker import call
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ

OUTPUT = {"output": {"format": {"type": "pcm", "sample_rate": ENGINE_SAMPLE_RATE_HZ}}}


async def test_what_a_caller_hears_is_what_was_replied(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        assert (await talker.wait("session.created"))["session"]["voice"] == "woman"
        await talker.send("session.update", session={"audio": OUTPUT})
        await talker.ask("What can you do?")
        done = (await talker.wait("response.done", timeout_s=60))["response"]

    said = done["output"][0]["content"][0]["transcript"]
    heard = (await Moonshine().recognize(samples(talker.audio()))).text
    assert len(words(said)) > 10
    assert word_errors(said, heard) <= 0.15 * len(words(said)), (said, heard)
