"""Sessions over AOQ with the real server, its relay and its engines: spoken, typed, finished, abandoned, flooded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.engines.speech import word_errors
from tests.realtime.aoq.peer import calling, client, granted, url_of
from tests.realtime.product import Product
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.interfaces import Samples

QUESTION = "What is twelve times twelve?"
QUESTIONS = (QUESTION, "What is 12 times 12?")
ANSWERS = ("12 times 12 is 144.", "Twelve times twelve is one hundred forty four.")


async def test_a_spoken_question_is_answered_aloud(product: Product, voices: Callable[[str], Samples]) -> None:
    async with calling(await granted(product.origin, product.keys["good"])) as peer:
        await peer.say(voices(QUESTION))
        done = await peer.wait("response.done")
        await peer.send("session.finish")
        await peer.wait("session.finished")
        assert await peer.wait_closed() == 1000  # after the rest of the reply
    heard = (await Moonshine().recognize(peer.speech())).text
    (transcript,) = peer.all("conversation.item.input_audio_transcription.completed")
    assert done["response"]["status"] == "completed"
    assert min(word_errors(question, transcript["transcript"]) for question in QUESTIONS) == 0
    assert min(word_errors(answer, heard) for answer in ANSWERS) <= 2, heard
    assert peer.types[0] == "session.created"
    assert not peer.all("response.audio.delta")
    assert not peer.all("error")


async def test_who_leaves_is_recorded_as_having_left(product: Product) -> None:
    async with calling(await granted(product.origin, product.keys["good"])) as peer:
        session_id = peer.all("session.created")[0]["session"]["id"]
    row = await product.row(
        "SELECT transport, close_code, close_reason FROM realtime_realtimesession"
        " WHERE id = ? AND ended_at IS NOT NULL",
        session_id,
    )
    assert row == {"transport": "aoq", "close_code": 1001, "close_reason": "The caller left."}


async def test_who_connects_and_says_nothing_is_not_kept(product: Product) -> None:
    grant = await granted(product.origin, product.keys["good"])
    async with client(url_of(grant), grant["clientRelayCertFingerprint"]):
        await product.logged("the caller connected and did not begin")


async def test_messages_are_read_as_on_a_socket(product: Product) -> None:
    async with calling(await granted(product.origin, product.keys["good"])) as peer:
        peer.send_bytes(b"\xff\xfe")
        assert (await peer.wait("error"))["error"]["code"] == "invalid_frame"
        peer.send_bytes(b"{")
        await peer.wait("error", count=2)
        await peer.send("input_audio_buffer.append", audio="AAAA")
        assert (await peer.wait("error", count=3))["error"]["param"] == "audio"
        await peer.ask(QUESTION)
        assert (await peer.wait("response.done"))["response"]["status"] == "completed"


async def test_who_sends_too_much_is_told_so(product: Product) -> None:
    async def flood(of: str) -> tuple[str, int | None]:
        async with calling(await granted(product.origin, product.keys["good"])) as peer:
            if of == "objects":
                for _ in range(1500):
                    peer.send_packet(b"\xf8\xff\xfe")
                    await asyncio.sleep(0)
            elif of == "messages":
                for _ in range(1500):
                    await peer.send("session.update", session={})
            else:
                peer.send_bytes(b" " * (1024 * 1024 + 1))
            error = await peer.wait("error")
            await peer.wait("session.closing")
            return error["error"]["code"], await peer.wait_closed()

    assert await flood("objects") == ("too_much_audio", 4408)
    assert await flood("messages") == ("too_many_messages", 4408)
    assert await flood("one message") == ("message_too_large", 4408)
