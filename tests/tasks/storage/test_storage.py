"""Where tasks keep their files: a folder, or a bucket by the setting TASK_STORAGE."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from django.test import AsyncClient
from django.utils import timezone

from tests.tasks.conftest import PATIENCE_S, Program
from tests.tasks.storage.bucket_server import KEY_ID, Buckets, buckets
from tests.tasks.storage.test_uploads import a_file, policy_of, sent, sent_by
from voiceapp.errors import NotFound
from voiceapp.leases.loop import Loop
from voiceapp.server.checks import check_settings
from voiceapp.server.housekeeping import try_to_tidy
from voiceapp.tasks.models import StorageUse, Task, Upload
from voiceapp.tasks.retention import purge_tasks
from voiceapp.tasks.states import Status
from voiceapp.tasks.storage import files

SPEECH = "audio/tts/synthesis"
HELLO = {"model": "tts-1", "input": {"text": "Hello there."}}


@pytest.fixture
def bucket(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Buckets]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with buckets() as server:
        settings.STORAGES = settings.STORAGES | {
            "tasks": {
                "BACKEND": "voiceapp.tasks.storage.buckets.Bucket",
                "OPTIONS": {"bucket_name": "voice", "location": "kept", "endpoint_url": server.url},
            }
        }
        yield server


async def test_results_lie_in_the_bucket_behind_links_of_ours(program: Program, worker: Loop, bucket: Buckets) -> None:
    task_id = await program.create(SPEECH, HELLO)
    url = (await program.follow(task_id))["output"]["url"]
    assert url.startswith("http://testserver/api/v1/files/")
    (path,) = bucket.objects
    assert re.fullmatch(rf"/voice/kept/tasks/{task_id}/[0-9a-f]{{8}}/0-speech\.wav", path)
    assert await program.fetch(url) == bucket.objects[path]
    assert bucket.objects[path].startswith(b"RIFF")


async def test_a_file_is_read_as_it_comes(bucket: Buckets) -> None:
    bucket.objects["/voice/kept/tasks/x/long.wav"] = bytes(range(256)) * 50_000
    with await asyncio.to_thread(files.storage().open, "tasks/x/long.wav", "rb") as source:
        assert source.read(3) == b"\x00\x01\x02"
        assert source.read(2) == b"\x03\x04"
    with pytest.raises(FileNotFoundError):
        await asyncio.to_thread(files.storage().open, "tasks/x/gone.wav", "rb")


async def test_a_part_of_a_file_is_asked_of_the_bucket(program: Program, worker: Loop, bucket: Buckets) -> None:
    url = (await program.follow(await program.create(SPEECH, HELLO)))["output"]["url"].partition("testserver")[2]
    (whole,) = bucket.objects.values()
    answer = await AsyncClient().get(url, headers={"Range": "bytes=100-299"})
    assert b"".join([piece async for piece in answer]) == whole[100:300]
    assert bucket.ranges[-1] == "bytes=100-"


async def test_a_slow_bucket_keeps_nobody_else_waiting(program: Program, bucket: Buckets) -> None:
    with bucket.held() as is_put:
        sending = asyncio.create_task(sent(program.member.authorization, a_file()))
        await asyncio.to_thread(is_put.wait, PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            assert (await program.look("nope"))["output"]["task_status"] == "UNKNOWN"
        assert not sending.done()
    assert (await sending).status_code == 200


async def test_what_a_bucket_refuses_can_be_sent_again(program: Program, bucket: Buckets) -> None:
    policy = await policy_of(program)
    bucket.is_broken = True
    assert (await sent_by(policy)).status_code == 500
    bucket.is_broken = False
    assert (await sent_by(policy)).status_code == 200
    await asyncio.to_thread(purge_tasks, timezone.now() + timedelta(minutes=1))
    assert await Upload.objects.acount() == 1
    assert len(bucket.objects) == 1


@pytest.mark.parametrize("is_broken", [False, True])
async def test_nothing_stays_of_an_upload_whose_sender_left(program: Program, bucket: Buckets, is_broken: bool) -> None:
    policy = await policy_of(program)
    with bucket.held() as is_put:
        sending = asyncio.create_task(sent_by(policy))
        await asyncio.to_thread(is_put.wait, PATIENCE_S)
        sending.cancel()
        bucket.is_broken = is_broken
    with pytest.raises(asyncio.CancelledError):
        await sending
    bucket.is_broken = False
    if not is_broken:
        assert bucket.objects == {}
        assert not await Upload.objects.aexists()
        assert (await StorageUse.objects.aget()).upload_bytes == 0
    assert (await sent_by(policy, content=b"another\n")).status_code == 200
    await asyncio.to_thread(purge_tasks, timezone.now() + timedelta(minutes=1))
    assert len(bucket.objects) == await Upload.objects.acount() == 1


async def test_a_file_that_is_gone_is_told_of(bucket: Buckets, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await asyncio.to_thread(files.get, "uploads/x/gone.wav", tmp_path)


async def test_a_file_that_nobody_could_speak_of_any_more_leaves_with_its_task(
    program: Program, worker: Loop, bucket: Buckets
) -> None:
    """As when its worker was killed after it was stored."""
    with bucket.held() as is_put:
        await program.create(SPEECH, HELLO)
        await asyncio.to_thread(is_put.wait, PATIENCE_S)
        assert len(bucket.objects) == 1
        ended = {"status": Status.FAILED, "ended_at": timezone.now() - timedelta(hours=25)}
        await Task.objects.aupdate(**ended, version=F("version") + 1)
        assert await asyncio.to_thread(purge_tasks, timezone.now()) == 1
        assert bucket.objects == {}


async def test_uploads_lie_there_too(program: Program, worker: Loop, bucket: Buckets) -> None:
    for _ in range(2):
        policy = await policy_of(program)
        for _ in range(2):  # the second time, what is there is compared
            assert (await sent_by(policy)).status_code == 200
    assert {content for path, content in bucket.objects.items() if "/uploads/" in path} == {b"one\ntwo\n"}
    assert len(bucket.objects) == 2
    body = {"model": "text-embedding-v4", "input": {"url": f"oss://{policy['upload_dir']}/texts.txt"}}
    done = await program.follow(await program.create("embeddings/text-embedding/text-embedding", body))
    assert done["output"]["task_status"] == "SUCCEEDED"


async def test_a_bucket_that_refuses_is_asked_again_when_the_house_is_next_tidied(
    program: Program, worker: Loop, bucket: Buckets, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await program.follow(await program.create(SPEECH, HELLO))
    settings.TASK_RETENTION_HOURS = -1
    bucket.is_broken = True
    await asyncio.to_thread(try_to_tidy)
    assert "could not be deleted, and stay for the next purge: 1, the first tasks/" in caplog.text
    assert bucket.objects
    bucket.is_broken = False
    await asyncio.to_thread(try_to_tidy)
    assert bucket.objects == {}
    assert not await Task.objects.aexists()


def test_a_bucket_without_what_talks_to_buckets_is_noticed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TASK_STORAGE = "s3://voice"
    assert "server.E017" not in [finding.id for finding in check_settings()]
    monkeypatch.setitem(sys.modules, "storages", None)  # as if it were not installed
    (found,) = [finding for finding in check_settings() if finding.id == "server.E017"]
    assert "requirements-s3.txt" in str(found.hint)


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("s3://voice/kept", "('voice', 'kept', 'http://127.0.0.1:9')"),
        ("voice", "TASK_STORAGE must be s3://bucket or s3://bucket/folder."),
        ("s3://Voice", "TASK_STORAGE must be s3://bucket or s3://bucket/folder."),
    ],
)
def test_the_settings_name_the_bucket(named: str, told: str, tmp_path: Path) -> None:
    program = "from voiceapp.settings import STORAGES; print(tuple(STORAGES['tasks']['OPTIONS'].values()))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"DEBUG": "1", "TASK_STORAGE": named, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "VAR_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=Path(__file__).parents[3],
    )
    assert told in done.stdout + done.stderr
