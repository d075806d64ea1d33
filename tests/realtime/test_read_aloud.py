"""A session that reads text aloud, on the bridge of all sessions: what it says, leaves and tells, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.realtime.test_bridge import Conversation, Line, Model
from voiceapp.accounts.models import ApiKey
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines import read_aloud
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import Call
from voiceapp.engines.read_aloud import ReadAloudModel, ReadAloudStream
from voiceapp.protocol.read_aloud import COMMIT, TASK, TextAppend, TextCommit
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.models import Turn
from voiceapp.webhooks.events import EventKind
from voiceapp.webhooks.models import WebhookEndpoint, WebhookEvent

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "Nine lives."


class Reading(Model):
    """Reads with a real voice, in a mode."""

    def __init__(self, voice: Espeak, **settings: Any) -> None:
        super().__init__()
        self._model = ReadAloudModel(voice)
        self._settings = settings

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> ReadAloudStream:  # type: ignore[override]
        call.opening.update(self._settings)
        return self._model.open(call, tasks)


@pytest.fixture
async def voice() -> AsyncIterator[Espeak]:
    voice = Espeak()
    yield voice
    await voice.close()


def reading(alice: Member, model: Reading) -> Conversation:
    conversation = Conversation(alice, Line(), model)
    conversation.name = catalogue().default("tts").name
    return conversation


def said_by(conversation: Conversation, *events: ev.ClientEvent) -> None:
    for event in events:
        conversation.line.incoming.put_nowait(event)


@pytest.mark.parametrize("mode", [COMMIT, TASK])
async def test_receivers_are_told_as_of_any_session(alice: Member, voice: Espeak, mode: str) -> None:
    await WebhookEndpoint.objects.acreate(
        workspace=alice.workspace, url="https://x.example", events=list(EventKind), secret_sealed="x"
    )
    conversation = reading(alice, Reading(voice, mode=mode))
    said_by(conversation, TextAppend(text=TEXT), TextCommit(), ev.SessionFinish())

    await conversation.run()

    assert [event.kind async for event in WebhookEvent.objects.order_by("pk")] == [
        EventKind.SESSION_CREATED,
        EventKind.THREAD_CREATED,
        EventKind.SESSION_RUN_STARTED,
        EventKind.THREAD_RUN_STARTED,
        EventKind.THREAD_IDLED,
        EventKind.SESSION_IDLED,
        EventKind.THREAD_TERMINATED,
        EventKind.SESSION_TERMINATED,
    ]
    assert conversation.said()[0] == "session.created"
    assert conversation.said()[-1] == "session.finished"
    assert (await Turn.objects.aget(session_id=conversation.id)).assistant_text == TEXT
    assert (await conversation.row()).close_code == 1000


@pytest.mark.parametrize("mode", [COMMIT, TASK])
async def test_a_budget_that_is_used_up_ends_it(alice: Member, voice: Espeak, settings: Settings, mode: str) -> None:
    settings.LEDGER_PRICES = {"tts": {"characters": 1000}}
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(monthly_budget_nano=len(TEXT) * 1000)
    conversation = reading(alice, Reading(voice, mode=mode))
    said_by(conversation, TextAppend(text=TEXT), TextCommit(), TextAppend(text=TEXT), TextCommit())

    async with asyncio.timeout(20):
        await conversation.run()

    assert (await conversation.row()).close_code == 4402
    assert conversation.line.sent[-2].to_wire()["error"]["message"].startswith("This API key's budget")
    heard = [turn.assistant_text async for turn in Turn.objects.filter(session_id=conversation.id)]
    assert heard == [TEXT], "the second was not spoken"


@pytest.mark.parametrize("mode", [COMMIT, TASK])
async def test_a_client_who_says_nothing_is_let_go(
    alice: Member, voice: Espeak, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setitem(read_aloud.IDLE_S, mode, 0.05)
    conversation = reading(alice, Reading(voice, mode=mode))

    async with asyncio.timeout(20):
        await conversation.run()

    assert (await conversation.row()).close_code == 1000
    assert conversation.line.sent[-1].to_wire()["error"]["code"] == "RequestTimeOut"


async def test_a_response_that_is_cancelled_after_the_end_was_asked_for_ends_the_session(
    alice: Member, voice: Espeak
) -> None:
    conversation = reading(alice, Reading(voice, mode=COMMIT))
    said_by(conversation, TextAppend(text="Nine lives has the cat. " * 400), TextCommit(), ev.SessionFinish())
    running = asyncio.create_task(conversation.run())
    async with asyncio.timeout(20):
        while "response.audio.delta" not in conversation.said():
            conversation.line.spoke.clear()
            await conversation.line.spoke.wait()
        said_by(conversation, ev.ResponseCancel())
        await running
    done = [event.to_wire()["response"]["status"] for event in conversation.line.sent if event.type == "response.done"]
    assert (done, conversation.said()[-1]) == (["cancelled"], "session.finished")


async def test_text_that_waits_is_bounded(alice: Member, voice: Espeak) -> None:
    conversation = reading(alice, Reading(voice))
    said_by(conversation, *(TextAppend(text="word " * 4000, event_id=str(n)) for n in range(50)), ev.SessionFinish())
    running = asyncio.create_task(conversation.run())
    try:
        async with asyncio.timeout(20):
            while "error" not in conversation.said():
                conversation.line.spoke.clear()
                await conversation.line.spoke.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    refused = [event.to_wire()["error"] for event in conversation.line.sent if isinstance(event, ev.ErrorEvent)]
    assert {error["code"] for error in refused} == {"input_text_buffer_full"}
    assert refused[0]["event_id"] == "10"
