"""Embedding and rerank models of a service elsewhere: what is asked of it, and what it may reply."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from tests.engines.upstream.http.conftest import PATIENCE_S, FaultyService, Reply
from voiceapp.engines.models.tokens import Counted
from voiceapp.engines.text_interfaces import EmbeddingRequest, RerankRequest, SparseEntry
from voiceapp.engines.upstream.http.client import EMBEDDING_PATH, RERANK_PATH
from voiceapp.engines.upstream.http.embedding import UpstreamEmbedder
from voiceapp.engines.upstream.http.rerank import UpstreamReranker
from voiceapp.errors import EngineError, EngineUnavailable

QUERY = Counted("what is a panda", 4)
DOCUMENTS = (Counted("hi", 1), Counted("a bear", 2))


def item(number: int, vector: Any = (3.0, 4.0), **more: Any) -> dict[str, Any]:
    return {"text_index": number, "embedding": vector, **more}


def embeddings(*items: Any) -> Reply:
    return Reply({"output": {"embeddings": list(items)}, "usage": {"total_tokens": 7}, "request_id": "r"})


def ranking(*results: Any) -> Reply:
    return Reply({"output": {"results": list(results)}, "usage": {"total_tokens": 9}, "request_id": "r"})


def ranked(index: int, score: Any) -> dict[str, Any]:
    return {"index": index, "relevance_score": score}


async def embed(service: FaultyService, **more: Any) -> Any:
    request = EmbeddingRequest((Counted("one", 1), Counted("two", 1)), **more)
    async with asyncio.timeout(PATIENCE_S):
        return await UpstreamEmbedder(model="far", **service.address()).embed(request)


async def test_vectors_come_in_the_order_of_the_texts(service: FaultyService) -> None:
    sparse = [{"index": 5, "value": 0.5, "token": "one"}]
    service.will(embeddings(item(1, sparse_embedding=[]), item(0, (0.0, 2.0), sparse_embedding=sparse)))
    found = await embed(service, sparse=True, dimension=2, text_type="query", instruct="Find it")
    np.testing.assert_allclose(found.dense, np.array([[0, 1], [0.6, 0.8]]), atol=1e-6)
    assert found.sparse == ((SparseEntry(5, 0.5, "one"),), ())
    assert found.total_tokens == 7
    assert service.asked[0][1] == EMBEDDING_PATH
    assert service.asked[0][3] == {
        "model": "far",
        "input": {"texts": ["one", "two"]},
        "parameters": {
            "text_type": "query",
            "output_type": "dense&sparse",
            "dimension": 2,
            "instruct": "Find it",
        },
    }


@pytest.mark.parametrize(
    "reply",
    [
        Reply([]),
        Reply({"output": None}),
        embeddings(item(0)),
        embeddings(item(0), item(0)),
        embeddings(item(0), item(1), item(2)),
        embeddings(item(0), item(1, (1.0, 2.0, 3.0))),
        embeddings(item(0), item(1, ("a", "b"))),
        embeddings(item(0), item(1, (float("nan"), 1.0))),
        embeddings(item(0), item(1, ())),
        embeddings(item(0, (1.0,)), item(1, (1.0,))),
    ],
)
async def test_what_is_not_one_vector_for_each_text_is_an_error(service: FaultyService, reply: Reply) -> None:
    service.will(reply)
    with pytest.raises(EngineError):
        await embed(service, dimension=2)


async def rank(service: FaultyService) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        request = RerankRequest(QUERY, DOCUMENTS, instruct="Find it")
        return await UpstreamReranker(model="far", **service.address()).rerank(request)


async def test_documents_are_ranked_by_the_scores_there(service: FaultyService) -> None:
    service.will(ranking(ranked(0, 0.25), ranked(1, 0.75)))
    found = await rank(service)
    assert [(result.index, result.score) for result in found.results] == [(1, 0.75), (0, 0.25)]
    assert found.total_tokens == 9
    assert service.asked[0][1] == RERANK_PATH
    assert service.asked[0][3] == {
        "model": "far",
        "input": {"query": QUERY.text, "documents": ["hi", "a bear"]},
        "parameters": {"top_n": 2, "return_documents": False, "instruct": "Find it"},
    }


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"output": {}}),
        ranking(ranked(0, 0.5)),
        ranking(ranked(0, 0.5), ranked(0, 0.5)),
        ranking(ranked(0, 0.5), ranked(7, 0.5)),
        ranking(ranked(0, 0.5), ranked(1, "best")),
        ranking(ranked(0, 0.5), ranked(1, float("inf"))),
    ],
)
async def test_what_does_not_rank_every_document_is_an_error(service: FaultyService, reply: Reply) -> None:
    service.will(reply)
    with pytest.raises(EngineUnavailable):
        await rank(service)
