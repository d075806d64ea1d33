"""The outbox: what is committed is told, what is rolled back is not."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.realtime.test_bridge import turn
from tests.webhooks.conftest import OF_A_CONVERSATION, PATIENCE_S
from voiceapp.accounts.auth import caller_from_bearer
from voiceapp.formats import identifier
from voiceapp.leases.wake import on_wake
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.realtime.records import queue as record_queue
from voiceapp.realtime.records import webhook_events
from voiceapp.realtime.records.recorder import Beginning, Recorder
from voiceapp.realtime.retention import purge_transcripts
from voiceapp.webhooks import backlog, store
from voiceapp.webhooks.events import QUEUE_NAME, Event, EventKind, publish
from voiceapp.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent

ONE = [Event(EventKind.TASK_FINISHED, "task-1")]


def endpoint_of(member: Member, *kinds: EventKind) -> WebhookEndpoint:
    made, _ = store.create(member.workspace.pk, url="http://127.0.0.1:9/", events=list(kinds) or list(EventKind))
    return made


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_is_told_to_nobody(alice: Member) -> None:
    endpoint_of(alice)
    woken: list[str] = []
    forget = on_wake(woken.append)
    with suppress(RuntimeError), transaction.atomic():
        publish(alice.workspace.pk, ONE)
        raise RuntimeError
    assert not WebhookEvent.objects.exists()
    assert woken == []
    with transaction.atomic():
        publish(alice.workspace.pk, ONE)
        assert woken == []
    assert WebhookEvent.objects.count() == Delivery.objects.count() == 1
    assert woken == [QUEUE_NAME]
    forget()


def test_who_is_not_called_is_not_written_to(alice: Member, charlie: Member) -> None:
    endpoint_of(charlie)
    endpoint_of(alice, EventKind.SESSION_CREATED)
    store.disable(endpoint_of(alice))
    store.delete(endpoint_of(alice))
    publish(alice.workspace.pk, ONE)
    assert not WebhookEvent.objects.exists()
    endpoint_of(alice, EventKind.TASK_FINISHED)
    endpoint_of(alice, EventKind.TASK_FINISHED)
    publish(alice.workspace.pk, ONE)
    assert (WebhookEvent.objects.count(), Delivery.objects.count()) == (1, 2)


def test_it_costs_one_look_up_when_nobody_listens_and_few_statements_when_many_do(alice: Member) -> None:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        publish(alice.workspace.pk, ONE * 50)
    assert len(asked) == 1
    for _ in range(5):
        endpoint_of(alice)
    with CaptureQueriesContext(connection) as asked:
        publish(alice.workspace.pk, ONE * 50)
    assert len([query for query in asked if query["sql"].startswith(("SELECT", "INSERT"))]) <= 6
    assert Delivery.objects.count() == 250


def test_what_is_told_together_has_identifiers_in_its_order(alice: Member) -> None:
    endpoint_of(alice)
    publish(alice.workspace.pk, [Event(kind, "sess_1") for kind in EventKind])
    events = WebhookEvent.objects.order_by("created_at", "public_id")
    assert [event.kind for event in events] == list(EventKind)


@pytest.mark.parametrize("every_s", [0.0, 3600.0], ids=["counted", "remembered"])
def test_what_waits_for_an_endpoint_is_bounded_and_the_rest_can_be_sent_again(
    alice: Member, charlie: Member, settings: Settings, monkeypatch: pytest.MonkeyPatch, every_s: float
) -> None:
    monkeypatch.setattr(backlog, "COUNT_EVERY_S", every_s)
    settings.WEBHOOK_MAX_WAITING = 3
    endpoint, other = endpoint_of(alice), endpoint_of(charlie)
    publish(alice.workspace.pk, ONE * 2)
    publish(alice.workspace.pk, ONE * 3)
    publish(charlie.workspace.pk, ONE * 3)
    first, *_ = Delivery.objects.filter(endpoint=endpoint, status="PENDING")
    refused, _ = Delivery.objects.filter(endpoint=endpoint, status="CANCELED", finish_at__isnull=False)
    assert refused.failure_reason == "Too many events were waiting for this endpoint already."
    assert Delivery.objects.filter(endpoint=other, status="PENDING").count() == 3

    Delivery.objects.filter(pk=first.pk).update(status="SUCCEEDED", finish_at=timezone.now())
    settings.WEBHOOK_MAX_WAITING = 4
    backlog.backlog.forget()
    for expected in ("PENDING", "PENDING", "CANCELED"):  # one is over, and one more may wait
        publish(alice.workspace.pk, ONE)
        assert Delivery.objects.filter(endpoint=endpoint).latest("pk").status == expected
    assert store.replay(endpoint, refused.event.public_id).status == "PENDING"


async def recorder_of(member: Member, session_id: str = "sess_1") -> Recorder:
    caller = await caller_from_bearer(member.authorization)
    return Recorder(Beginning(caller, "voice", "websocket", "127.0.0.1", "program", session_id=session_id))


async def kinds_told() -> list[str]:
    return [event.kind async for event in WebhookEvent.objects.order_by("pk")]


async def until_told(kinds: list[str]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await kinds_told() == kinds:
                return
            await asyncio.sleep(0.01)


@pytest.mark.django_db(transaction=True)
async def test_a_conversation_is_told_with_its_rows_and_each_turn_once(alice: Member) -> None:
    await asyncio.to_thread(endpoint_of, alice)
    session_id = identifier("sess")
    recorder = await recorder_of(alice, session_id)
    recorder.note(ev.SessionUpdated(session={}))
    recorder.note(ev.SessionFinished())
    recorder.note(ev.ResponseCreated(response={}))
    recorder.add(turn(1))
    recorder.add(turn(1, status="cancelled"))
    await recorder.finish(1000, "")

    told = [json.loads(event.body)["data"] async for event in WebhookEvent.objects.order_by("pk")]
    assert [data["type"] for data in told] == OF_A_CONVERSATION
    assert {data["id"] for data in told} == {session_id}
    assert [data["type"] for data in told if "session_thread_id" in data] == [
        data["type"] for data in told if "thread" in data["type"]
    ]


@pytest.mark.django_db(transaction=True)
async def test_settings_that_change_over_and_over_are_told_once_and_in_their_place(alice: Member) -> None:
    await asyncio.to_thread(endpoint_of, alice)
    recorder = await recorder_of(alice)
    for _ in range(50):
        recorder.note(ev.SessionUpdated(session={}))
    recorder.note(ev.ResponseCreated(response={}))
    recorder.note(ev.SessionUpdated(session={}))
    recorder.add(turn(1))
    recorder.note(ev.SessionUpdated(session={}))
    woken: list[str] = []
    forget = on_wake(woken.append)
    await recorder.finish(1000, "")
    forget()

    assert await kinds_told() == [
        *webhook_events.BEGUN,
        *("session.updated", "session.status_run_started", "session.thread_run_started", "session.updated"),
        *webhook_events.ANSWERED,
        "session.updated",
        *webhook_events.ENDED,
    ]
    assert len(woken) == 5  # once for each transaction


@pytest.mark.django_db(transaction=True)
async def test_changed_settings_wait_for_the_next_happening_or_for_their_time(
    alice: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(endpoint_of, alice, EventKind.SESSION_UPDATED, EventKind.SESSION_RUN_STARTED)
    monkeypatch.setattr(record_queue, "UPDATES_APART_S", 3600.0)
    recorder = await recorder_of(alice)
    writing = asyncio.create_task(recorder.run())
    updated, run_started = "session.updated", "session.status_run_started"

    recorder.note(ev.SessionUpdated(session={}))
    await until_told([updated])
    for _ in range(20):
        recorder.note(ev.SessionUpdated(session={}))
        await asyncio.sleep(0.01)
    assert await kinds_told() == [updated]
    recorder.note(ev.ResponseCreated(response={}))
    await until_told([updated, updated, run_started])
    monkeypatch.setattr(record_queue, "UPDATES_APART_S", 0.05)
    recorder.note(ev.SessionUpdated(session={}))
    await until_told([updated, updated, run_started, updated])
    writing.cancel()


async def test_a_conversation_is_archived_when_its_last_words_are_deleted(alice: Member, db: None) -> None:
    def old_words() -> None:
        endpoint_of(alice, EventKind.SESSION_ARCHIVED)
        for session_id, days in (("sess_old", 40), ("sess_new", 1)):
            row = RealtimeSession.objects.create(
                id=session_id, account=alice.account, workspace=alice.workspace, model="voice", transport="websocket"
            )
            for ordinal in (1, 2):
                Turn.objects.create(
                    session=row,
                    ordinal=ordinal,
                    status="completed",
                    user_text="Hello",
                    started_at=timezone.now() - timedelta(days=days),
                )
        purge_transcripts(timezone.now())
        purge_transcripts(timezone.now())

    await asyncio.to_thread(old_words)
    event = await WebhookEvent.objects.aget()
    assert json.loads(event.body)["data"].items() >= {"id": "sess_old", "type": "session.archived"}.items()
