"""Health probes before Django, and readiness that names its reasons."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.models import offered
from tests.web import listening
from voiceapp.accounts import temporary_keys
from voiceapp.accounts.keys import parse
from voiceapp.accounts.models import ApiKey
from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.defaults import SMALL_MODEL
from voiceapp.engines.embedded.multilingual import MODEL_FILE as MULTILINGUAL_MODEL
from voiceapp.engines.models import weights
from voiceapp.engines.models.providers import providers
from voiceapp.health import NotReadyReason, Readiness, process_readiness, readiness, readiness_answer
from voiceapp.server.client_address import is_operator
from voiceapp.server.work import warn_of_late_work
from voiceapp.tasks.models import Task

from .process import Served, served


def codes(reasons: list[NotReadyReason]) -> list[str]:
    return [reason.code for reason in reasons]


@pytest.fixture
def models_dir(tmp_path: Path, settings: Settings) -> Path:
    """An empty folder as the place of the models."""
    settings.MODELS_DIR = tmp_path / "models"
    return tmp_path / "models"


def place_models(folder: Path) -> None:
    """Files with the right names; readiness looks at names, fetching at sums."""
    for model in weights.MODELS:
        for file in model.files:
            (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
            (folder / file.name).touch()


@pytest.mark.django_db
async def test_a_database_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # as root, no file is refused
    assert "database_read_only" in codes(await Readiness().reasons())


@pytest.mark.django_db
async def test_all_wait_for_the_one_look_that_finds_a_server_back(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voiceapp.health.FRESH_S", 0.0)
    status, asked, is_back = 500, asyncio.Event(), asyncio.Event()

    async def models(request: web.Request) -> web.StreamResponse:
        if status == 200:
            asked.set()
            await is_back.wait()
        return web.json_response({"data": []}, status=status)

    async with listening(web.get("/v1/models", models)) as origin:
        options = {"base_url": f"{origin}/v1"}
        with offered(settings, [ModelCard("far", "chat", "voiceapp.engines.openai.chat.OpenAIChat", options=options)]):
            here = Readiness()
            assert "model_unavailable" in codes(await here.reasons())
            status = 200
            six = [asyncio.create_task(here.reasons()) for _ in range(6)]
            await asyncio.wait_for(asked.wait(), 20)
            for _ in range(10):
                await asyncio.sleep(0)
            is_back.set()
            assert [codes(found).count("model_unavailable") for found in await asyncio.gather(*six)] == [0] * 6
            for provider in providers().built():
                await provider.close()


def test_it_answers_probes_that_come_by_address(server: Served) -> None:
    for host in ("10.1.2.3:8000", "not-allowed.example"):
        status, answer, headers = server.request("GET", "/healthz", headers={"Host": host})
        assert (status, answer) == (200, {"status": "ok"})
        assert headers["cache-control"] == "no-store"
        assert server.request("GET", "/readyz", headers={"Host": host})[0] == 503


def test_it_is_not_ready_before_migrations_and_models(server: Served) -> None:
    status, answer, _ = server.request("GET", "/readyz")
    assert (status, answer["status"]) == (503, "not ready")
    sentences = {reason["code"]: reason["message"] for reason in answer["reasons"]}
    assert "python manage.py migrate" in sentences["migrations_pending"]
    assert "python manage.py fetch_models" in sentences["models_missing"]


@pytest.mark.django_db(transaction=True)
async def test_it_names_every_missing_model(models_dir: Path) -> None:
    reasons = await Readiness().reasons()
    assert codes(reasons) == ["models_missing"]
    for model in weights.MODELS:
        # The tests' settings offer no language model, and conversations search in English.
        is_unused = {SMALL_MODEL, MULTILINGUAL_MODEL}.intersection(file.name for file in model.files)
        assert (model.title in reasons[0].for_operators) is (model in weights.usable() and not is_unused)


@pytest.mark.django_db(transaction=True)
async def test_it_is_ready_when_nothing_is_missing(models_dir: Path) -> None:
    place_models(models_dir)
    assert await Readiness().reasons() == []


def test_strangers_read_codes_and_no_words_of_operators(server: Served) -> None:
    _, answer, _ = server.request("GET", "/readyz", headers={"X-Forwarded-For": "203.0.113.9"})
    assert {"code": "migrations_pending"} in answer["reasons"]
    assert set().union(*answer["reasons"]) == {"code"}


async def test_an_operator_comes_from_this_machine_or_with_an_operators_key(alice: Member, charlie: Member) -> None:
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(scopes=["admin"])
    digest = parse(alice.key)
    assert digest
    temporary = temporary_keys.mint(digest, 2**31)

    async def is_one(client: str, **headers: str) -> bool:
        named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        return await is_operator({"client": (client, 1), "headers": named})

    assert await is_one("127.0.0.1")
    assert await is_one("::1")
    assert not await is_one("127.0.0.1", x_forwarded_for="203.0.113.9")
    assert not await is_one("203.0.113.9")
    assert await is_one("203.0.113.9", authorization=alice.authorization)
    assert not await is_one("203.0.113.9", authorization=charlie.authorization)
    assert not await is_one("203.0.113.9", authorization=f"Bearer {temporary}")
    assert not await is_one("203.0.113.9", authorization="Bearer sk-nonsense")


@pytest.mark.django_db(transaction=True)
async def test_operators_read_for_how_long_work_waits_for_a_worker(
    alice: Member, models_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place_models(models_dir)
    now = timezone.now()
    for due_at in (now - timedelta(minutes=5), now + timedelta(minutes=5)):
        await Task.objects.acreate(
            account=alice.account,
            workspace=alice.workspace,
            key=alice.row,
            kind="audio/tts/synthesis",
            model_name="tts-1",
            due_at=due_at,
        )
    status, answer = await readiness_answer(Readiness(), for_operators=True)
    assert (status, answer["status"], list(answer["oldest_due_s"])) == (200, "ready", ["tasks"])
    assert 300 <= answer["oldest_due_s"]["tasks"] < 360
    assert await readiness_answer(Readiness(), for_operators=False) == (200, {"status": "ready"})
    await sync_to_async(warn_of_late_work)()
    (said,) = caplog.messages
    assert said.startswith("tasks: the oldest that is due has waited for 3")


@pytest.mark.django_db(transaction=True)
async def test_it_says_when_disk_space_is_short(models_dir: Path, settings: Settings) -> None:
    place_models(models_dir)
    settings.DISK_RESERVE_BYTES = 2**62
    (reason,) = await Readiness().reasons()
    assert reason.code == "disk_full"
    assert reason.message == "The server has too little disk space."
    assert "(DISK_RESERVE_BYTES)" in reason.for_operators


@pytest.mark.django_db(transaction=True)
async def test_it_says_that_the_language_model_is_gone(
    models_dir: Path, only_models: Callable[..., None], unused_tcp_port: int
) -> None:
    options = {"base_url": f"http://127.0.0.1:{unused_tcp_port}/v1"}
    only_models(ModelCard("bard", "chat", "voiceapp.engines.openai.chat.OpenAIChat", options=options))
    (reason,) = await Readiness().reasons()
    assert reason.code == "model_unavailable"
    assert reason.message == "The chat server cannot be reached."
    assert "CHAT_BASE_URL" in reason.for_operators


@pytest.mark.django_db(transaction=True)
async def test_it_waits_for_the_engines(models_dir: Path) -> None:
    place_models(models_dir)
    this = Readiness()
    this.warming = True
    assert codes(await this.reasons()) == ["warming_up"]
    this.warming, this.warm_up_failed = False, True
    assert codes(await this.reasons()) == ["engines_failed"]


@pytest.mark.django_db(transaction=True)
async def test_it_tells_the_page_the_same() -> None:
    this = process_readiness()
    this.warm_up_failed = True
    try:
        assert "engines_failed" in codes(await readiness())
    finally:
        this.warm_up_failed = False


def test_it_says_that_the_database_does_not_answer(tmp_path: Path) -> None:
    place_models(tmp_path / "models")
    with served(tmp_path, DATABASE_URL=f"sqlite:///{tmp_path}/no/such/folder/x.sqlite3") as server:
        server.wait_until_warm()
        status, answer, _ = server.request("GET", "/readyz")
        assert status == 503
        assert [reason["code"] for reason in answer["reasons"]] == ["database_unreachable"]
        assert server.request("GET", "/healthz")[0] == 200
