"""What operators ask of open conversations, against the real server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tests.realtime.product import Product
from tests.realtime.talker import Talker, call
from tests.realtime.webrtc.caller import calling
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


def watch(product: Product, session_id: str) -> None:
    product.write("update realtime_realtimesession set watched_until = '2999-01-01' where id = ?", session_id)


async def test_words_are_told_while_they_look_and_not_of_other_conversations(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as one, call(product.url, product.keys["good"]) as other:
        ids = [talker.heard[0].event["session"]["id"] for talker in (other, one)]
        for talker, session_id in zip((other, one), ids, strict=True):
            await product.row("select id from realtime_realtimesession where id = ?", session_id)
            await talker.ask("Hello!")
            await talker.wait("response.audio_transcript.done")
        watch(product, ids[1])
        told = "select live_words from realtime_realtimesession where id = ? and live_words like ?"
        found = await product.row(told, ids[1], f"%{said(one)[0][:20]}%")
        assert json.loads(found["live_words"])["quality"] == ""
        assert product.rows(told, ids[0], "%") == []
    ended = "select live_words from realtime_realtimesession where id = ? and ended_at is not null"
    assert (await product.row(ended, ids[1]))["live_words"] is None


async def test_the_network_of_a_call_is_told(product: Product) -> None:
    async with calling(product.origin, product.keys["good"]) as caller:
        (created,) = caller.all("session.created")
        session_id = created["session"]["id"]
        await product.row("select id from realtime_realtimesession where id = ?", session_id)
        watch(product, session_id)
        await caller.ask("What can you do?")
        told = "select id from realtime_realtimesession where id = ? and live_words like '%round trip%'"
        await product.row(told, session_id)
    ended = "select quality from realtime_realtimesession where id = ? and ended_at is not null"
    quality = (await product.row(ended, session_id))["quality"]
    assert re.fullmatch(r"lost on the way here .*%, jitter \d+ ms, lost on .*%, round trip \d+ ms", quality)
