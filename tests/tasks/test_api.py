"""Creating, following, listing and cancelling tasks, as clients see it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core import signing
from django.core.files.base import ContentFile
from django.db import connection
from django.db.models.functions import Now
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.conftest import Member
from tests.tasks.conftest import Program, write
from voiceapp.leases.loop import Loop
from voiceapp.tasks import store
from voiceapp.tasks.models import Task, TaskFile
from voiceapp.tasks.retention import purge_tasks
from voiceapp.tasks.states import Status
from voiceapp.tasks.storage import files

KIND = "audio/tts/synthesis"
BODY = {"model": "tts-1", "input": {"text": "Hello."}}
UNKNOWN_ID = "0f7ba5d5-0000-4000-8000-000000000000"


async def test_a_task_is_created_run_and_looked_at(
    program: Program, worker: Loop, alice: Member, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    task = await program.follow(await program.create(KIND, BODY))
    output = task["output"]
    assert output["task_status"] == "SUCCEEDED"
    for name in ("submit_time", "scheduled_time", "end_time"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", output[name])
    assert output["submit_time"] <= output["scheduled_time"] <= output["end_time"]
    assert "code" not in output
    assert "progress" not in output
    began, ended = (each.message for each in caplog.records if each.message.startswith(f"task {output['task_id']}: "))
    facts = f"account={alice.account.pk} caller={str(alice.row)!r} kind={KIND} model=tts-1 request_id="
    assert f": began, attempt=1 {facts}" in began
    assert re.search(rf": ended, status=SUCCEEDED seconds=[\d.]+ {re.escape(facts)}[0-9a-f-]{{36}}$", ended)


async def test_a_task_that_waits_tells_only_what_there_is(program: Program) -> None:
    task_id = await program.create(KIND, BODY)
    found = await program.look(task_id)
    assert found.keys() == {"request_id", "output"}
    assert found["output"].keys() == {"task_id", "task_status", "submit_time"}
    row = (await program.get("/api/v1/tasks")).json()["data"][0]
    assert {"start_time", "end_time"}.isdisjoint(row)
    assert row["gmt_create"] == pytest.approx(datetime.now(UTC).timestamp() * 1000, abs=30_000)
    assert row["user_api_unique_key"] == "apikey:v1:audio:tts:synthesis:tts-1"


async def test_all_keys_of_an_account_see_its_tasks(program: Program, bob: Member) -> None:
    task_id = await program.create(KIND, BODY)
    assert (await Program(bob).look(task_id))["output"]["task_status"] == "PENDING"
    assert (await Program(bob).post(f"/api/v1/tasks/{task_id}/cancel")).status_code == 200


async def test_a_task_is_canceled_while_it_waits_and_only_then(program: Program) -> None:
    task_id = await program.create(KIND, BODY)
    # Clients send a body with it, and a slash at the end.
    answer = await program.post(f"/api/v1/tasks/{task_id}/cancel/", {"model": "", "parameters": {}, "input": ""})
    assert answer.json().keys() == {"request_id"}
    found = (await program.look(task_id))["output"]
    assert found["task_status"] == "CANCELED"
    assert "end_time" in found
    again = await program.post(f"/api/v1/tasks/{task_id}/cancel")
    assert again.status_code == 400
    assert again.json()["message"] == "Failed to cancel the task, please confirm if the task is in PENDING status."
    for status in (Status.RUNNING, Status.SUCCEEDED, Status.FAILED):
        other = await sync_to_async(write)(program.member, status=status)
        assert (await program.post(f"/api/v1/tasks/{other.task_id}/cancel")).status_code == 400
        assert (await program.look(other.task_id))["output"]["task_status"] == status


async def test_tasks_are_listed_newest_first_and_in_pages(program: Program, stranger: Program) -> None:
    now = timezone.now()
    made = [await sync_to_async(write)(program.member, submitted_at=now - timedelta(minutes=age)) for age in range(12)]
    await sync_to_async(write)(stranger.member)
    first = (await program.get("/api/v1/tasks/")).json()
    assert [row["task_id"] for row in first["data"]] == [task.task_id for task in made[:10]]
    assert {name: first[name] for name in ("page_no", "page_size", "total_page", "total")} == {
        "page_no": 1,
        "page_size": 10,
        "total_page": 2,
        "total": 12,
    }
    second = (await program.get("/api/v1/tasks", page_no=2)).json()
    assert [row["task_id"] for row in second["data"]] == [task.task_id for task in made[10:]]
    assert (await program.get("/api/v1/tasks", page_no=9)).json()["data"] == []


async def test_a_list_is_narrowed(program: Program) -> None:
    ended = await sync_to_async(write)(program.member, status=Status.FAILED, model_name="other")
    canceled = await sync_to_async(write)(program.member, status=Status.CANCELED)
    waiting = await sync_to_async(write)(program.member)
    old = await sync_to_async(write)(program.member, submitted_at=timezone.now() - timedelta(hours=30))
    key = program.member.row.pk
    for query, wanted in (
        ({}, {ended, canceled, waiting}),
        ({"status": "FAILED"}, {ended}),
        ({"status": "CANCELED"}, {canceled}),
        ({"status": "UNKNOWN"}, set()),
        ({"model_name": "other"}, {ended}),
        ({"task_id": old.task_id}, {old}),
        ({"task_id": UNKNOWN_ID}, set()),
        ({"api_key_id": key}, {ended, canceled, waiting}),
        ({"api_key_id": "", "status": "", "model_name": "", "task_id": ""}, {ended, canceled, waiting}),
        ({"api_key_id": key + 1}, set()),
        ({"api_key_id": "no number"}, set()),
        ({"api_key_id": "9" * 23}, set()),
        ({"api_key_id": "1" * 5000}, set()),
        ({"api_key_id": f"0{key}"}, set()),
        ({"api_key_id": "".join(chr(0x660 + int(digit)) for digit in str(key))}, set()),  # in Arabic digits
        ({"region": "local", "status": "PENDING"}, {waiting}),
        ({"region": "elsewhere"}, set()),
        ({"end_time": f"{timezone.now() - timedelta(hours=20):%Y%m%d%H%M%S}"}, {old}),
        ({"start_time": f"{timezone.now() - timedelta(hours=31):%Y%m%d%H%M%S}"}, {old}),
    ):
        found = (await program.get("/api/v1/tasks", **query)).json()
        assert {row["task_id"] for row in found["data"]} == {task.task_id for task in wanted}, query
        assert found["total"] == len(wanted)


@pytest.mark.parametrize(
    "query",
    [
        {"start_time": "20260101000000", "end_time": "20260102000001"},
        {"start_time": "20260102000000", "end_time": "20260101000000"},
        {"start_time": "2026-01-01"},
        {"start_time": "20261301000000"},
        {"start_time": "99991231235959"},
        {"end_time": "99991231235959"},
        {"end_time": "00010101000000"},
        {"end_time": "２０２６０１０１００００００"},
        {"status": "DONE"},
        {"page_no": 0},
        {"page_no": "one"},
        {"page_size": 0},
        {"page_size": 101},
    ],
)
async def test_what_makes_no_sense_is_refused(program: Program, query: dict[str, object]) -> None:
    answer = await program.get("/api/v1/tasks", **query)
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParameter")


async def test_a_range_of_exactly_a_day_is_fine(program: Program) -> None:
    day = {"start_time": "20260101000000", "end_time": "20260102000000"}
    assert (await program.get("/api/v1/tasks", **day)).status_code == 200


async def test_each_operation_has_calls_of_its_own(
    program: Program, bob: Member, stranger: Program, settings: Any
) -> None:
    usual = {name: rate for name, rate in settings.RATE_LIMITS.items() if name.startswith("tasks.")}
    assert set(usual.values()) == {"20/1"}
    settings.RATE_LIMITS = settings.RATE_LIMITS | dict.fromkeys(usual, "20/3600")  # which this test does not outlast
    task_id = await program.create(KIND, BODY)
    answers = await asyncio.gather(*(program.get(f"/api/v1/tasks/{task_id}") for _ in range(25)))
    assert sorted(answer.status_code for answer in answers) == [200] * 20 + [429] * 5
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.json()["code"] == "Throttling.RateQuota"
    assert (await Program(bob).get(f"/api/v1/tasks/{task_id}")).status_code == 429  # the same account
    assert (await stranger.get(f"/api/v1/tasks/{task_id}")).status_code == 200
    assert (await program.get("/api/v1/tasks")).status_code == 200  # another operation


async def test_an_account_may_have_so_many_tasks_waiting(program: Program, settings: Any) -> None:
    settings.TASK_MAX_WAITING = 1
    await program.create(KIND, BODY)
    refused = await program.post(f"/api/v1/services/{KIND}", BODY, **{"X-DashScope-Async": "enable"})
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")


async def test_a_link_that_was_tampered_with_or_is_old_opens_nothing(
    program: Program, worker: Loop, settings: Any
) -> None:
    task = await program.follow(await program.create(KIND, BODY))
    url = task["output"]["url"].partition("testserver")[2]
    token = url.split("/")[-2]
    assert (await AsyncClient().get(url)).status_code == 200
    wrong = token[:-1] + ("a" if token[-1] != "a" else "b")
    assert (await AsyncClient().get(url.replace(token, wrong))).status_code == 404
    forged = signing.dumps("tasks/x", salt="another")
    assert (await AsyncClient().get(f"/api/v1/files/{forged}/x")).status_code == 404
    settings.TASK_RETENTION_HOURS = -1
    assert (await AsyncClient().get(url)).status_code == 404


async def test_a_link_outlives_the_secret_that_signed_it(program: Program, worker: Loop, settings: Any) -> None:
    url = (await program.follow(await program.create(KIND, BODY)))["output"]["url"]
    before = await program.fetch(url)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "new" * 20
    assert await program.fetch(url) == before


async def test_what_ended_a_day_ago_is_forgotten_with_its_files(program: Program, worker: Loop) -> None:
    task = await program.follow(await program.create(KIND, BODY))
    row = await Task.objects.aget()
    name = (await row.files.aget()).name
    waiting = await sync_to_async(write)(program.member, submitted_at=timezone.now() - timedelta(days=3))
    await Task.objects.filter(pk=waiting.pk).aupdate(due_at=Now() + timedelta(hours=1))
    assert row.ended_at is not None
    day = timedelta(hours=24)
    assert await sync_to_async(purge_tasks)(row.ended_at + day - timedelta(seconds=1)) == 0
    assert files.storage().exists(name)
    assert await sync_to_async(purge_tasks)(row.ended_at + day + timedelta(seconds=1)) == 1
    assert not files.storage().exists(name)
    assert files.storage().listdir("tasks") == ([], [])
    assert (await program.look(task["output"]["task_id"]))["output"]["task_status"] == "UNKNOWN"
    assert (await program.look(waiting.task_id))["output"]["task_status"] == "PENDING"


async def test_what_ended_a_day_ago_is_forgotten_before_it_is_deleted(program: Program, worker: Loop) -> None:
    url = (await program.follow(await program.create(KIND, BODY)))["output"]["url"].partition("testserver")[2]
    row = await Task.objects.aget()
    for age, status in ((timedelta(hours=23, minutes=50), 200), (timedelta(hours=24, minutes=10), 404)):
        await Task.objects.aupdate(ended_at=timezone.now() - age)
        shown = "SUCCEEDED" if status == 200 else "UNKNOWN"
        assert (await program.look(row.task_id))["output"]["task_status"] == shown
        assert (await program.get("/api/v1/tasks")).json()["total"] == (status == 200)
        assert (await program.get("/api/v1/tasks", task_id=row.task_id)).json()["total"] == (status == 200)
        assert (await AsyncClient().get(url)).status_code == status


def test_looking_and_listing_read_an_index_and_not_the_table(alice: Member) -> None:
    now = timezone.now()
    wanted = store.Filter(submitted_from=now - timedelta(hours=24), submitted_to=now)
    with CaptureQueriesContext(connection) as asked:
        store.find(alice.account.pk, UNKNOWN_ID)
        store.listed(alice.account.pk, wanted, page_no=1, page_size=10)
        store.listed(alice.account.pk, replace(wanted, task_id=UNKNOWN_ID), page_no=1, page_size=10)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # a small table is read whole, unless that is forbidden
            cursor.execute("SET LOCAL enable_seqscan = off")
        for query in [str(query["sql"]) for query in asked.captured_queries]:
            cursor.execute(connection.ops.explain_query_prefix() + " " + query)
            plan = str(cursor.fetchall())
            assert "SEARCH tasks_task" in plan or "Index" in plan, plan
            assert "task_ended" not in plan, plan


async def link_of(program: Program) -> str:
    """The address of a speech that was made."""
    task = await program.follow(await program.create(KIND, BODY))
    return str(task["output"]["url"]).partition("testserver")[2]


async def test_a_part_of_a_result_can_be_fetched(program: Program, worker: Loop) -> None:
    url = await link_of(program)
    whole = bytes(range(256)) * 2000  # more than is read at once
    size = len(whole)
    row = await TaskFile.objects.aget()
    files.storage().delete(row.name)
    files.storage().save(row.name, ContentFile(whole))
    await TaskFile.objects.aupdate(size=size)

    async def asked(wanted: str, **headers: str) -> tuple[int, bytes, str | None]:
        answer = await AsyncClient().get(url, headers={"Range": wanted, **headers})
        assert answer["Accept-Ranges"] == "bytes"
        body = b"".join([piece async for piece in answer])
        assert answer["Content-Length"] == str(len(body))
        return answer.status_code, body, answer.headers.get("Content-Range")

    assert await asked("bytes=0-0") == (206, whole[:1], f"bytes 0-0/{size}")
    assert await asked("bytes=10-299999") == (206, whole[10:300_000], f"bytes 10-299999/{size}")
    assert await asked(f"bytes={size - 5}-") == (206, whole[-5:], f"bytes {size - 5}-{size - 1}/{size}")
    assert await asked(f"bytes=5-{size * 9}") == (206, whole[5:], f"bytes 5-{size - 1}/{size}")
    assert await asked("bytes=-7") == (206, whole[-7:], f"bytes {size - 7}-{size - 1}/{size}")
    for other in ("bytes=0-1,5-6", "bytes=5-2", "bytes=-", "lines=1-2", "bytes=" + "9" * 5000 + "-"):
        assert await asked(other) == (200, whole, None), other
    assert await asked("bytes=0-0", **{"If-Range": '"another"'}) == (200, whole, None)
    for outside in (f"bytes={size}-", "bytes=-0"):
        refused = await AsyncClient().get(url, headers={"Range": outside})
        assert (refused.status_code, refused["Content-Range"]) == (416, f"bytes */{size}")
        assert refused.json()["code"] == "InvalidParameter"


async def test_a_result_is_described_without_being_sent(program: Program, worker: Loop) -> None:
    url = await link_of(program)
    whole = await program.fetch(f"testserver{url}")
    answer = await AsyncClient().head(url)
    assert (answer.status_code, answer.content) == (200, b"")
    assert (answer["Content-Length"], answer["Content-Type"]) == (str(len(whole)), "audio/wav")
    assert answer["Accept-Ranges"] == "bytes"


async def test_a_result_whose_file_is_gone_is_not_found(program: Program, worker: Loop) -> None:
    url = await link_of(program)
    files.storage().delete((await (await Task.objects.aget()).files.aget()).name)
    for answer in (await AsyncClient().get(url), await AsyncClient().head(url)):
        assert answer.status_code == 404
