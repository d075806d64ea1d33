"""How much room an account's files may take, and how exactly that is counted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.core.files.storage import FileSystemStorage
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.conftest import Member
from tests.log import logged
from tests.tasks.conftest import PlainKind, Program, accept, only_kind, working, write
from tests.tasks.storage.test_uploads import a_file, address_of, sent
from tests.web import everywhere, listening
from voiceapp.disk import disks, free_bytes_of
from voiceapp.errors import Throttled
from voiceapp.leases.loop import Loop
from voiceapp.tasks.kinds import PartResult
from voiceapp.tasks.models import StorageUse, Task, TaskFile, Upload
from voiceapp.tasks.retention import purge_tasks
from voiceapp.tasks.states import Status
from voiceapp.tasks.storage import files, storage_use
from voiceapp.tasks.storage.inputs import fetched
from voiceapp.tasks.work.context import TaskContext
from voiceapp.tasks.work.jobs import NO_ROOM

SPEECH = "audio/tts/synthesis"
QUEUE = "voiceapp.tasks.work.queue"


class Writing(PlainKind):
    """A `Kind` that makes a file of a certain size, piece by piece, and notes how large it became."""

    path = "test/writing/writing"
    written: ClassVar[list[int]] = []

    async def run(self, part: TaskContext) -> PartResult:
        path = part.folder / "made.bin"
        with path.open("wb") as sink:
            for _ in range(part.order["pieces"]):
                sink.write(b"x" * 1000)
                self.written.append(sink.tell())
                part.require_room(sink.tell())
        return PartResult({"url": await part.keep(path, "application/octet-stream")})


@pytest.fixture
def _writing(settings: Any) -> Iterator[None]:
    settings.TASK_LEASE_S = 1.0
    Writing.written.clear()
    with only_kind(settings, Writing):
        yield


def used(member: Member) -> StorageUse:
    return StorageUse.objects.get(account=member.account)


@pytest.mark.usefixtures("_writing")
async def test_results_of_an_account_end_where_its_quota_does(
    alice: Member, program: Program, worker: Loop, settings: Any
) -> None:
    settings.RESULT_QUOTA_BYTES = 10_000
    first = await sync_to_async(accept)(alice, Writing, pieces=6)
    assert (await program.follow(first.task_id))["output"]["task_status"] == "SUCCEEDED"
    second = await sync_to_async(accept)(alice, Writing, pieces=400)
    failed = (await program.follow(second.task_id))["output"]
    assert (failed["task_status"], failed["code"]) == ("FAILED", "Throttling.AllocationQuota")
    assert failed["message"].startswith("This account may keep 9.8 KiB of results of tasks")
    assert max(Writing.written) == 6_000, "it went on when it was known that it could not be kept"
    assert (await sync_to_async(used)(alice)).result_bytes == 6_000


@pytest.mark.usefixtures("_writing")
async def test_a_task_is_refused_when_nothing_more_can_be_kept(
    alice: Member, program: Program, worker: Loop, settings: Any
) -> None:
    settings.RESULT_QUOTA_BYTES = 6_000
    first = await sync_to_async(accept)(alice, Writing, pieces=6)
    await program.follow(first.task_id)
    with pytest.raises(Throttled, match="results of tasks") as refused:
        await sync_to_async(accept)(alice, Writing, pieces=1)
    assert (refused.value.code, refused.value.retry_after_s) == ("Throttling.AllocationQuota", 3600)


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_exactly_as_many_get_in_as_fit(alice: Member, settings: Any, tmp_path: Path) -> None:
    settings.RESULT_QUOTA_BYTES = 7 * 500 + 499
    path = tmp_path / "made.bin"
    path.write_bytes(b"x" * 500)
    tasks = [write(alice, status=Status.SUCCEEDED) for _ in range(20)]
    together = threading.Barrier(len(tasks))

    def keep(task: Task) -> bool:
        together.wait()
        try:
            files.note(task, path, "made.bin", "application/octet-stream")
        except Throttled:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(len(tasks)) as workers:
        kept = list(workers.map(keep, tasks))
    assert kept.count(True) == TaskFile.objects.count() == 7
    assert used(alice).result_bytes == 7 * 500


@pytest.mark.django_db(transaction=True)
def test_a_purge_gives_back_once_however_many_do_it(alice: Member, bob: Member, tmp_path: Path) -> None:
    path = tmp_path / "made.bin"
    path.write_bytes(b"x" * 700)
    old, young = write(alice, status=Status.SUCCEEDED), write(alice, status=Status.SUCCEEDED)
    for task in (old, young):
        files.put(path, files.note(task, path, "made.bin", "application/octet-stream"))
    Task.objects.filter(pk=old.pk).update(ended_at=timezone.now() - timedelta(hours=25))
    together = threading.Barrier(4)

    def purge(_: int) -> None:
        together.wait()
        purge_tasks(timezone.now())
        connection.close()

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(purge, range(4)))
    assert used(alice).result_bytes == 700
    purge_tasks(timezone.now() + timedelta(hours=25))
    assert used(alice).result_bytes == 0


class Grudging(FileSystemStorage):
    """A folder that does not let go of files with this word in their names."""

    stuck = "stuck"

    def delete(self, name: str) -> None:
        if self.stuck in name:
            raise PermissionError(13, "Permission denied")
        super().delete(name)


@pytest.mark.django_db(transaction=True)
def test_a_file_that_cannot_be_deleted_keeps_no_other(
    alice: Member, settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = {"BACKEND": f"{__name__}.Grudging", "OPTIONS": {"location": tmp_path / "tasks"}}
    settings.STORAGES = settings.STORAGES | {"tasks": backend}
    monkeypatch.setattr("voiceapp.tasks.retention.BATCH", 2)
    path = tmp_path / "made.bin"
    path.write_bytes(b"x" * 700)
    for name in ("stuck", "b", "stuck", "d", "e"):
        files.put(path, files.note(write(alice, status=Status.SUCCEEDED), path, name, "application/octet-stream"))
    for name in ("stuck", "b"):
        storage_use.take(alice.account.pk, "upload_bytes", 700)
        row = Upload(account=alice.account, key=name, name=f"uploads/{name}", size=700, expires_at=timezone.now())
        row.save()
        files.put(path, row.name)
    later = timezone.now() + timedelta(hours=49)
    assert purge_tasks(later) == 3
    assert (Task.objects.count(), Upload.objects.count()) == (2, 1)
    assert (used(alice).result_bytes, used(alice).upload_bytes) == (1400, 700)
    (told,) = [record.getMessage() for record in caplog.records if "could not be deleted" in record.getMessage()]
    assert "next purge: 3, the first tasks/" in told
    monkeypatch.setattr(Grudging, "stuck", "none of these")
    assert purge_tasks(later) == 2
    assert [path for path in (tmp_path / "tasks").rglob("*") if path.is_file()] == []
    assert (used(alice).result_bytes, used(alice).upload_bytes) == (0, 0)


async def test_uploads_are_counted_and_given_back(program: Program, settings: Any) -> None:
    settings.UPLOAD_QUOTA_BYTES = 20
    await address_of(program, a_file(b"x" * 15))
    refused = await sent(program.member.authorization, a_file(b"x" * 6))
    assert (refused.status_code, refused.json()["code"]) == (429, "Throttling.AllocationQuota")
    assert refused.json()["message"].startswith("This account may keep 20 bytes of uploads")
    assert refused.headers["Retry-After"] == "3600"
    await address_of(program, a_file(b"x" * 5))
    row = await sync_to_async(used)(program.member)
    assert row.upload_bytes == 20
    await sync_to_async(purge_tasks)(timezone.now() + timedelta(hours=49))
    await row.arefresh_from_db()
    assert row.upload_bytes == 0
    await address_of(program, a_file(b"x" * 20))


@pytest.mark.django_db
def test_what_was_never_counted_is_counted_by_the_housekeeping(alice: Member) -> None:
    TaskFile.objects.create(task=write(alice, status=Status.SUCCEEDED), name="tasks/a/b", content_type="a/b", size=321)
    assert not StorageUse.objects.exists()
    purge_tasks(timezone.now())
    assert used(alice).result_bytes == 321
    StorageUse.objects.update(result_bytes=5, upload_bytes=7)
    purge_tasks(timezone.now())
    assert (used(alice).result_bytes, used(alice).upload_bytes) == (321, 0)


@pytest.mark.django_db
def test_operators_see_how_much_each_account_keeps(desk: Client, alice: Member) -> None:
    StorageUse.objects.create(account=alice.account, result_bytes=512 * 1024**2, upload_bytes=1024)
    page = desk.get(reverse("admin:tasks_storageuse_changelist")).content.decode()
    assert "512 MiB of 5 GiB" in page
    assert "1 KiB of 1 GiB" in page
    assert "10%" in page


@pytest.mark.django_db
def test_a_task_deleted_by_an_operator_gives_its_room_back(desk: Client, alice: Member, tmp_path: Path) -> None:
    path = tmp_path / "made.bin"
    path.write_bytes(b"x" * 700)
    tasks = [write(alice, status=Status.SUCCEEDED) for _ in range(3)]
    for task in tasks:
        files.put(path, files.note(task, path, "made.bin", "application/octet-stream"))
    desk.post(reverse("admin:tasks_task_delete", args=(tasks[0].pk,)), {"post": "yes"})
    assert used(alice).result_bytes == 1400
    chosen = {"action": "delete_selected", "_selected_action": [tasks[1].pk, tasks[2].pk], "post": "yes"}
    desk.post(reverse("admin:tasks_task_changelist"), chosen)
    assert used(alice).result_bytes == 0
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [("DISK_RESERVE_BYTES", 2**62, "disk space"), ("VAR_DIR", f"{__file__}/var", "cannot write")],
)
async def test_nothing_new_begins_without_room_for_it(
    alice: Member, program: Program, settings: Any, request: pytest.FixtureRequest, variable: str, value: Any, why: str
) -> None:
    request.addfinalizer(disks.cache_clear)
    usual = getattr(settings, variable)
    setattr(settings, variable, value)
    disks.cache_clear()
    body = {"model": "tts-1", "input": {"text": "Hello."}}
    for refused in (
        await program.post(f"/api/v1/services/{SPEECH}", body, **{"X-DashScope-Async": "enable"}),
        await sent(program.member.authorization, a_file()),
    ):
        assert refused.status_code == 503
        assert refused.json()["code"] == "ServiceUnavailable"
        assert why in refused.json()["message"]
        assert refused.headers["Retry-After"] == "60"
    assert not await Task.objects.aexists()
    setattr(settings, variable, usual)
    disks.cache_clear()
    assert await program.create(SPEECH, body)


@pytest.mark.usefixtures("_writing")
async def test_accepted_tasks_wait_while_disk_space_is_short_and_then_go_on(
    alice: Member, program: Program, worker: Loop, settings: Any
) -> None:
    settings.DISK_RESERVE_BYTES = 2**62
    async with logged(QUEUE, "Tasks wait meanwhile."):
        worker.wake("tasks")
    task = await sync_to_async(write)(alice, kind=Writing.path)
    await task.subtasks.aupdate(order={"pieces": 1})
    async with logged(QUEUE, "Tasks go on"):
        assert (await program.look(task.task_id))["output"]["task_status"] == "PENDING"
        settings.DISK_RESERVE_BYTES = 0
    assert (await program.follow(task.task_id))["output"]["task_status"] == "SUCCEEDED"


class Filling(PlainKind):
    """A `Kind` that finds the disk full, so often."""

    path = "test/filling/filling"
    max_attempts = 2
    begun: ClassVar[list[int]] = []

    async def run(self, part: TaskContext) -> PartResult:
        self.begun.append(part.order["times"])
        if len(self.begun) <= part.order["times"]:
            await asyncio.to_thread(Path("/dev/full").write_bytes, b"x")
        return PartResult({"begun": len(self.begun)})


@pytest.mark.parametrize(("times", "status"), [(1, "SUCCEEDED"), (99, "FAILED")])
async def test_a_task_that_meets_a_full_disk_is_tried_again(
    alice: Member, program: Program, settings: Any, times: int, status: str
) -> None:
    settings.TASK_LEASE_S = 0.5
    Filling.begun.clear()
    with only_kind(settings, Filling):
        async with working():
            task = await sync_to_async(accept)(alice, Filling, times=times)
            output = (await program.follow(task.task_id))["output"]
    assert output["task_status"] == status
    assert len(Filling.begun) == 2
    if status == "FAILED":
        assert (output["code"], output["message"]) == NO_ROOM


class Fetching(PlainKind):
    """A `Kind` that fetches a file, when half of what is free on the disk has become work's reserve."""

    path = "test/fetching/fetching"
    max_attempts = 1

    async def run(self, part: TaskContext) -> PartResult:
        django_settings.DISK_RESERVE_BYTES = part.order["free_bytes"]
        path = await fetched(part, part.order["url"], max_bytes=part.order["free_bytes"])
        return PartResult({"size": path.stat().st_size})


async def test_a_file_that_is_too_long_for_the_disk_is_not_begun(
    alice: Member, program: Program, settings: Any, tmp_path: Path
) -> None:
    settings.TASK_LEASE_S = 0.5
    settings.FETCH_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.DISK_RESERVE_BYTES = 0  # which the test's end restores
    free_bytes = free_bytes_of(tmp_path)

    async def long(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = free_bytes * 3 // 4
        await response.prepare(request)
        await response.write(b"x")
        assert request.transport is not None
        request.transport.close()
        return response

    with only_kind(settings, Fetching):
        async with listening(everywhere(long)) as url, working():
            task = await sync_to_async(accept)(alice, Fetching, url=url, free_bytes=free_bytes)
            output = (await program.follow(task.task_id))["output"]
    assert (output["task_status"], output["code"], output["message"]) == ("FAILED", *NO_ROOM)


def test_the_defaults_hold_a_task_of_the_longest_speech() -> None:
    assert django_settings.TASK_MAX_AUDIO_S * 48_000 * 2 < django_settings.RESULT_QUOTA_BYTES
