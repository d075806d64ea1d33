"""Embedding and reranking on servers elsewhere, against real local ones that answer as the well-known kinds do."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from aiohttp import web

from tests.web import everywhere, listening
from voiceapp.engines.models.tokens import Counted
from voiceapp.engines.openai.embedding import OpenAIEmbedder
from voiceapp.engines.openai.rerank import OpenAIReranker
from voiceapp.engines.text_interfaces import EmbeddingRequest, Ranking, RerankRequest, TextType
from voiceapp.errors import EngineRefused, EngineUnavailable

KEY = "sk-very-secret-0123456789"
PATIENCE_S = 20.0
VECTORS = [[3.0, 4.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]]


@dataclass
class Elsewhere:
    """A server that answers every post with `answer`, and remembers what it was asked."""

    base_url: str = ""
    answer: Any = None
    status: int = 200
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append((request.path, await request.json()))
        self.headers.append(dict(request.headers))
        text = self.answer if isinstance(self.answer, str) else json.dumps(self.answer)
        return web.Response(text=text, status=self.status, content_type="application/json")


@pytest_asyncio.fixture
async def elsewhere() -> AsyncIterator[Elsewhere]:
    stand_in = Elsewhere()
    async with listening(everywhere(stand_in.handle)) as origin:
        stand_in.base_url = f"{origin}/v1"
        yield stand_in


@pytest_asyncio.fixture
async def embedder(elsewhere: Elsewhere) -> AsyncIterator[OpenAIEmbedder]:
    engine = OpenAIEmbedder(
        base_url=elsewhere.base_url,
        api_key=KEY,
        model="nomic",
        timeout_s=PATIENCE_S,
    )
    yield engine
    await engine.close()


@pytest_asyncio.fixture
async def reranker(elsewhere: Elsewhere) -> AsyncIterator[OpenAIReranker]:
    engine = OpenAIReranker(base_url=elsewhere.base_url, api_key=KEY, model="bge", timeout_s=PATIENCE_S)
    yield engine
    await engine.close()


def counted(*texts: str) -> tuple[Counted, ...]:
    return tuple(Counted(text, len(text.split())) for text in texts)


def ask(
    *texts: str, dimension: int | None = None, text_type: TextType = "document", instruct: str = ""
) -> EmbeddingRequest:
    return EmbeddingRequest(counted(*texts), dimension=dimension, text_type=text_type, instruct=instruct)


def embeddings(*vectors: Any, **more: Any) -> dict[str, Any]:
    data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "nomic", **more}


RANK = RerankRequest(counted("what is a panda")[0], counted("hi", "it is a bear", "the giant panda"))


def scores(found: Ranking) -> list[tuple[int, float]]:
    return [(result.index, round(result.score, 4)) for result in found.results]


async def test_it_embeds_and_makes_unit_vectors(elsewhere: Elsewhere, embedder: OpenAIEmbedder) -> None:
    elsewhere.answer = embeddings(*VECTORS, usage={"prompt_tokens": 9, "total_tokens": 9})
    answer = await embedder.embed(ask("one", "two"))
    assert answer.dense is not None
    np.testing.assert_allclose(answer.dense, np.array([[0.6, 0.8, 0, 0], [0, 0, 0, 1]]), atol=1e-6)
    assert answer.total_tokens == 9
    assert elsewhere.requests == [
        ("/v1/embeddings", {"model": "nomic", "input": ["one", "two"], "encoding_format": "float"})
    ]
    assert elsewhere.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_vectors_in_base64_and_out_of_order_are_read(elsewhere: Elsewhere, embedder: OpenAIEmbedder) -> None:
    written = [base64.b64encode(np.array(vector, dtype="<f4").tobytes()).decode() for vector in VECTORS]
    elsewhere.answer = embeddings(*written)
    elsewhere.answer["data"].reverse()
    answer = await embedder.embed(ask("one", "two"))
    assert answer.dense is not None
    np.testing.assert_allclose(answer.dense[0], [0.6, 0.8, 0, 0], atol=1e-6)
    assert answer.total_tokens is None


async def test_a_length_is_asked_for_and_made_where_the_server_passes_over_it(
    elsewhere: Elsewhere, embedder: OpenAIEmbedder
) -> None:
    elsewhere.answer = embeddings([3.0, 4.0, 12.0])
    answer = await embedder.embed(ask("one", dimension=2))
    assert elsewhere.requests[0][1]["dimensions"] == 2
    np.testing.assert_allclose(answer.dense, [[0.6, 0.8]], atol=1e-6)  # type: ignore[arg-type]


async def test_a_length_that_the_model_does_not_have_is_refused(elsewhere: Elsewhere, embedder: OpenAIEmbedder) -> None:
    elsewhere.answer = embeddings([3.0, 4.0])
    with pytest.raises(EngineRefused, match="have 2 numbers; 1024"):
        await embedder.embed(ask("one", dimension=1024))


async def test_an_instruct_goes_before_queries_only(elsewhere: Elsewhere, embedder: OpenAIEmbedder) -> None:
    elsewhere.answer = embeddings([1.0])
    await embedder.embed(ask("one", text_type="query", instruct="Find."))
    await embedder.embed(ask("one", instruct="Find."))
    assert [body["input"] for _, body in elsewhere.requests] == [["Instruct: Find.\nQuery: one"], ["one"]]


@pytest.mark.parametrize(
    "answer",
    [
        "no JSON",
        "[]",
        "5",
        {"data": []},
        {"data": [{"index": 0}]},
        {"data": "none"},
        embeddings([1.0], [2.0]),
        embeddings(["x"]),
        embeddings("%%%"),
        embeddings([]),
        '{"data": [{"index": 7, "embedding": [1.0]}]}',
        '{"data": [{"index": 0, "embedding": [NaN]}]}',
        "x" * (16 * 1024 * 1024 + 1),
    ],
    ids=lambda answer: str(answer)[:40],
)
async def test_an_answer_that_is_no_list_of_vectors_is_unavailable(
    elsewhere: Elsewhere, embedder: OpenAIEmbedder, answer: Any
) -> None:
    elsewhere.answer = answer
    with pytest.raises(EngineUnavailable, match="embedding server"):
        await embedder.embed(ask("one"))


@pytest.mark.parametrize(
    ("answer", "total"),
    [
        pytest.param(
            {
                "model": "bge",
                "object": "list",
                "usage": {"prompt_tokens": 30, "total_tokens": 30},
                "results": [
                    {"index": 0, "relevance_score": 0.02},
                    {"index": 1, "relevance_score": 0.7},
                    {"index": 2, "relevance_score": 0.98},
                ],
            },
            30,
            id="llama.cpp",
        ),
        pytest.param(
            {
                "id": "rerank-1",
                "model": "bge",
                "usage": {"total_tokens": 30},
                "results": [
                    {"index": 2, "document": {"text": "the giant panda"}, "relevance_score": 0.98},
                    {"index": 1, "document": {"text": "it is a bear"}, "relevance_score": 0.7},
                    {"index": 0, "document": {"text": "hi"}, "relevance_score": 0.02},
                ],
            },
            30,
            id="vLLM and LocalAI",
        ),
        pytest.param(
            [{"index": 2, "score": 0.98}, {"index": 1, "score": 0.7}, {"index": 0, "score": 0.02}],
            None,
            id="Text Embeddings Inference",
        ),
    ],
)
async def test_it_reads_the_rankings_of_well_known_servers(
    elsewhere: Elsewhere, reranker: OpenAIReranker, answer: Any, total: int | None
) -> None:
    elsewhere.answer = answer
    found = await reranker.rerank(RANK)
    assert scores(found) == [(2, 0.98), (1, 0.7), (0, 0.02)]
    assert found.total_tokens == total


async def test_it_asks_for_all_documents_with_the_instruct(elsewhere: Elsewhere, reranker: OpenAIReranker) -> None:
    elsewhere.answer = [{"index": place, "score": 0.5} for place in range(3)]
    await reranker.rerank(RerankRequest(RANK.query, RANK.documents, instruct="Find bears."))
    assert elsewhere.requests == [
        (
            "/v1/rerank",
            {
                "model": "bge",
                "query": "what is a panda",
                "documents": ["hi", "it is a bear", "the giant panda"],
                "top_n": 3,
                "instruction": "Find bears.",
            },
        )
    ]


async def test_text_embeddings_inference_is_asked_in_its_own_words(elsewhere: Elsewhere) -> None:
    engine = OpenAIReranker(base_url=elsewhere.base_url, shape="texts")
    elsewhere.answer = [{"index": place, "score": 0.5} for place in range(3)]
    await engine.rerank(RANK)
    assert elsewhere.requests[0][1] == {
        "query": "what is a panda",
        "texts": ["hi", "it is a bear", "the giant panda"],
        "truncate": True,
    }
    assert "Authorization" not in elsewhere.headers[0]
    await engine.close()


async def test_raw_scores_are_squashed_from_the_first_that_shows(
    elsewhere: Elsewhere, reranker: OpenAIReranker
) -> None:
    elsewhere.answer = [{"index": 0, "score": -1000.0}, {"index": 1, "score": 0.0}, {"index": 2, "score": 4.0}]
    assert scores(await reranker.rerank(RANK)) == [(2, 0.982), (1, 0.5), (0, 0.0)]
    elsewhere.answer = [{"index": 0, "score": 0.0}, {"index": 1, "score": 1.0}, {"index": 2, "score": 0.5}]
    assert scores(await reranker.rerank(RANK)) == [(1, 0.7311), (2, 0.6225), (0, 0.5)]


@pytest.mark.parametrize(
    "answer",
    [
        {"results": [{"index": 0, "relevance_score": 1}]},
        {"results": [{"index": 0, "score": 1}, {"index": 0, "score": 1}, {"index": 1, "score": 1}]},
        [{"index": 0, "score": 1}, {"index": 1, "score": 1}, {"index": 3, "score": 1}],
        [{"index": 0}, {"index": 1}, {"index": 2}],
        '[{"index": 0, "score": NaN}, {"index": 1, "score": 1}, {"index": 2, "score": 1}]',
        {"results": None},
        "null",
        "7",
    ],
    ids=lambda answer: str(answer)[:40],
)
async def test_an_answer_that_is_no_ranking_is_unavailable(
    elsewhere: Elsewhere, reranker: OpenAIReranker, answer: Any
) -> None:
    elsewhere.answer = answer
    with pytest.raises(EngineUnavailable, match="rerank server"):
        await reranker.rerank(RANK)


async def test_refusals_name_the_server_to_callers_and_its_settings_to_operators(
    elsewhere: Elsewhere, embedder: OpenAIEmbedder, reranker: OpenAIReranker, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere.status, elsewhere.answer = 401, {"error": KEY}
    with pytest.raises(EngineUnavailable) as caught:
        await embedder.embed(ask("one"))
    assert caught.value.message == "The embedding server refused the key of this server."
    with pytest.raises(EngineUnavailable) as caught:
        await reranker.rerank(RANK)
    assert caught.value.message == "The rerank server refused the key of this server."
    assert [("EMBEDDING_API_KEY" in line, "RERANK_API_KEY" in line) for line in caplog.messages] == [
        (True, False),
        (False, True),
    ]
    elsewhere.status, elsewhere.answer = 400, {"error": {"message": f"too long {KEY}"}}
    with pytest.raises(EngineRefused, match=r"too long \*\*\*"):
        await reranker.rerank(RANK)
