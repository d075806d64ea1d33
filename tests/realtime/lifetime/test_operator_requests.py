"""What operators ask of open conversations, against the real server."""

from __future__ import annotations

from collections.abc import Callable

from tests.realtime.product import Product
from tests.realtime.talker import Talker, call
from voiceapp.engines.interfaces import Samples


def ask(product: Product, talker: Talker, kind: str, words: str = "") -> None:
    product.write(
        "insert into realtime_operatorrequest (session_id, kind, words, asked_at) values (?, ?, ?, CURRENT_TIMESTAMP)",
        talker.heard[0].event["session"]["id"],
        kind,
        words,
    )


def said(talker: Talker) -> list[str]:
    return [event["transcript"] for event in talker.all("response.audio_transcript.done")]


async def test_they_have_sentences_said_that_no_model_reads(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        ask(product, talker, "say", "We close in five minutes.")
        await talker.wait("response.done")
        assert said(talker) == ["We close in five minutes."]
        assert talker.audio()
        assert talker.all("response.done")[0]["response"]["conversation_id"] is None


async def test_they_mute_a_caller_who_is_told_and_heard_again_later(
    product: Product, voices: Callable[[str], Samples]
) -> None:
    async with call(product.url, product.keys["good"], has_microphone=True) as talker:
        ask(product, talker, "mute")
        await talker.wait("response.done")
        await talker.say(voices("What time is it?"))
        ask(product, talker, "unmute")
        await talker.wait("response.done", count=2)
        assert said(talker) == ["An operator has muted you. You are not heard for now.", "You are heard again."]
        assert talker.all("input_audio_buffer.speech_started") == []
        await talker.say(voices("What time is it?"))
        await talker.wait("response.done", count=3)
        assert len(talker.all("input_audio_buffer.speech_started")) == 1


async def test_they_end_one_conversation_and_no_other(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as one, call(product.url, product.keys["good"]) as other:
        ask(product, one, "end")
        assert await one.wait_closed() == 4403
        assert one.heard[-1].event["type"] == "session.closing"
        await other.ask("Hello!")
        await other.wait("response.done")
    taken = product.rows("select taken_at from realtime_operatorrequest")
    assert taken
    assert all(row["taken_at"] for row in taken)
