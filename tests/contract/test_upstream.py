"""Models that a second instance of this server serves, through our operations: callers cannot tell the difference."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import HttpResponse, StreamingHttpResponse
from django.test import AsyncClient, Client
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.models import offered
from tests.ports import free_port
from tests.realtime.conftest import Serve
from tests.realtime.product import Home, Product
from voiceapp.accounts.models import UsageRecord
from voiceapp.catalogue.servers import UpstreamSettings
from voiceapp.catalogue.services import with_fallbacks, with_services
from voiceapp.engines.models import providers
from voiceapp.health import Readiness, readiness_answer

pytestmark = pytest.mark.django_db(transaction=True)

EMBED = "/api/v1/services/embeddings/text-embedding/text-embedding"
RERANK = "/api/v1/services/rerank/text-rerank/text-rerank"
FLAT = "/compatible-api/v1/reranks"
TEXT = "/api/v1/services/aigc/text-generation/generation"
COMPLETIONS = "/compatible-mode/v1/chat/completions"
SUM = [{"role": "user", "content": "What is two plus two?"}]
CANARY = "sk-canary-0123456789abcdef"
SHOWN = ("/", "/docs", "/docs/connect", "/openapi.json", "/healthz")
"""Pages on which a key has no business."""
DOCUMENTS = ["It speaks English.", "It listens on port 8000."]


class Front:
    """This server, called with a key of its own."""

    def __init__(self, member: Member) -> None:
        self._headers = {"Authorization": member.authorization}

    async def post(self, path: str, body: Any, **headers: str) -> HttpResponse:
        return await AsyncClient().generic(
            "POST", path, json.dumps(body), content_type="application/json", headers=self._headers | headers
        )

    async def ok(self, path: str, body: Any) -> dict[str, Any]:
        response = await self.post(path, body)
        assert response.status_code == 200, response.content
        found: dict[str, Any] = response.json()
        return found

    async def text(self, path: str, body: Any, **headers: str) -> str:
        response = await self.post(path, body, **headers)
        assert isinstance(response, StreamingHttpResponse)
        return "".join([bytes(piece).decode() async for piece in response])


@pytest.fixture(scope="module")
def far(serve: Serve) -> Product:
    """The service elsewhere."""
    return serve()


def settings_of(origin: str, key: str) -> UpstreamSettings:
    return UpstreamSettings(
        origin,
        key,
        "",
        chat_models=["far-plus:qwen-plus"],
        embedding_models=["text-embedding-v4"],
        rerank_models=["far-rank:qwen3-rerank"],
    )


@pytest_asyncio.fixture
async def front(far: Product, alice: Member, settings: Settings) -> AsyncIterator[Front]:
    service = settings_of(far.origin, far.keys["good"])
    with offered(settings, with_services(settings.VOICE_MODELS, [service])):
        yield Front(alice)
        await providers.close()


async def test_chat_answers_in_both_styles_with_the_usage_of_the_service(front: Front) -> None:
    native = await front.ok(TEXT, {"model": "far-plus", "input": {"messages": SUM}})
    compatible = await front.ok(COMPLETIONS, {"model": "far-plus", "messages": SUM})
    assert native["output"]["text"] == compatible["choices"][0]["message"]["content"] == "2 plus 2 is 4."
    assert compatible["model"] == "far-plus"
    assert native["usage"]["output_tokens"] == compatible["usage"]["completion_tokens"] > 0
    charged = [row async for row in UsageRecord.objects.filter(operation="chat", unit="output_tokens")]
    assert {(row.model, row.quantity) for row in charged} == {("far-plus", native["usage"]["output_tokens"])}


async def test_chat_is_streamed_in_both_styles(front: Front) -> None:
    native = await front.text(TEXT, {"model": "far-plus", "input": {"messages": SUM}}, **{"X-DashScope-SSE": "enable"})
    compatible = await front.text(COMPLETIONS, {"model": "far-plus", "messages": SUM, "stream": True})
    assert "2 plus 2 is 4." in native
    assert '"finish_reason":"stop"' in native
    assert compatible.endswith("data: [DONE]\n\n")


async def test_vectors_are_those_of_the_service_sparse_ones_too(front: Front, far: Product) -> None:
    body = {"model": "text-embedding-v4", "input": {"texts": ["a kettle", "ein Kessel"]}}
    asked = {**body, "parameters": {"output_type": "dense&sparse", "dimension": 256, "text_type": "query"}}
    here = await front.ok(EMBED, asked)
    embedded = await front.ok(EMBED, {**asked, "model": "embedded-text-embedding-v4"})
    for one, other in zip(here["output"]["embeddings"], embedded["output"]["embeddings"], strict=True):
        np.testing.assert_allclose(one["embedding"], other["embedding"], atol=1e-5)
        assert one["sparse_embedding"] == other["sparse_embedding"]
    assert here["usage"] == embedded["usage"]
    assert await UsageRecord.objects.filter(operation="embedding", model="text-embedding-v4").aexists()
    assert f"POST {EMBED}" in far.log


async def test_documents_are_ranked_there_in_both_styles(front: Front) -> None:
    query = "Which port does it use?"
    nested = {"model": "far-rank", "input": {"query": query, "documents": DOCUMENTS}, "parameters": {"top_n": 1}}
    one = await front.ok(RERANK, nested)
    other = await front.ok(FLAT, {"model": "far-rank", "query": query, "documents": DOCUMENTS})
    assert [item["index"] for item in other["results"]] == [1, 0]
    assert one["output"]["results"][0]["relevance_score"] == other["results"][0]["relevance_score"]
    assert one["usage"] == other["usage"]


async def test_the_header_says_who_served_a_request(front: Front) -> None:
    served = {}
    for path, body in (
        (TEXT, {"model": "far-plus", "input": {"messages": SUM}}),
        (COMPLETIONS, {"model": "far-plus", "messages": SUM, "stream": True}),
        ("/compatible-mode/v1/responses", {"model": "far-plus", "input": "What is two plus two?"}),
        (FLAT, {"model": "far-rank", "query": "port", "documents": DOCUMENTS}),
        (EMBED, {"model": "embedded-text-embedding-v4", "input": {"texts": ["a kettle"]}}),
    ):
        served[path] = (await front.post(path, body))["X-Served-By"]
    assert served == {
        TEXT: "upstream/far-plus",
        COMPLETIONS: "upstream/far-plus",
        "/compatible-mode/v1/responses": "upstream/far-plus",
        FLAT: "upstream/far-rank",
        EMBED: "embedded/embedded-text-embedding-v4",
    }
    assert "X-Served-By" not in await front.post(COMPLETIONS, {"model": "nobody", "messages": SUM})


async def test_another_model_stands_in_before_a_reply_has_begun(
    alice: Member, far: Product, settings: Settings
) -> None:
    gone = UpstreamSettings(
        f"http://127.0.0.1:{free_port()}",
        "sk-gone",
        "",
        alias="gone",
        chat_models=["plus"],
        embedding_models=["v4:text-embedding-v4"],
        rerank_models=["rank"],
    )
    cards = with_services(settings.VOICE_MODELS, [gone, settings_of(far.origin, far.keys["good"])])
    chains = ["plus>far-plus", "v4>embedded-text-embedding-v4", "rank>qwen3-rerank"]
    with offered(settings, with_fallbacks(cards, chains)):
        front = Front(alice)
        whole = await front.post(COMPLETIONS, {"model": "plus", "messages": SUM})
        streamed = await front.post(COMPLETIONS, {"model": "plus", "messages": SUM, "stream": True})
        vectors = await front.post(EMBED, {"model": "v4", "input": {"texts": ["a kettle"]}})
        ranked = await front.post(FLAT, {"model": "rank", "query": "port", "documents": DOCUMENTS})
        await providers.close()
    assert whole.json()["choices"][0]["message"]["content"] == "2 plus 2 is 4."
    assert whole.json()["model"] == "plus"
    assert [response["X-Served-By"] for response in (whole, streamed, vectors, ranked)] == [
        "upstream/far-plus",
        "upstream/far-plus",
        "embedded/embedded-text-embedding-v4",
        "embedded/qwen3-rerank",
    ]
    assert len(vectors.json()["output"]["embeddings"][0]["embedding"]) == 1024


async def test_readiness_and_the_operators_site_say_what_is_reachable(
    alice: Member, far: Product, settings: Settings, operator: User
) -> None:
    here = settings_of(far.origin, far.keys["good"])
    wrong_key = replace(here, alias="wrong", settings="UPSTREAM_WRONG", api_key=CANARY, chat_models=["w"])
    gone = replace(wrong_key, alias="gone", base_url=f"http://127.0.0.1:{free_port()}", chat_models=["g"])
    others = [replace(each, embedding_models=[], rerank_models=[]) for each in (wrong_key, gone)]
    with offered(settings, with_services(settings.VOICE_MODELS, [here, *others])):
        _, before = await readiness_answer(Readiness(), for_operators=True)
        await providers.probe_services()
        for model in ("far-plus", "w"):  # on a busy machine, a look may have been given up
            await Front(alice).post(COMPLETIONS, {"model": model, "messages": SUM})
        _, after = await readiness_answer(Readiness(), for_operators=True)
        client = Client()
        await sync_to_async(client.force_login)(operator)
        shown = [(await sync_to_async(client.get)(path)).content.decode() for path in ("/admin/", *SHOWN)]
        await providers.close()
    assert [service["reachable"] for service in before["services"]] == [None, None, None]
    assert {service["name"]: service["reachable"] for service in after["services"]} == {
        "upstream": True,
        "wrong": False,
        "gone": False,
    }
    assert "UPSTREAM_WRONG_API_KEY" in str(after)
    assert "Service gone" in shown[0]
    for text in (str(before), str(after), *shown):
        assert CANARY not in text


async def test_a_model_that_the_service_does_not_have_is_refused_in_our_shape(
    alice: Member, far: Product, settings: Settings
) -> None:
    service = UpstreamSettings(far.origin, far.keys["good"], "", chat_models=["nobody"])
    with offered(settings, with_services(settings.VOICE_MODELS, [service])):
        response = await Front(alice).post(COMPLETIONS, {"model": "nobody", "messages": SUM})
        await providers.close()
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("The service that runs this model refused the request")


@pytest.mark.parametrize("is_reachable", [True, False])
async def test_without_the_service_callers_get_503_and_nobody_the_key(
    alice: Member, far: Product, settings: Settings, caplog: pytest.LogCaptureFixture, is_reachable: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    service = settings_of(far.origin if is_reachable else f"http://127.0.0.1:{free_port()}", CANARY)
    with offered(settings, with_services(settings.VOICE_MODELS, [service])):
        response = await Front(alice).post(COMPLETIONS, {"model": "far-plus", "messages": SUM})
        streamed = await Front(alice).post(COMPLETIONS, {"model": "far-plus", "messages": SUM, "stream": True})
        await providers.close()
    for each in (response, streamed):
        assert each.status_code == 503
        assert 1 <= int(each["Retry-After"]) <= 30
        assert each.json()["error"]["message"].startswith("The service that runs this model ")
        assert CANARY not in each.content.decode() + caplog.text + repr(settings.VOICE_MODELS)


def test_the_key_of_a_service_is_in_nothing_that_a_server_writes(far: Product, home: Home, tmp_path: Path) -> None:
    key = far.keys["doomed"]
    front = Product(
        home,
        tmp_path / "served",
        LOG_LEVEL="DEBUG",
        UPSTREAM_BASE_URL=far.origin,
        UPSTREAM_API_KEY=key,
        UPSTREAM_CHAT_MODELS="plus:qwen-plus",
        UPSTREAM_SERVICES="wrong,gone",
        UPSTREAM_WRONG_BASE_URL=far.origin,
        UPSTREAM_WRONG_API_KEY=CANARY,
        UPSTREAM_WRONG_CHAT_MODELS="plus-wrong:qwen-plus",
        UPSTREAM_GONE_BASE_URL=f"http://127.0.0.1:{free_port()}",
        UPSTREAM_GONE_API_KEY=CANARY,
        UPSTREAM_GONE_CHAT_MODELS="plus-gone:qwen-plus",
        MODEL_FALLBACKS="plus-gone>plus-wrong>plus",
    )
    try:
        written = [front.ask(path) for path in (*SHOWN, "/readyz", "/compatible-mode/v1/models", "/no-such-page")]
        for model, served_by in (("plus", "upstream/plus"), ("plus-gone", "upstream/plus"), ("plus-wrong", None)):
            reply = front.ask(COMPLETIONS, {"model": model, "messages": SUM})
            assert (reply.status, reply.headers["X-Served-By"]) == (200 if served_by else 503, served_by)
            written.append(reply)
    finally:
        front.stop()
    files = b"".join(path.read_bytes() for path in (tmp_path / "served").rglob("*") if path.is_file())
    assert "service gone" in front.log
    for secret in (key, CANARY):
        assert secret not in front.log + "".join(f"{reply.headers}{reply.content.decode()}" for reply in written)
        assert secret.encode() not in files
