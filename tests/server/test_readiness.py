"""Health probes before Django, and readiness that names its reasons."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.serving import ROOT
from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.defaults import SMALL_MODEL
from voiceapp.engines import weights
from voiceapp.engines.embedded.multilingual import MODEL_FILE as MULTILINGUAL_MODEL
from voiceapp.health import NotReadyReason, Readiness, process_readiness, readiness

from .process import Served, environment_in, served


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


def test_it_is_ready_with_rows_and_models(tmp_path: Path) -> None:
    place_models(tmp_path / "models")
    environment = environment_in(tmp_path)
    migrate = [sys.executable, "manage.py", "migrate", "--noinput", "-v0"]
    subprocess.run(migrate, cwd=ROOT, env={"PATH": "/usr/bin:/bin", **environment}, check=True)
    with served(tmp_path) as server:
        server.wait_until_warm()
        assert server.request("GET", "/readyz")[:2] == (200, {"status": "ready"})


@pytest.mark.django_db(transaction=True)
async def test_it_names_every_missing_model(models_dir: Path) -> None:
    reasons = await Readiness().reasons()
    assert codes(reasons) == ["models_missing"]
    for model in weights.MODELS:
        # The tests' settings offer no language model, and conversations search in English.
        is_used = {SMALL_MODEL, MULTILINGUAL_MODEL}.isdisjoint(file.name for file in model.files)
        assert (model.title in reasons[0].for_operators) is (is_used and not model.is_optional)


@pytest.mark.django_db(transaction=True)
async def test_it_is_ready_when_nothing_is_missing(models_dir: Path) -> None:
    place_models(models_dir)
    assert await Readiness().reasons() == []


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
