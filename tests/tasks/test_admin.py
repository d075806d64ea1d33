"""Tasks in the operators' site."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.conftest import Member
from voiceapp.tasks.models import Status, Subtask, Task

LIST = "admin:tasks_task_changelist"


@pytest.fixture
def site(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


def write(member: Member, **fields: object) -> Task:
    task = Task.objects.create(
        account=member.account,
        workspace=member.workspace,
        key=member.row,
        kind="audio/tts/synthesis",
        model_name="tts-1",
        request_id="r",
        order={"format": "wav"},
        **fields,
    )
    Subtask.objects.create(task=task, index=0, order={"text": "Hello."})
    return task


def act(site: Client, action: str, *tasks: Task) -> str:
    answer = site.post(reverse(LIST), {"action": action, "_selected_action": [task.pk for task in tasks]}, follow=True)
    return str(answer.content.decode())


def test_they_are_listed_and_shown(site: Client, alice: Member) -> None:
    task = write(alice, status=Status.FAILED, ended_at=timezone.now(), code="ResponseTimeout", message="Too long.")
    assert "ResponseTimeout" in site.get(reverse(LIST)).content.decode()
    shown = site.get(reverse("admin:tasks_task_change", args=(task.pk,))).content.decode()
    assert "Too long." in shown
    assert "Hello." in shown
    assert site.get(reverse(LIST), {"status__exact": "PENDING"}).content.decode().count(task.task_id) == 0


def test_only_one_that_waits_is_canceled(site: Client, alice: Member) -> None:
    waiting, running = write(alice), write(alice, status=Status.RUNNING)
    assert "Canceled 1 of 2" in act(site, "cancel_waiting", waiting, running)
    waiting.refresh_from_db()
    running.refresh_from_db()
    assert (waiting.status, running.status) == (Status.CANCELED, Status.RUNNING)


def test_one_that_is_over_is_done_again_as_a_new_task(site: Client, alice: Member) -> None:
    over, waiting = write(alice, status=Status.FAILED, ended_at=timezone.now()), write(alice)
    assert "1 new tasks" in act(site, "do_again", over, waiting)
    new = Task.objects.exclude(pk__in=(over.pk, waiting.pk)).get()
    assert (new.status, new.order, new.attempts) == (Status.PENDING, over.order, 0)
    assert new.subtasks.get().order == {"text": "Hello."}
    assert new.task_id != over.task_id
