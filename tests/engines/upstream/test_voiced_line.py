"""A session with a service that writes its replies, spoken here: a line with a script in the place of the service's."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import pytest

from voiceapp.engines.interfaces import Call, Voice
from voiceapp.engines.upstream import voiced_line
from voiceapp.engines.upstream.line import EventLine, LineLost
from voiceapp.engines.upstream.voiced_line import VoicedLine
from voiceapp.errors import EngineUnavailable

PATIENCE_S = 10.0
STEPS = 500
"""More than any of these conversations takes until nothing is left to do but wait."""
PIECE_S = 0.1

Event = dict[str, Any]


class Script:
    """An `EventLine` on which a test is the service."""

    age_s = 0.0
    cut: LineLost | None = None
    is_speaking = False

    def __init__(self) -> None:
        self.sent: list[Event] = []
        self._said: asyncio.Queue[Event | None] = asyncio.Queue()
        self.is_closed = False

    async def send(self, text: str) -> None:
        self.sent.append(json.loads(text))

    async def receive(self) -> str:
        event = await self._said.get()
        if event is None:
            raise LineLost(1006)
        return json.dumps(event)

    def go_on_from(self, before: EventLine) -> None:
        pass

    async def close(self) -> None:
        self.is_closed = True

    def all(self, type_: str) -> list[Event]:
        """What the service was told, of one type."""
        return [event for event in self.sent if event["type"] == type_]

    def say(self, type_: str, **fields: Any) -> None:
        self._said.put_nowait({"event_id": "event_1", **fields, "type": type_})

    def lose(self) -> None:
        self._said.put_nowait(None)

    def begin(self, number: int, **about: Any) -> None:
        self.say("response.created", response={"id": f"resp_{number}", "conversation_id": "conv_1", **about})

    def write(self, number: int, words: str) -> None:
        self.say("response.text.delta", **of(number), delta=words)

    def end(self, number: int, status: str = "completed", **about: Any) -> None:
        self.say("response.done", response={"id": f"resp_{number}", "status": status, **about})


def of(number: int) -> Event:
    return {"response_id": f"resp_{number}", "item_id": f"item_{number}", "output_index": 0, "content_index": 0}


class Mouth:
    """Speaks each sentence for so many pieces of 0.1 s."""

    voices: Sequence[Voice] = (Voice("anna", "Anna"),)
    default_voice = "anna"

    def __init__(self, pieces: int) -> None:
        self._pieces = pieces
        self.spoken = 0
        """Pieces."""
        self.fails_at = ""

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        if self.fails_at and self.fails_at in text:
            raise EngineUnavailable("The voice is gone.")
        for _ in range(self._pieces):
            self.spoken += 1
            yield bytes(round(2 * sample_rate_hz * PIECE_S))


class Conversation:
    """A line, and who uses it."""

    def __init__(self, script: Script, mouth: Mouth, tasks: asyncio.TaskGroup) -> None:
        self.mouth = mouth
        self.line = VoicedLine(script, Call(session_id="sess_1", model="voice"), mouth, tasks)
        self.events: list[Event] = []

    async def ask(self, type_: str, **fields: Any) -> None:
        await self.line.send(json.dumps({**fields, "type": type_}))

    async def until(self, type_: str) -> Event:
        """Receive to the next event of a type."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                event = json.loads(await self.line.receive())
                self.events.append(event)
                if event["type"] == type_:
                    return dict(event)

    def said(self, number: int) -> str:
        """The words received of a reply."""
        kinds = ("response.audio_transcript.delta", "response.text.delta")
        ours = [each for each in self.events if each["type"] in kinds and each["response_id"] == f"resp_{number}"]
        return "".join(each["delta"] for each in ours)

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


@contextlib.asynccontextmanager
async def conversing(pieces: int = 1) -> AsyncIterator[tuple[Script, Conversation]]:
    script = Script()
    async with asyncio.TaskGroup() as tasks:
        conversation = Conversation(script, Mouth(pieces), tasks)
        try:
            yield script, conversation
        finally:
            await conversation.line.close()


async def settle() -> None:
    """Let all tasks do what they can without anybody who receives."""
    for _ in range(STEPS):
        await asyncio.sleep(0)


async def test_a_reply_is_written_on_while_the_next_one_waits() -> None:
    async with conversing() as (service, caller):
        service.begin(1)
        service.write(1, "One two.")
        await caller.until("response.audio_transcript.delta")
        service.begin(2)
        service.write(2, "Five six.")
        service.write(1, " Three four.")
        service.end(2)
        service.end(1)
        assert (await caller.until("response.done"))["response"]["id"] == "resp_1"
        assert caller.said(1) == "One two. Three four."
        assert "Five" not in caller.said(2)
        assert (await caller.until("response.done"))["response"]["id"] == "resp_2"
        assert caller.said(2) == "Five six."


async def test_a_lost_line_is_noticed_while_a_reply_waits() -> None:
    async with conversing(pieces=1000) as (service, caller):
        service.begin(1)
        service.write(1, "One two.")
        service.end(1)
        await caller.until("response.audio.delta")
        service.begin(2)
        service.lose()
        with pytest.raises(LineLost):
            await caller.until("response.done")


async def test_a_caller_interrupts_though_another_reply_waits() -> None:
    async with conversing(pieces=1000) as (service, caller):
        service.say("session.updated", session={})
        service.begin(1)
        service.write(1, "One two.")
        service.end(1)
        await caller.until("response.audio.delta")
        for number in (2, 3):
            service.begin(number)
            service.write(number, "Five six.")
            service.end(number)
        service.say("input_audio_buffer.speech_started", audio_start_ms=0, item_id="item_9")
        for number in (1, 2, 3):
            done = (await caller.until("response.done"))["response"]
            assert (done["id"], done["status"]) == (f"resp_{number}", "cancelled")
        assert caller.types.count("input_audio_buffer.speech_started") == 1
        assert caller.types.index("input_audio_buffer.speech_started") > caller.types.index("response.done")


async def test_a_session_that_the_service_finished_ends_with_its_last_reply() -> None:
    async with conversing() as (service, caller):
        service.begin(1)
        service.write(1, "One two.")
        await caller.until("response.audio_transcript.delta")
        service.say("session.finished")
        service.lose()
        done = (await caller.until("response.done"))["response"]
        assert (done["id"], done["status"]) == ("resp_1", "completed")
        await caller.until("session.finished")


async def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voiced_line, "MOST_HELD", 10)
    async with conversing(pieces=1000) as (service, caller):
        service.begin(1)
        service.write(1, "One two.")
        await caller.until("response.audio_transcript.delta")
        service.begin(2)
        for _ in range(10):
            service.write(2, "Five six.")
        with pytest.raises(LineLost):
            await caller.until("response.done")


async def test_a_service_waits_that_says_too_much_after_a_written_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voiced_line, "MOST_HELD", 10)
    async with conversing() as (service, caller):
        await caller.ask("session.finish")
        service.begin(1)
        service.write(1, "One two.")
        service.end(1)
        service.begin(2)
        for _ in range(30):
            service.write(2, "Five six. ")
        service.end(2)
        await caller.until("response.done")
        assert (await caller.until("response.done"))["response"]["status"] == "completed"
        assert caller.said(2) == "Five six. " * 30


async def test_settings_of_a_refused_response_are_not_those_of_the_next() -> None:
    for asked in ({}, {"event_id": "mine"}):
        async with conversing() as (service, caller):
            await caller.ask("response.create", response={"modalities": ["text"]}, **asked)
            service.say(
                "error", error={"code": "user_is_speaking", "message": "No.", "event_id": asked.get("event_id")}
            )
            service.begin(1)
            service.write(1, "One two.")
            service.end(1)
            await caller.until("response.audio.delta")


async def test_the_voice_waits_while_nobody_receives() -> None:
    async with conversing(pieces=1000) as (service, caller):
        service.begin(1)
        service.write(1, "One two.")
        service.end(1)
        await caller.until("response.audio.delta")
        await settle()
        assert caller.mouth.spoken * PIECE_S < 10


async def test_tokens_of_an_interrupted_reply_are_counted() -> None:
    async with conversing(pieces=1000) as (service, caller):
        service.begin(1)
        for _ in range(20):
            service.write(1, "One two. ")
        service.end(1, usage={"input_tokens_details": {"text_tokens": 7}, "output_tokens_details": {"text_tokens": 40}})
        await caller.until("response.audio.delta")
        service.say("input_audio_buffer.speech_started", audio_start_ms=0, item_id="item_9")
        done = (await caller.until("response.done"))["response"]
        assert done["status"] == "cancelled"
        assert (done["usage"]["input_tokens_details"]["text_tokens"]) == 7
        assert (done["usage"]["output_tokens_details"]["text_tokens"]) == 40


async def test_what_the_service_says_of_our_cancel_does_not_end_what_is_spoken() -> None:
    async with conversing(pieces=10) as (service, caller):
        caller.mouth.fails_at = "Three four."
        service.begin(1)
        service.write(1, "One two. Three four. ")
        await caller.until("response.audio.delta")
        await settle()
        await caller.until("response.audio.delta")  # whoever receives also tells the service
        assert [event["response_id"] for event in service.all("response.cancel")] == ["resp_1"]
        service.end(1, "cancelled", status_details={"reason": "client_cancelled"})
        assert (await caller.until("response.done"))["response"]["status"] == "failed"


@pytest.mark.parametrize("about", [{}, {"conversation_id": None}])
@pytest.mark.parametrize("asked", [{}, {"conversation": "none"}])
async def test_a_response_is_out_of_band_that_was_asked_for_so(about: Event, asked: Event) -> None:
    """Many services name no conversation."""
    async with conversing() as (service, caller):
        if asked:
            await caller.ask("response.create", response=asked)
        service.say("response.created", response={"id": "resp_1", **about})
        service.write(1, "One two.")
        service.end(1)
        done = (await caller.until("response.done"))["response"]
        assert (done["conversation_id"] is None) is bool(asked)
        assert ("conversation.item.created" in caller.types) is not bool(asked)


async def test_a_response_with_a_conversation_is_none_that_was_asked_for_out_of_band() -> None:
    async with conversing() as (service, caller):
        await caller.ask("response.create", response={"conversation": "none"})
        service.begin(1)
        service.write(1, "One two.")
        service.end(1)
        assert (await caller.until("response.done"))["response"]["conversation_id"]


@pytest.mark.parametrize("names_item", [True, False])
async def test_a_reply_that_is_interrupted_before_its_first_words_is_not_kept_there(names_item: bool) -> None:
    """The service had written it when it was told."""
    async with conversing() as (service, caller):
        message = {"id": "item_1", "type": "message", "role": "assistant"}
        service.begin(1)
        if names_item:
            service.say("response.output_item.added", response_id="resp_1", output_index=0, item=message)
            service.say("conversation.item.created", item=message, previous_item_id="item_0")
        await caller.until("response.created")
        service.say("input_audio_buffer.speech_started", audio_start_ms=0, item_id="item_9")
        assert (await caller.until("response.done"))["response"]["status"] == "cancelled"
        service.write(1, "One two.")
        service.end(1, output=[message])
        service.say("vendor.note")
        await caller.until("vendor.note")
        assert [event["item_id"] for event in service.all("conversation.item.delete")] == ["item_1"]
        assert service.sent[0]["type"] == "response.cancel"
        service.say("conversation.item.deleted", item_id="item_1")
        service.say("vendor.note")
        await caller.until("vendor.note")
        assert "conversation.item.deleted" not in caller.types


async def test_an_earlier_reply_can_be_truncated() -> None:
    """Its caller plays late. The service has it as text, which it would not truncate."""
    async with conversing() as (service, caller):
        for number in (1, 2):
            service.begin(number)
            service.write(number, "One two.")
            service.end(number)
            await caller.until("response.done")
        await caller.ask("conversation.item.truncate", item_id="item_1", content_index=0, audio_end_ms=60)
        truncated = await caller.until("conversation.item.truncated")
        assert (truncated["item_id"], truncated["transcript"], truncated["unheard"]) == ("item_1", "One", " two.")
        assert not service.all("conversation.item.truncate")
        assert [event["item_id"] for event in service.all("conversation.item.delete")] == ["item_1"]
        (kept,) = service.all("conversation.item.create")
        assert (kept["item"]["id"], kept["item"]["content"][0]["text"]) == ("item_1", "One")
