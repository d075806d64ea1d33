"""What operators run when something is wrong, asked for, or over: doctor, sbom and purge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.db.models import Model

from tests.browser.turn_server import SECRET, relaying
from tests.conftest import Member
from tests.ports import free_port
from tests.prepared import environment_of, prepare
from tests.serving import ROOT, Process
from voiceapp.accounts.models import ApiKey, UsageRecord
from voiceapp.engines.models.weights import MODELS
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.server.management.commands.sbom import PINNED, bill
from voiceapp.tasks.models import Task, TaskFile, Upload
from voiceapp.tasks.storage.files import storage
from voiceapp.webhooks import store
from voiceapp.webhooks.events import Event, EventKind, publish
from voiceapp.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent


def examine(folder: Path, **variables: str) -> tuple[int, str, str]:
    """Exit status, log and bundle of the doctor's visit to an installation."""
    prepare(folder)
    environment = environment_of(folder) | {"PORT": str(free_port()), "DEFAULT_VOICE": "en-us"} | variables
    doctor = Process("doctor", "--bundle", str(folder / "bundle.json"), environment=environment)
    return doctor.wait(), doctor.log, (folder / "bundle.json").read_text()


def test_it_finds_an_installation_well(tmp_path: Path) -> None:
    with relaying(tmp_path) as relay:
        status, log, bundle = examine(tmp_path / "var", TURN_URLS=relay.url, TURN_SECRET=SECRET)
    assert status == 0, log
    assert "ok      readiness: weights, database and disks let conversations begin." in log
    assert f"ok      TURN_URLS: {relay.url} answers." in log
    assert "error" not in log
    assert json.loads(bundle)["settings"]["MAX_SESSIONS"] >= 16


def test_it_says_what_is_wrong_and_tells_no_secret(tmp_path: Path) -> None:
    closed = free_port()
    status, log, bundle = examine(
        tmp_path,
        MODELS_DIR=str(tmp_path / "none"),
        SECRET_KEY="sesame-1",
        REDIS_URL=f"redis://me:sesame-2@127.0.0.1:{closed}/0",
        CHAT_BASE_URL=f"http://127.0.0.1:{closed}/v1?key=sesame-3",
        EMBEDDING_BASE_URL=f"http://me:sesame-4@127.0.0.1:{closed}/v1",
        CHAT_API_KEY="sesame-5",
        TURN_URLS=f"turn:127.0.0.1:{closed}?transport=tcp",
        TURN_SECRET="sesame-6",
        SENTRY_DSN=f"http://sesame-7@127.0.0.1:{closed}/1",
        DRAIN_S="90",
        DYNO="web.1",
    )
    assert status == 1
    for wrong in ("models_missing", "model_unavailable", "Redis", "TURN_URLS"):
        assert f"error   {wrong}: " in log
    assert "warning server.W013: DRAIN_S is 90" in log
    shown = json.loads(bundle)["settings"]
    assert {shown["CHAT_BASE_URL"], shown["EMBEDDING_BASE_URL"]} == {f"http://127.0.0.1:{closed}"}
    assert "sesame" not in log + bundle
    assert (tmp_path / "bundle.json").stat().st_mode & 0o077 == 0


def test_the_bill_of_materials_is_valid_and_names_every_package_and_model() -> None:
    made = bill(ROOT)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(made)) is None
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(made | {"components": [{}]})) is not None
    packages = {each["purl"] for each in made["components"] if each["type"] == "library"}
    for lock in set(ROOT.glob("requirements*.txt")) - {ROOT / "requirements-models.txt"}:
        pinned = PINNED.findall(lock.read_text())
        assert pinned
        assert {f"pkg:pypi/{name}@{version}" for name, version in pinned} <= packages
    models = {each["name"]: each["hashes"] for each in made["components"] if each["type"] == "machine-learning-model"}
    assert models == {
        file.name: [{"alg": "SHA-256", "content": file.sha256}]
        for model in MODELS
        for file in (*model.files, *model.sources)
        if file.sha256
    }


def leave_something(member: Member) -> None:
    """A row and a file of every kind that an account leaves."""
    own = {"account": member.account, "workspace": member.workspace}
    session = RealtimeSession.objects.create(**own, model="voice", transport="websocket")
    Turn.objects.create(session=session, ordinal=1, status="completed", user_text="my secret")
    task = Task.objects.create(**own, kind="x", model_name="m")
    name = storage().save(f"tasks/{task.task_id}/result.json", ContentFile(b"{}"))
    TaskFile.objects.create(task=task, name=name, content_type="application/json", size=2)
    name = storage().save(f"uploads/{member.user}.wav", ContentFile(b"RIFF"))
    future = "2100-01-01T00:00Z"
    Upload.objects.create(account=member.account, key=name, name=name, content_type="a/b", size=4, expires_at=future)
    store.create(member.workspace.pk, url="http://127.0.0.1:9/", events=[EventKind.TASK_FINISHED])
    publish(member.workspace.pk, [Event(EventKind.TASK_FINISHED, task.task_id)])
    units = {"unit": "characters", "quantity": 1, "unit_price_nano": 0, "cost_nano": 0}
    UsageRecord.objects.create(**own, caller="x", operation="o", family="tts", model="m", request_id=name, **units)


@pytest.mark.django_db(transaction=True)
def test_what_an_account_has_left_is_deleted_and_nothing_of_another(alice: Member, charlie: Member) -> None:
    for member in (alice, charlie):
        leave_something(member)
    kept = list(TaskFile.objects.values_list("name", flat=True)) + list(Upload.objects.values_list("name", flat=True))
    with pytest.raises(CommandError, match="Acme is active"):
        call_command("purge", account="Acme")
    with pytest.raises(CommandError, match="no account 'Nobody'"):
        call_command("purge", account="Nobody")
    assert Task.objects.count() == 2
    type(alice.account).objects.filter(pk=alice.account.pk).update(is_active=False)
    call_command("purge", account="Acme")
    gone: list[type[Model]] = [RealtimeSession, Turn, Task, TaskFile, Upload, WebhookEndpoint, WebhookEvent, Delivery]
    assert [model._default_manager.count() for model in gone] == [1] * 8
    assert RealtimeSession.objects.get().account == charlie.account
    assert sorted(storage().exists(name) for name in kept) == [False, False, True, True]
    assert (UsageRecord.objects.count(), ApiKey.objects.count()) == (2, 2)
