"""What a session can do, over the channel and the track of a call, with a real server."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from tests.engines.speech import word_errors
from tests.realtime.product import Product
from tests.realtime.webrtc.caller import calling, post_offer
from tests.realtime.webrtc.network import Faults
from tests.realtime.webrtc.test_turns import QUESTION, Voices


async def test_what_is_said_before_the_session_is_created_is_not_heard(product: Product, voices: Voices) -> None:
    """The channel opens a second after the line here, and meanwhile somebody speaks."""
    while True:  # until it was said in time: a busy machine is slow to speak
        async with calling(product.origin, product.keys["good"], label=None, early=voices("Stop.")) as caller:
            if not 0 < caller.microphone.spoken_at < caller.at("session.created"):
                continue
            await caller.microphone.say(voices(QUESTION))
            transcript = await caller.wait("conversation.item.input_audio_transcription.completed")
            assert len(caller.all("input_audio_buffer.speech_started")) == 1
            break
    assert word_errors(QUESTION, transcript["transcript"]) <= 1


async def test_who_opens_a_channel_from_far_away_is_waited_for(product: Product) -> None:
    """Two trips there and back from the connected line to the open channel: 1.4 s here."""
    faults = Faults(delay_s=0.35)
    async with calling(product.origin, product.keys["good"], label="oai-events", faults=faults) as caller:
        await caller.ask(QUESTION)
        assert (await caller.wait("response.done"))["response"]["status"] == "completed"
        assert caller.channel is not None
        assert caller.channel.label == "oai-events"


async def test_a_channel_that_the_caller_opens_late_takes_the_place_of_the_server_s(product: Product) -> None:
    async with calling(product.origin, product.keys["good"], label=None) as caller:
        caller.adopt(caller.connection.createDataChannel("oai-events"))
        again = await caller.wait("session.created", count=2)
        assert again == caller.all("session.created")[0]
        heard: list[str] = []
        assert caller.channel is not None
        caller.channel.on("message", heard.append)
        await caller.ask(QUESTION)
        await caller.wait("response.done")
    assert "response.done" in {json.loads(text)["type"] for text in heard}


async def test_who_uses_the_server_s_channel_may_have_others_besides(product: Product) -> None:
    async with calling(product.origin, product.keys["good"], label=None) as caller:
        await caller.send("input_audio_buffer.clear")
        await caller.wait("input_audio_buffer.cleared")
        used, heard = caller.channel, list[str]()
        other = caller.connection.createDataChannel("of their own")
        other.on("message", heard.append)
        opened = asyncio.Event()
        other.on("open", opened.set)
        await opened.wait()
        other.send("what is said here is not for the server")
        other.close()
        await caller.ask(QUESTION)
        assert (await caller.wait("response.done"))["response"]["status"] == "completed"
        assert caller.channel is used
    assert heard == []
    assert "error" not in caller.types


async def test_an_event_larger_than_the_caller_takes_is_left_out(product: Product) -> None:
    async def post(offer: str) -> tuple[int, str, Any]:
        smaller, count = re.subn(r"a=max-message-size:\d+", "a=max-message-size:16384", offer)
        assert count == 1
        return await post_offer(product.origin, product.keys["good"], smaller)

    async with calling(product.origin, product.keys["good"], post=post) as caller:
        fitting = "夜" * 4000  # 12 kB as it stands, 24 kB escaped
        await caller.send("session.update", session={"instructions": fitting})
        assert (await caller.wait("session.updated"))["session"]["instructions"] == fitting
        await caller.send("session.update", session={"instructions": "x" * 20_000})
        error = (await caller.wait("error"))["error"]
        assert (error["code"], "session.updated" in error["message"]) == ("event_too_large", True)
        await caller.ask(QUESTION)
        assert (await caller.wait("response.done"))["response"]["status"] == "completed"
