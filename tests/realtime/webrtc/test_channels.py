"""What callers may do with data channels, and what ends a call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.realtime.product import Product
from tests.realtime.webrtc.caller import Caller, calling

ANNOUNCED_BYTES = 262_144
"""The max-message-size of answers."""


async def assert_ended_as_flood(caller: Caller) -> None:
    error = (await caller.wait("error"))["error"]
    closing = await caller.wait("session.closing")
    await caller.wait_closed()
    assert error["code"] == "message_too_large"
    assert closing["code"] == 4408


async def test_messages_of_the_size_that_was_announced_are_understood(product: Product) -> None:
    async with calling(product.origin, product.keys["good"]) as caller:
        assert f"a=max-message-size:{ANNOUNCED_BYTES}\r\n" in caller.answer
        assert caller.channel is not None
        caller.channel.send('{"type":"input_audio_buffer.clear"}'.ljust(ANNOUNCED_BYTES))
        await caller.wait("input_audio_buffer.cleared")


async def test_a_message_without_end_ends_the_call(product: Product) -> None:
    async with calling(product.origin, product.keys["good"]) as caller:
        sctp: Any = caller.connection.sctp
        sctp._remote_max_message_size = 0
        assert caller.channel is not None
        caller.channel.send(" " * (ANNOUNCED_BYTES * 16))
        await assert_ended_as_flood(caller)


async def test_channels_without_number_end_the_call(product: Product) -> None:
    async with calling(product.origin, product.keys["good"]) as caller:
        for number in range(300):
            caller.connection.createDataChannel(f"channel {number}")
            await asyncio.sleep(0)
        await assert_ended_as_flood(caller)


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_a_channel_that_the_server_does_not_know_is_no_obstacle(product: Product, number: int) -> None:
    async with calling(product.origin, product.keys["good"], label=None, unused_number=number) as caller:
        assert caller.channel is not None
        assert caller.channel.label == "svc-events"
        await caller.send("input_audio_buffer.clear")
        await caller.wait("input_audio_buffer.cleared")
