"""A key's monthly budget holds back every operation that uses a model, and the ledger says which unit each one used."""

from __future__ import annotations

import asyncio
import io
import json
import wave
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from django.db.models import Sum
from django.http import HttpResponse
from django.test import AsyncClient
from django.test.client import encode_multipart
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.generation.conftest import ABLE
from tests.models import offered
from tests.realtime.test_sockets import refusal
from tests.tasks.conftest import Program, _own_storage, files_at, worker
from tests.tasks.test_images import MP4, PNG
from voiceapp.accounts.auth import key_directory
from voiceapp.accounts.budgets import NO_BUDGET, month_of
from voiceapp.accounts.models import ApiKey, Hold, MonthlySpend, UsageRecord
from voiceapp.api import openapi_document
from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.catalogue.defaults import voice_cards, whisper_folder
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.models.providers import provider_of
from voiceapp.leases.loop import Loop
from voiceapp.realtime.models import RealtimeSession
from voiceapp.tasks.models import Task
from voiceapp.tasks.work.queue import TaskQueue

__all__ = ["_own_storage", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)

PRICES = {
    "chat": {"input_tokens": 1_000, "output_tokens": 2_000},
    "embedding": {"input_tokens": 70},
    "rerank": {"input_tokens": 100},
    "asr": {"audio_seconds": 100_000},
    "tts": {"characters": 15_000},
    "image": {"image_count": 40_000_000},
    "video": {"video_count": 1_000, "video_seconds": 100_000_000},
    "realtime": {"input_tokens": 100, "output_tokens": 200, "audio_seconds": 100_000},
}
BOUNDARY = "a-boundary"
ENABLE = {"X-DashScope-Async": "enable"}
SAID = {"messages": [{"role": "user", "content": "say: Well, yes."}]}
SEEN = {"messages": [{"role": "user", "content": [{"text": "say: Yes."}]}]}


def recording() -> bytes:
    """A second and a half of silence, as a WAV file."""
    sink = io.BytesIO()
    with wave.open(sink, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(2 * 24_000))
    return sink.getvalue()


FILES = {
    "texts.txt": b"A cat sits on the mat.\n",
    "spoken.wav": recording(),
    "made.mp4": MP4,
    "cat.png": PNG,
}


@dataclass(frozen=True)
class Operation:
    """A request that uses a model, and what the ledger says of it."""

    path: str
    body: dict[str, Any] | bytes
    used: dict[str, int | None]
    """By unit; None where the number depends on a model."""
    is_task: bool = False
    media_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.path.rpartition('/services/')[2]}{' task' if self.is_task else ''}"


def task(path: str, body: dict[str, Any], **used: int | None) -> Operation:
    return Operation(f"/api/v1/services/{path}", body, used, is_task=True)


def at_once(path: str, body: dict[str, Any], **used: int | None) -> Operation:
    return Operation(path, body, used)


def of_a_file(path: str, **used: int | None) -> Operation:
    return Operation(path, b"", used, media_type=f"multipart/form-data; boundary={BOUNDARY}")


SPEECH = {"model": "tts-1", "input": "Well, yes.", "voice": "alloy", "response_format": "wav"}
PURRS = {"query": "a cat", "documents": ["A cat purrs."]}
TOKENS = {"input_tokens": 7, "output_tokens": 1}
OPERATIONS = [
    at_once("/api/v1/services/aigc/text-generation/generation", {"model": "obedient", "input": SAID}, **TOKENS),
    at_once("/api/v1/services/aigc/multimodal-generation/generation", {"model": "obedient", "input": SEEN}, **TOKENS),
    at_once("/compatible-mode/v1/chat/completions", {"model": "obedient", **SAID}, **TOKENS),
    at_once("/compatible-mode/v1/responses", {"model": "obedient", "input": "say: Well, yes."}, **TOKENS),
    at_once(
        "/api/v1/services/embeddings/text-embedding/text-embedding",
        {"model": "text-embedding-v4", "input": {"texts": ["A cat."]}},
        input_tokens=None,
    ),
    at_once("/compatible-mode/v1/embeddings", {"model": "text-embedding-v4", "input": "A cat."}, input_tokens=None),
    at_once(
        "/api/v1/services/rerank/text-rerank/text-rerank", {"model": "qwen3-rerank", "input": PURRS}, input_tokens=None
    ),
    at_once("/compatible-api/v1/reranks", {"model": "qwen3-rerank", **PURRS}, input_tokens=None),
    at_once("/compatible-mode/v1/rerank", {"model": "rerank-v3.5", **PURRS}, input_tokens=None),
    at_once("/compatible-mode/v1/audio/speech", SPEECH, characters=10),
    of_a_file("/compatible-mode/v1/audio/transcriptions", audio_seconds=2),
    of_a_file("/compatible-mode/v1/audio/translations", audio_seconds=2),
    task("audio/asr/transcription", {"model": "whisper-1", "input": {"file_urls": ["{spoken.wav}"]}}, audio_seconds=2),
    task("audio/tts/synthesis", {"model": "tts-1", "input": {"text": "Well, yes."}}, characters=10),
    task(
        "embeddings/text-embedding/text-embedding",
        {"model": "text-embedding-v4", "input": {"url": "{texts.txt}"}},
        input_tokens=None,
    ),
    task(
        "aigc/text2image/image-synthesis",
        {"model": "painter", "input": {"prompt": "a cat"}, "parameters": {"n": 2}},
        image_count=2,
    ),
    task(
        "aigc/image2image/image-synthesis",
        {"model": "painter", "input": {"prompt": "a hat", "images": ["{cat.png}"]}},
        image_count=1,
    ),
    task(
        "aigc/image-generation/generation",
        {"model": "painter", "input": {"messages": [{"content": [{"text": "a cat"}]}]}},
        image_count=1,
    ),
    task(
        "aigc/video-generation/video-synthesis",
        {"model": "filmer", "input": {"prompt": "a cat runs"}, "parameters": {"duration": 5}},
        video_count=1,
        video_seconds=5,
    ),
    task(
        "aigc/image2video/video-synthesis",
        {"model": "filmer", "input": {"prompt": "a cat runs"}, "parameters": {"duration": 5}},
        video_count=1,
        video_seconds=5,
    ),
]
CONVERSATIONS = (
    "/api/v1/webrtc/realtime",
    "/api/v1/webrtc/inference",
    "/compatible-mode/v1/realtime",
    "/compatible-mode/v1/realtime/calls",
)
GRANT = {"x-service-rtc-transport": "moq"}
USING_NO_MODEL = (
    "/api/v1/tokens",
    "/api/v1/tasks/",
    "/api/v1/uploads",
    "/api/v1/agentsvc/",
    "/api/v1/agentstudio/",
    "/compatible-mode/v1/realtime/client_secrets",
    "/compatible-mode/v1/realtime/calls/",
    "/api/v1/webrtc/sessions/",
)


def test_the_table_has_every_operation_that_may_use_a_model() -> None:
    posted = {path for path, methods in openapi_document()["paths"].items() if "post" in methods}
    assert {path for path in posted if not path.startswith(USING_NO_MODEL)} == {
        *CONVERSATIONS,
        *(operation.path for operation in OPERATIONS),
    }


@pytest_asyncio.fixture
async def files(settings: Settings) -> AsyncIterator[Any]:
    settings.FETCH_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    async with files_at(FILES) as at:
        engines, whisper = "tests.contract.media_engines", whisper_folder("", settings.MODELS_DIR)
        cards = [
            *(card for card in settings.VOICE_MODELS if card.kind not in ("asr", "chat")),
            *(card for card in voice_cards(languages=("en", "de"), whisper=whisper) if card.kind == "asr"),
            ModelCard("obedient", "chat", "tests.generation.engine.Obedient", chat=ABLE),
            ModelCard("painter", "image", f"{engines}.ReadyPainter"),
            ModelCard("filmer", "video", f"{engines}.VideoService", options={"base_url": at("").rstrip("/")}),
        ]
        settings.LEDGER_PRICES = PRICES
        with offered(settings, cards):
            yield at


async def give(member: Member, budget_nano: int, spent_nano: int = 0) -> None:
    await ApiKey.objects.filter(pk=member.row.pk).aupdate(monthly_budget_nano=budget_nano)
    await MonthlySpend.objects.filter(key=member.row).adelete()
    if spent_nano:
        await MonthlySpend.objects.acreate(key=member.row, month=month_of(timezone.now()), spent_nano=spent_nano)
    key_directory.forget()


async def send(member: Member, operation: Operation, files: Any) -> HttpResponse:
    body = operation.body
    if isinstance(body, dict):
        text = json.dumps(body)
        for name in FILES:
            text = text.replace(f"{{{name}}}", files(name))
        content = text.encode()
    else:
        sound = io.BytesIO(recording())
        sound.name = "spoken.wav"
        content = encode_multipart(BOUNDARY, {"model": "whisper-1", "file": sound})
    return await AsyncClient().generic(
        "POST",
        operation.path,
        content,
        content_type=operation.media_type,
        headers={"Authorization": member.authorization, **(ENABLE if operation.is_task else {})},
    )


def said(answer: HttpResponse) -> tuple[str, str]:
    """Code and message of a refusal, in whichever shape."""
    body = answer.json()
    error = body.get("error") or body
    return error["code"], error["message"]


def denied_at(path: str) -> str:
    """The code for what a caller may not do, in the words of the operation's clients."""
    return "access_denied" if path.startswith("/compatible-") else "AccessDenied"


async def assert_nothing_ran(spent_nano: int = 0) -> None:
    assert not await UsageRecord.objects.aexists()
    assert not await Hold.objects.aexists()
    assert not await Task.objects.aexists()
    assert not await RealtimeSession.objects.aexists()
    assert (await MonthlySpend.objects.aaggregate(sum=Sum("spent_nano")))["sum"] in (spent_nano, None)
    used: tuple[tuple[str, ModelKind], ...] = (("obedient", "chat"), ("painter", "image"), ("filmer", "video"))
    for name, family in used:
        assert provider_of(catalogue().get(name, family)).asked == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_nothing_runs_when_the_budget_is_used_up(alice: Member, files: Any, operation: Operation) -> None:
    for budget_nano, spent_nano in ((0, 0), (10**9, 10**9)):
        await give(alice, budget_nano, spent_nano)

        answer = await send(alice, operation, files)

        assert answer.status_code == 403, answer.content
        assert said(answer) == (denied_at(operation.path), NO_BUDGET)
        await assert_nothing_ran(spent_nano)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_what_runs_is_recorded_in_its_unit_and_spent(
    alice: Member, files: Any, worker: Loop, operation: Operation
) -> None:
    await give(alice, 10**12)

    answer = await send(alice, operation, files)
    if answer.streaming:
        async for _ in answer:
            pass
    assert answer.status_code == 200, answer.content
    if operation.is_task:
        done = await Program(alice).follow(answer.json()["output"]["task_id"])
        assert done["output"]["task_status"] == "SUCCEEDED", done

    lines = [line async for line in UsageRecord.objects.all()]
    used = {unit: sum(line.quantity for line in lines if line.unit == unit) for unit in {line.unit for line in lines}}
    assert used.keys() == operation.used.keys()
    assert {unit: quantity or used[unit] for unit, quantity in operation.used.items()} == used
    assert all(line.unit_price_nano == PRICES[line.family][line.unit] for line in lines)
    assert (await MonthlySpend.objects.aget()).spent_nano == sum(line.cost_nano for line in lines) > 0
    assert not await Hold.objects.aexists()


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.is_task], ids=str)
async def test_a_task_that_was_accepted_before_the_budget_was_used_up_fails(
    alice: Member, files: Any, operation: Operation
) -> None:
    await give(alice, 10**12)
    answer = await send(alice, operation, files)
    assert answer.status_code == 200, answer.content
    await give(alice, 10**12, 10**12)

    await running_until_over(Loop([TaskQueue()]))

    done = await Program(alice).look(answer.json()["output"]["task_id"])
    assert (done["output"]["task_status"], done["output"]["code"]) == ("FAILED", "AccessDenied")
    assert done["output"]["message"] == NO_BUDGET
    await Task.objects.all().adelete()
    await assert_nothing_ran(10**12)


async def running_until_over(loop: Loop) -> None:
    """Work until every task is over."""
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(60):
        while await Task.objects.exclude(status__in=("SUCCEEDED", "FAILED")).aexists():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    loop.stop()
    await running


async def test_no_conversation_is_opened_when_the_budget_is_used_up(alice: Member, files: Any) -> None:
    for budget_nano, spent_nano in ((0, 0), (10**9, 10**9)):
        await give(alice, budget_nano, spent_nano)

        status, body = await refusal(alice, "voice")
        assert (status, body["code"], body["message"]) == (403, "AccessDenied", NO_BUDGET)

        for path in CONVERSATIONS:
            is_grant = path.endswith("/inference")
            answer = await AsyncClient().generic(
                "POST",
                f"{path}?model={'fun-asr-realtime' if is_grant else 'voice'}",
                "{}" if is_grant else "v=0",
                content_type="application/json" if is_grant else "application/sdp",
                headers={"Authorization": alice.authorization, **(GRANT if is_grant else {})},
            )
            assert answer.status_code == 403, (path, answer.content)
            assert said(answer) == (denied_at(path), NO_BUDGET)
        await assert_nothing_ran(spent_nano)


async def test_what_has_no_price_runs_without_a_budget(alice: Member, files: Any, settings: Settings) -> None:
    settings.LEDGER_PRICES = {}
    await give(alice, 0)
    for operation in [one for one in OPERATIONS if not one.is_task]:
        answer = await send(alice, operation, files)
        if answer.streaming:
            async for _ in answer:
                pass
        assert answer.status_code == 200, (operation, answer.content)
