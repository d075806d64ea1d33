"""A conversation that is spoken here and goes on in another session with the service that writes it."""

from __future__ import annotations

import asyncio
import contextlib
from base64 import b64decode
from collections.abc import AsyncIterator

import pytest

from tests.engines.upstream.test_realtime import Conversation
from tests.engines.upstream.test_voiced_line import Mouth, Script
from voiceapp.engines.interfaces import Call
from voiceapp.engines.upstream import lines
from voiceapp.engines.upstream.line import EventLine
from voiceapp.engines.upstream.realtime import UpstreamStream
from voiceapp.engines.upstream.voiced_line import VoicedLine
from voiceapp.errors import EngineUnavailable
from voiceapp.protocol import events as ev

CALL = Call(session_id="sess_1", model="voice")


@contextlib.asynccontextmanager
async def conversing(*services: Script, pieces: int, silent: Script | None = None) -> AsyncIterator[Conversation]:
    """Each session is with the next service, the silent one of which begins none; then none answers."""
    left = list(services)
    for service in services:
        if service is not silent:
            service.say("session.created", session={"id": "theirs"})
    async with asyncio.TaskGroup() as tasks:

        async def dial() -> EventLine:
            if not left:
                raise EngineUnavailable("Nobody is there.")
            return VoicedLine(left.pop(0), CALL, Mouth(pieces), tasks)

        conversation = Conversation(UpstreamStream(CALL, dial))
        running = tasks.create_task(conversation.run())
        yield conversation
        running.cancel()


def reply(service: Script) -> None:
    service.begin(1)
    service.write(1, "One two.")
    service.end(1)


async def test_a_written_reply_is_spoken_to_its_end_though_the_service_is_lost() -> None:
    first, second = Script(), Script()
    async with conversing(first, second, pieces=12) as caller:
        reply(first)
        await caller.wait("response.audio.delta")
        first.lose()
        await caller.stream.receive(ev.AudioAppend(audio=bytes(640)))
        done = (await caller.wait("response.done"))["response"]
        assert (done["id"], done["status"]) == ("resp_1", "completed")
        assert sum(len(b64decode(delta["delta"])) for delta in caller.all("response.audio.delta")) == 12 * 4_800
        await caller.until(lambda: second.all("conversation.item.create"))
        (known,) = second.all("conversation.item.create")
        assert (known["item"]["id"], known["item"]["content"][0]["text"]) == ("item_1", "One two.")
        assert second.all("input_audio_buffer.append")
        assert "error" not in caller.types
        assert first.is_closed


async def test_a_reply_that_ends_before_the_next_session_has_begun_is_known_there() -> None:
    first, second, third = Script(), Script(), Script()
    async with conversing(first, second, third, pieces=12, silent=second) as caller:
        reply(first)
        await caller.wait("response.audio.delta")
        first.lose()
        assert (await caller.wait("response.done"))["response"]["status"] == "completed"
        second.say("session.created", session={"id": "late"})
        await caller.until(lambda: third.all("conversation.item.create"))
        assert [item["item"]["id"] for item in third.all("conversation.item.create")] == ["item_1"]
        assert second.is_closed


async def test_a_caller_interrupts_the_reply_of_a_service_that_is_lost() -> None:
    first, second = Script(), Script()
    async with conversing(first, second, pieces=1000) as caller:
        reply(first)
        await caller.wait("response.audio.delta")
        first.lose()
        await caller.stream.receive(ev.AudioAppend(audio=bytes(640)))
        second.say("input_audio_buffer.speech_started", audio_start_ms=0, item_id="item_9")
        assert (await caller.wait("response.done"))["response"]["status"] == "cancelled"
        truncated = await caller.wait("conversation.item.truncated")
        told = [event["type"] for event in second.sent if event["type"].startswith("conversation.item")]
        again = ["conversation.item.create"] if truncated["transcript"] else []
        assert told == ["conversation.item.create", "conversation.item.delete", *again]


async def test_a_reply_is_spoken_to_its_end_though_no_service_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "RENEW_S", 0.0)
    monkeypatch.setattr(lines, "PAUSE_S", 0.0)
    first = Script()
    async with conversing(first, pieces=12) as caller:
        reply(first)
        await caller.wait("response.audio.delta")
        first.lose()
        assert (await caller.wait("response.done"))["response"]["status"] == "completed"
        await caller.until(lambda: caller.failure)


async def test_a_reply_that_is_not_complete_fails_with_its_service() -> None:
    first, second = Script(), Script()
    async with conversing(first, second, pieces=1000) as caller:
        first.begin(1)
        first.write(1, "One two. Three")
        await caller.wait("response.audio.delta")
        first.lose()
        assert (await caller.wait("response.done"))["response"]["status"] == "failed"
        await caller.stream.receive(ev.AudioAppend(audio=bytes(640)))
        assert second.all("input_audio_buffer.append")
        assert first.is_closed
