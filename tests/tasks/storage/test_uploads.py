"""Files that are sent to be the input of tasks: by one form, or as client libraries send them, and who may use them."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import AsyncClient
from django.utils import timezone

from tests.tasks.conftest import Program
from tests.tasks.test_kinds import spoken
from voiceapp.accounts.keys import new_key
from voiceapp.errors import NotFound
from voiceapp.leases.loop import Loop
from voiceapp.tasks.models import Task, Upload
from voiceapp.tasks.retention import purge_tasks
from voiceapp.tasks.storage import files

HELLO = {"model": "tts-1", "input": {"text": "Hello there."}}
EMBEDDING = "embeddings/text-embedding/text-embedding"
NONE = "oss://uploads/x/y.txt"
DIRECT = "/api/v1/uploads/direct"


def a_file(content: bytes = b"one\ntwo\n", name: str = "texts.txt") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


async def sent(authorization: str, file: SimpleUploadedFile) -> HttpResponse:
    return await AsyncClient().post("/api/v1/uploads", {"file": file}, headers={"Authorization": authorization})


async def address_of(program: Program, file: SimpleUploadedFile) -> str:
    answer = await sent(program.member.authorization, file)
    assert answer.status_code == 200, answer.content
    return str(answer.json()["output"]["url"])


async def policy_of(program: Program) -> dict[str, Any]:
    answer = await program.get("/api/v1/uploads", action="getPolicy", model="wanx-v1")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()["data"]
    return found


async def sent_by(
    granted: dict[str, Any], *, key: str | None = None, content: bytes = b"one\ntwo\n", **changed: str
) -> HttpResponse:
    """What a library sends without a key, and what came back."""
    form = {
        "OSSAccessKeyId": granted["oss_access_key_id"],
        "policy": granted["policy"],
        "Signature": granted["signature"],
        "key": f"{granted['upload_dir']}/texts.txt" if key is None else key,
        "success_action_status": "200",
    }
    client = AsyncClient(raise_request_exception=False)
    return await client.post(DIRECT, form | changed | {"file": a_file(content)})


def embedding(address: str) -> dict[str, Any]:
    return {"model": "text-embedding-v4", "input": {"url": address}, "parameters": {"dimension": 64}}


def stored(settings: Any) -> list[Path]:
    root = Path(settings.STORAGES["tasks"]["OPTIONS"]["location"])
    return [path for path in (root / "uploads").rglob("*") if path.is_file()]


async def test_an_upload_says_where_it_is_and_how_long(program: Program) -> None:
    answer = await sent(program.member.authorization, a_file(b"one\n", "Meine Texte.txt"))
    output = answer.json()["output"]
    assert output["url"].startswith("oss://uploads/")
    assert output["url"].endswith("/Meine Texte.txt") or output["url"].endswith("/Meine_Texte.txt")
    assert (output["size"], output["content_type"]) == (4, "text/plain")
    row = await Upload.objects.aget()
    assert timedelta(hours=47.9) < row.expires_at - timezone.now() < timedelta(hours=48)


async def test_a_task_works_on_it(program: Program, worker: Loop) -> None:
    address = await address_of(program, a_file())
    task = await program.follow(await program.create(EMBEDDING, embedding(address)))
    lines = (await program.fetch(task["output"]["url"])).splitlines()
    assert [len(json.loads(line)["embedding"]) for line in lines] == [64, 64]


async def test_several_of_the_same_name_are_transcribed_each(program: Program, worker: Loop) -> None:
    texts = ("What can you do?", "What can you do when there is very much to say and nobody else is there?")
    addresses = [await address_of(program, a_file(await spoken(text), "said.wav")) for text in texts]
    body = {"model": "paraformer-v2", "input": {"file_urls": addresses}}
    output = (await program.follow(await program.create("audio/asr/transcription", body)))["output"]
    assert output["task_metrics"]["SUCCEEDED"] == 2
    first, second = [
        json.loads(await program.fetch(result["transcription_url"]))["properties"]["original_duration_in_milliseconds"]
        for result in output["results"]
    ]
    assert second > 2 * first > 0


async def test_nobody_else_can_use_it(program: Program, stranger: Program) -> None:
    address = await address_of(program, a_file())
    refused, never = [
        await stranger.post(f"/api/v1/services/{EMBEDDING}", embedding(named), **{"X-DashScope-Async": "enable"})
        for named in (address, NONE)
    ]
    assert refused.status_code == never.status_code == 400
    assert "There is no upload oss://" in refused.json()["message"]
    assert refused.json()["message"].replace(address, NONE) == never.json()["message"]


async def test_a_text_may_begin_like_an_address(program: Program, worker: Loop) -> None:
    body = {"model": "tts-1", "input": {"text": "oss:// is how uploads are named."}}
    task = await program.follow(await program.create("audio/tts/synthesis", body))
    assert task["output"]["task_status"] == "SUCCEEDED"


async def test_a_task_opens_only_what_its_account_has(program: Program, stranger: Program) -> None:
    address = await address_of(program, a_file())
    tasks = [
        await Task.objects.aget(task_id=await one.create("audio/tts/synthesis", HELLO)) for one in (program, stranger)
    ]
    assert (await asyncio.to_thread(files.require, tasks[0], address)).startswith("uploads/")
    for name in (address, address.removeprefix("oss://"), "oss://"):
        with pytest.raises(NotFound):
            await asyncio.to_thread(files.require, tasks[1], name)


async def test_after_its_time_it_is_gone_with_its_file(program: Program, settings: Any) -> None:
    address = await address_of(program, a_file())
    assert len(stored(settings)) == 1
    await asyncio.to_thread(purge_tasks, timezone.now() + timedelta(hours=47.9))
    assert len(stored(settings)) == 1
    await Upload.objects.aupdate(expires_at=timezone.now())
    answer = await program.post(f"/api/v1/services/{EMBEDDING}", embedding(address), **{"X-DashScope-Async": "enable"})
    assert answer.status_code == 400
    await asyncio.to_thread(purge_tasks, timezone.now())
    assert stored(settings) == []
    assert not await Upload.objects.aexists()


async def test_what_is_no_file_or_has_no_key_is_refused(program: Program) -> None:
    assert (await sent("Bearer sk-none", a_file())).status_code == 401
    assert (await sent(program.member.authorization, a_file(b""))).status_code == 400
    nothing = await AsyncClient().post(
        "/api/v1/uploads", {"file": "text"}, headers={"Authorization": program.member.authorization}
    )
    assert nothing.status_code == 400
    row, key = new_key(program.member.workspace, "no tasks", scopes=["inference"])
    await row.asave()
    assert (await sent(f"Bearer {key}", a_file())).status_code == 403


async def test_a_library_sends_files_by_a_policy(program: Program, worker: Loop) -> None:
    policy = await policy_of(program)
    assert policy["upload_host"] == f"http://testserver{DIRECT}"
    assert (await sent_by(policy)).status_code == 200
    second = await sent_by(policy, key=f"{policy['upload_dir']}/ältere texte.txt")  # one policy, several files
    assert second.json()["output"]["filename"] == "ältere texte.txt"
    address = f"oss://{policy['upload_dir']}/ältere texte.txt"
    task = await program.follow(await program.create(EMBEDDING, embedding(address)))
    assert task["output"]["task_status"] == "SUCCEEDED"


async def test_a_policy_is_good_for_its_folder_only(program: Program, stranger: Program, settings: Any) -> None:
    policy = await policy_of(program)
    other = await policy_of(stranger)
    folder = policy["upload_dir"]
    for key in (f"{other['upload_dir']}/a", "a", f"{folder}/", f"{folder}/../a", f"{folder}/a/b", f"{folder}/\n"):
        assert (await sent_by(policy, key=key)).status_code == 400, key
    assert stored(settings) == []


async def test_a_name_stands_for_one_file_however_often_it_is_sent(program: Program, settings: Any) -> None:
    policy = await policy_of(program)
    first, again = await sent_by(policy), await sent_by(policy)
    assert first.json()["output"] == again.json()["output"]
    for content in (b"one\nTWO\n", b"one\n"):
        other = await sent_by(policy, content=content)
        assert other.status_code == 400
        assert "sent before" in other.json()["message"]
    assert [path.read_bytes() for path in stored(settings)] == [b"one\ntwo\n"]


async def test_a_policy_cannot_be_forged_or_used_late(program: Program, stranger: Program) -> None:
    policy, other = await policy_of(program), await policy_of(stranger)
    for changed in (
        {"policy": other["policy"]},
        {"Signature": other["signature"]},
        {"Signature": ""},
        {"policy": ""},
        {"policy": f"{policy['policy']}x"},
    ):
        answer = await sent_by(policy, **changed)
        assert (answer.status_code, answer.json()["code"]) == (401, "InvalidApiKey"), changed


async def test_a_policy_ends(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = await policy_of(program)
    now = timezone.now().timestamp()
    monkeypatch.setattr("django.core.signing.time.time", lambda: now + 601)
    assert (await sent_by(policy)).status_code == 401
