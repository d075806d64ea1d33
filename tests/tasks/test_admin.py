"""Tasks in the operators' site."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from tests.conftest import Member
from tests.log import logged
from tests.tasks.conftest import PATIENCE_S, Program, write
from voiceapp.accounts.models import Hold, UsageRecord
from voiceapp.tasks.models import Subtask, Task
from voiceapp.tasks.states import Status
from voiceapp.tasks.storage import files
from voiceapp.tasks.work.queue import TaskQueue

LIST = "admin:tasks_task_changelist"


def act(desk: Client, action: str, *tasks: Task) -> str:
    answer = desk.post(reverse(LIST), {"action": action, "_selected_action": [task.pk for task in tasks]}, follow=True)
    return str(answer.content.decode())


def test_they_are_listed_and_shown(desk: Client, alice: Member) -> None:
    task = write(alice, status=Status.FAILED, ended_at=timezone.now(), code="ResponseTimeout", message="Too long.")
    assert "ResponseTimeout" in desk.get(reverse(LIST)).content.decode()
    shown = desk.get(reverse("admin:tasks_task_change", args=(task.pk,))).content.decode()
    assert "Too long." in shown
    assert "Hello." in shown
    assert desk.get(reverse(LIST), {"status__exact": "PENDING"}).content.decode().count(task.task_id) == 0


def test_its_page_tells_who_worked_on_it_and_how_often(desk: Client, alice: Member) -> None:
    task = write(alice, attempts=3, leased_by="host-1-ab")
    page = desk.get(reverse("admin:tasks_task_change", args=(task.pk,)))
    shown = {
        field.field["name"]: field.contents()
        for fieldset in page.context["adminform"]
        for line in fieldset
        for field in line
    }
    assert (shown["attempts"], shown["worker"]) == ("3", "host-1-ab")
    assert (shown["task_id"], shown["request_id"]) == (task.task_id, "r")
    assert "format: wav" in shown["asked"]


def test_each_part_shows_what_it_came_to_and_the_task_does_not_repeat_it(desk: Client, alice: Member) -> None:
    results = [{"url": "https://example.org/cat"}, {"code": "InvalidParameter", "message": "No cat."}]
    task = write(alice, status=Status.SUCCEEDED, ended_at=timezone.now(), output={"results": results})
    task.subtasks.update(status=Status.SUCCEEDED, result=results[0])
    Subtask.objects.create(task=task, index=1, status=Status.FAILED, code="InvalidParameter", message="No cat.")
    page = desk.get(reverse("admin:tasks_task_change", args=(task.pk,))).content.decode()
    assert page.count("https://example.org/cat") == 1
    assert "InvalidParameter: No cat." in page


@pytest.mark.django_db(transaction=True)
def test_results_are_links_that_open_and_texts_are_no_markup(desk: Client, alice: Member, tmp_path: Path) -> None:
    source = tmp_path / "speech.wav"
    source.write_bytes(b"RIFF")
    task = write(alice, status=Status.SUCCEEDED, ended_at=timezone.now())
    name = files.note(task, source, "0-speech.wav", "audio/wav")
    files.put(source, name)
    Task.objects.filter(pk=task.pk).update(output={"url": {"file": name}, "orig_prompt": "<b>a cat</b>"})
    task.subtasks.update(result={"url": {"file": name}}, order={"text": "<i>" * 1000})
    page = desk.get(reverse("admin:tasks_task_change", args=(task.pk,))).content.decode()
    links = re.findall(r'href="([^"]*)">0-speech.wav</a>', page)
    assert len(links) == 2
    assert async_to_sync(Program(alice).fetch)(f"testserver{links[0]}") == b"RIFF"
    assert "&lt;b&gt;a cat&lt;/b&gt;" in page
    assert "<i>" not in page
    assert "(3,000 characters)" in page


def listed(desk: Client, **query: object) -> set[str]:
    """Ids of the tasks that a list holds."""
    return {row.task_id for row in desk.get(reverse(LIST), query, follow=True).context["cl"].queryset}


def test_the_list_is_narrowed(desk: Client, alice: Member, bob: Member) -> None:
    old = write(alice, submitted_at=timezone.now() - timedelta(days=40)).task_id
    new = write(bob).task_id
    day = timezone.localtime() - timedelta(days=40)
    assert listed(desk) == {old, new}
    assert listed(desk, submitted_at__year=day.year, submitted_at__month=day.month) == {old}
    assert listed(desk, key__id__exact=alice.row.pk, status__exact="PENDING") == {old}


def test_only_one_that_waits_is_canceled(desk: Client, alice: Member) -> None:
    waiting, running = write(alice), write(alice, status=Status.RUNNING)
    assert "Canceled 1 of 2" in act(desk, "cancel_waiting", waiting, running)
    waiting.refresh_from_db()
    running.refresh_from_db()
    assert (waiting.status, running.status) == (Status.CANCELED, Status.RUNNING)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("worker")
async def test_one_that_runs_is_stopped_and_costs_nothing(
    program: Program, operator: User, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "voiceapp.leases.loop")
    settings.LEDGER_PRICES = {"tts": {"characters": 1000}}
    client = Client()
    await sync_to_async(client.force_login)(operator)
    task_id = await program.create(
        "audio/tts/synthesis", {"model": "tts-1", "input": {"text": "The kettle is boiling over again. " * 3000}}
    )
    async with asyncio.timeout(PATIENCE_S):
        while not (task := await Task.objects.aget(task_id=task_id)).progress:  # noqa: ASYNC110 - it is written down
            await asyncio.sleep(0.1)
    assert (await program.post(f"/api/v1/tasks/{task_id}/cancel")).json()["code"] == "UnsupportedOperation"
    async with logged("voiceapp.leases.loop", "work cancelled"):
        assert "Canceled 0 of 1" in await sync_to_async(act)(client, "cancel_waiting", task)
        assert "Canceled 1 of 1" in await sync_to_async(act)(client, "stop_running", task)
    assert (await program.look(task_id))["output"]["task_status"] == "CANCELED"
    assert [part.status async for part in task.subtasks.all()] == [Status.CANCELED]
    assert "Canceled 0 of 1" in await sync_to_async(act)(client, "stop_running", task)
    brief = await program.create("audio/tts/synthesis", {"model": "tts-1", "input": {"text": "Hello."}})
    assert (await program.follow(brief))["output"]["task_status"] == "SUCCEEDED"
    assert [record.quantity async for record in UsageRecord.objects.all()] == [len("Hello.")]
    assert not await Hold.objects.aexists()


def test_one_that_is_over_is_done_again_as_a_new_task(desk: Client, alice: Member) -> None:
    over, waiting = write(alice, status=Status.FAILED, ended_at=timezone.now()), write(alice)
    assert "Began 1 of 2 anew" in act(desk, "do_again", over, waiting)
    new = Task.objects.exclude(pk__in=(over.pk, waiting.pk)).get()
    assert (new.status, new.order, new.attempts) == (Status.PENDING, over.order, 0)
    assert new.subtasks.get().order == {"text": "Hello."}
    assert new.task_id != over.task_id
    assert new.request_id != over.request_id


def test_one_that_waits_can_be_raised_above_those_before_it(desk: Client, alice: Member) -> None:
    first, second, over = write(alice), write(alice), write(alice, status=Status.FAILED, ended_at=timezone.now())
    assert "Raised 1 of 2" in act(desk, "raise_waiting", second, over)
    assert next_one() == second
    last = write(alice)
    assert "Lowered 1 of 1" in act(desk, "lower_waiting", first)
    assert next_one() == last
    over.refresh_from_db()
    assert over.priority == 0


def test_a_priority_has_an_end_either_way(desk: Client, alice: Member) -> None:
    highest, lowest = write(alice, priority=100), write(alice, priority=-100)
    act(desk, "raise_waiting", highest)
    act(desk, "lower_waiting", lowest)
    assert set(Task.objects.values_list("priority", flat=True)) == {100, -100}


def next_one() -> Task:
    (lease,) = TaskQueue().claim("worker", 2)
    task: Task = Task.objects.get(pk=lease.row_id)
    return task


@pytest.mark.django_db(transaction=True)
async def test_a_key_can_let_its_tasks_go_before_the_others_of_its_account(alice: Member, operator: User) -> None:
    await sync_to_async(write)(alice)
    client = AsyncClient()
    await client.aforce_login(operator)
    page = reverse("admin:accounts_apikey_change", args=(alice.row.pk,))
    form = {"name": "urgent", "scopes": ["tasks", "inference"], "task_priority": "7"}
    answer = await client.post(page, {**form, "expires_at_0": "", "expires_at_1": ""})
    assert answer.status_code == 302
    urgent = await Program(alice).create("audio/tts/synthesis", {"model": "tts-1", "input": {"text": "Now."}})
    first = await sync_to_async(next_one)()
    assert (first.task_id, first.priority) == (urgent, 7)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_alone", [True, False])
async def test_an_open_page_is_told_that_tasks_go_on(alice: Member, operator: User, is_alone: bool) -> None:
    client = AsyncClient()
    await client.aforce_login(operator)
    task = await sync_to_async(write)(alice)
    row = {"row": str(task.pk)} if is_alone else {}
    events = aiter(await client.get(reverse("admin:tasks_task_live"), row))
    async with asyncio.timeout(PATIENCE_S), aclosing(events):
        assert await anext(events) == b": open\n\n"
        await Task.objects.aupdate(status=Status.RUNNING, scheduled_at=timezone.now(), progress=0.4)
        assert await anext(events) == b"data: changed\n\n"
        if not is_alone:
            await sync_to_async(write)(alice)
            assert await anext(events) == b"data: changed\n\n"


@pytest.mark.django_db(transaction=True)
async def test_only_those_who_may_look_are_told(alice: Member) -> None:
    client, address = AsyncClient(), reverse("admin:tasks_task_live")
    assert (await client.get(address)).status_code == 403
    await client.aforce_login(alice.user)
    assert (await client.get(address)).status_code == 403
    alice.user.is_staff = True
    await alice.user.asave()
    assert (await client.get(address)).status_code == 403
    await alice.user.user_permissions.aadd(await Permission.objects.aget(codename="view_task"))
    assert (await client.get(address, {"row": "9" * 23})).status_code == 200
