"""From what happened to the receiver: signed, tried again, given up, and counted."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.webhooks.conftest import PATIENCE_S, Program, Receiver, receiving
from voiceapp.leases.loop import Loop
from voiceapp.server.housekeeping import tidy
from voiceapp.webhooks.events import EventKind, envelope
from voiceapp.webhooks.models import Attempt, Delivery, WebhookEndpoint, WebhookEvent
from voiceapp.webhooks.queue import PER_ENDPOINT, DeliveryQueue, due
from voiceapp.webhooks.states import WAITING, DeliveryStatus

pytestmark = pytest.mark.django_db(transaction=True)


async def test_what_happened_is_told_once_signed_and_written_down(
    program: Program, receiver: Receiver, sender: Loop
) -> None:
    endpoint = await program.subscribe(receiver.url, EventKind.THREAD_IDLED)
    await program.happen(EventKind.THREAD_IDLED, "sess_1", "sthr_1")
    [logged] = await program.until(endpoint, "SUCCEEDED")

    told = receiver.verified(endpoint["signing_secret"])
    assert told == json.loads(receiver.bodies[0])
    assert told["type"] == "event"
    assert told["data"] == {
        "id": "sess_1",
        "type": "session.thread_idled",
        "workspace_id": program.member.workspace.public_id,
        "session_thread_id": "sthr_1",
    }
    call = receiver.calls[0]
    assert call["webhook-id"] == told["id"] == logged["id"]
    assert (call["content-type"], call["user-agent"]) == ("application/json", "Voiceapp-Webhook/1.0")
    assert call["accept-encoding"] == "identity"
    assert (
        logged["delivery"].items()
        >= {
            "webhook_id": endpoint["id"],
            "status": "SUCCEEDED",
            "attempt_count": 1,
            "failure_reason": None,
            "is_replay": False,
        }.items()
    )
    one = await program.good("GET", f"/{endpoint['id']}/events/{logged['id']}")
    [attempt] = one["delivery"]["attempts"]
    assert attempt.items() >= {"status_code": 200, "answer_start": "thanks", "error": ""}.items()
    record = await program.good("GET", f"/{endpoint['id']}")
    assert record["last_success_at"] is not None
    assert (record["last_failure_at"], record["consecutive_fail"]) == (None, 0)
    assert len(receiver.calls) == 1


async def test_it_is_tried_again_with_the_same_body_and_a_fresh_signature(
    program: Program, receiver: Receiver, sender: Loop, patient: None
) -> None:
    receiver.statuses = [503, 429]
    endpoint = await program.subscribe(receiver.url)
    await program.happen()
    [logged] = await program.until(endpoint, "SUCCEEDED")

    assert logged["delivery"]["attempt_count"] == 3
    assert len(set(receiver.bodies)) == 1
    assert {call["webhook-id"] for call in receiver.calls} == {logged["id"]}
    for call in range(3):
        receiver.verified(endpoint["signing_secret"], call)
    one = await program.good("GET", f"/{endpoint['id']}/events/{logged['id']}")
    assert [attempt["status_code"] for attempt in one["delivery"]["attempts"]] == [503, 429, 200]
    assert (await program.good("GET", f"/{endpoint['id']}"))["last_failure_at"] is None


async def test_it_is_given_up_after_the_last_step(
    program: Program, receiver: Receiver, sender: Loop, patient: None
) -> None:
    receiver.statuses = [500] * 10
    endpoint = await program.subscribe(receiver.url)
    await program.happen()
    [logged] = await program.until(endpoint, "FAILED")
    assert (logged["delivery"]["attempt_count"], len(receiver.calls)) == (3, 3)
    assert logged["delivery"]["failure_reason"] == "The receiver responded with status 500."
    record = await program.good("GET", f"/{endpoint['id']}")
    assert (record["status"], record["consecutive_fail"]) == ("ACTIVE", 1)
    assert record["last_failure_at"] is not None


async def test_a_retry_waits_as_the_schedule_says(program: Program, receiver: Receiver, sender: Loop) -> None:
    receiver.statuses = [500]
    endpoint = await program.subscribe(receiver.url)
    began = timezone.now()
    await program.happen()
    [logged] = await program.until(endpoint, "WAITING_RETRY")
    assert logged["delivery"]["next_attempt_at"] is not None
    row = await Delivery.objects.aget()
    first_s, last_s = ((row.due_at - tried).total_seconds() for tried in (timezone.now(), began))
    assert last_s > 7.9  # ten seconds, a fifth shorter or longer by chance
    assert first_s < 12.1
    assert len(receiver.calls) == 1


async def test_what_came_of_a_call_is_written_down_once_the_database_is_back(
    program: Program, receiver: Receiver
) -> None:
    endpoint = await program.subscribe(receiver.url)
    await program.happen()
    line = DeliveryQueue()
    [lease] = await sync_to_async(line.claim)("worker", 1)
    outage = [OperationalError("the connection is closed")]

    async def database(function: Callable[..., object], *args: object) -> object:
        if outage:
            raise outage.pop()
        return await sync_to_async(function)(*args)

    await line.work(lease, database)
    await line.close()
    [logged] = await program.log(endpoint)
    assert (logged["delivery"]["status"], logged["delivery"]["attempt_count"]) == ("SUCCEEDED", 1)
    assert (len(receiver.calls), outage) == (1, [])


async def test_what_is_under_way_when_it_stops_is_ended_and_written_down(program: Program, sender: Loop) -> None:
    all_begun = asyncio.Event()
    may_answer = asyncio.Event()
    calls: list[str] = []

    async def slow(request: web.Request) -> web.Response:
        calls.append(request.path)
        if len(calls) == PER_ENDPOINT:
            all_begun.set()
        await may_answer.wait()
        return web.Response()

    async with receiving(slow) as url:
        endpoint = await program.subscribe(url)
        for _ in range(PER_ENDPOINT + 2):
            await program.happen()
        await all_begun.wait()
        sender.stop()
        may_answer.set()
        logged = await program.until(endpoint, "SUCCEEDED", "PENDING")
    assert Counter(event["delivery"]["status"] for event in logged) == {"SUCCEEDED": PER_ENDPOINT, "PENDING": 2}
    assert len(calls) == PER_ENDPOINT


@pytest.mark.parametrize("end", ["DELETE", "disable"])
async def test_after_the_answer_to_an_end_no_call_begins(program: Program, sender: Loop, end: str) -> None:
    begun: list[float] = []
    first, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        begun.append(time.monotonic())
        first.set()
        await may_answer.wait()
        return web.Response(status=503)

    async with receiving(slow) as url:
        endpoint = await program.subscribe(url)
        for _ in range(20):
            await program.happen()
        await first.wait()
        how = ("DELETE", f"/{endpoint['id']}") if end == "DELETE" else ("POST", f"/{endpoint['id']}/disable")
        ending = asyncio.create_task(program.good(*how))
        waiting = Delivery.objects.filter(status__in=WAITING)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if not await waiting.aexists():
                    break
                await asyncio.sleep(0.02)
        assert not ending.done()
        may_answer.set()
        await ending
        answered = time.monotonic()
        logged = await program.log(endpoint, limit=100)
        assert {event["delivery"]["status"] for event in logged} == {"CANCELED"}
        assert len(logged) == 20
        assert 1 <= len(begun) <= PER_ENDPOINT
        assert max(begun) < answered


async def test_what_a_killed_sender_left_of_an_ended_endpoint_is_canceled(
    program: Program, receiver: Receiver, sender: Loop
) -> None:
    endpoint = await program.subscribe(receiver.url)
    row = await WebhookEndpoint.objects.aget()
    await WebhookEndpoint.objects.aupdate(deleted_at=timezone.now())
    event = await WebhookEvent.objects.acreate(
        workspace=program.member.workspace,
        kind=EventKind.TASK_FINISHED,
        body=envelope("whe_1", "2026-03-04T05:06:07.890Z", "task-1", EventKind.TASK_FINISHED, "ws_1"),
    )
    await Delivery.objects.acreate(event=event, endpoint=row, status=DeliveryStatus.DELIVERING)
    await program.until(endpoint, "CANCELED")
    assert receiver.calls == []


async def test_a_secret_that_cannot_be_read_is_said_and_nothing_is_sent(
    program: Program, receiver: Receiver, sender: Loop, settings: Settings
) -> None:
    endpoint = await program.subscribe(receiver.url)
    settings.SECRET_KEY = "another one that is long enough to be taken for a secret key"
    await program.happen()
    [logged] = await program.until(endpoint, "FAILED")
    assert "reset it" in logged["delivery"]["failure_reason"]
    assert receiver.calls == []
    assert (await WebhookEndpoint.objects.aget()).consecutive_fail == 0


async def test_after_a_change_of_the_servers_key_the_one_before_is_needed_no_longer_than_until_the_next_tidying(
    program: Program, receiver: Receiver, sender: Loop, settings: Settings
) -> None:
    made = await program.subscribe(receiver.url)
    reset = await program.good("POST", f"/{made['id']}/reset_secret", {"keep_old_secret_active_for_24_hours": True})
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another one that is long enough to be taken for a secret key"
    await sync_to_async(tidy)()
    sealed = await WebhookEndpoint.objects.values_list("secret_sealed", flat=True).aget()
    await sync_to_async(tidy)()
    assert await WebhookEndpoint.objects.values_list("secret_sealed", flat=True).aget() == sealed

    settings.SECRET_KEY_FALLBACKS = []
    await program.happen()
    await program.until(made, "SUCCEEDED")
    receiver.verified(made["signing_secret"])
    receiver.verified(reset["signing_secret"])


async def test_what_nobody_foresaw_is_logged_written_down_and_no_fault_of_the_receiver(
    program: Program,
    receiver: Receiver,
    sender: Loop,
    settings: Settings,
    patient: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    endpoint = await program.subscribe(receiver.url)
    settings.WEBHOOK_ALLOWED_NETWORKS = ["no network"]
    await program.happen()
    [logged] = await program.until(endpoint, "FAILED")
    assert logged["delivery"]["attempt_count"] == 3
    assert logged["delivery"]["failure_reason"] == "The server failed with an unexpected error. Its log has the reason."
    assert await Attempt.objects.acount() == 3
    assert "'no network' does not appear to be" in caplog.text
    assert (await program.good("GET", f"/{endpoint['id']}"))["consecutive_fail"] == 0


async def test_finding_what_is_due_reads_an_index_however_much_is_over(program: Program, receiver: Receiver) -> None:
    await program.subscribe(receiver.url)
    endpoint = await WebhookEndpoint.objects.aget()
    await program.happen()

    def plan() -> str:
        if connection.vendor == "postgresql":  # a small table is read whole, unless that is forbidden
            connection.cursor().execute("SET enable_seqscan = off")
        return str(due(endpoint=endpoint.pk).order_by("due_at")[:4].explain())

    assert "delivery_due_of_endpoint" in await sync_to_async(plan)()
