"""The product with embedding and reranking served elsewhere, as its settings say, through a real client."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import dashscope
import pytest
from aiohttp import web

from tests.realtime.conftest import Serve
from tests.web import everywhere, listening_beside


class Elsewhere:
    """Embeds a text as its length, and ranks documents by theirs."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append((f"{request.path} {request.headers.get('Authorization')}", body))
        answer: dict[str, Any] = {"usage": {"total_tokens": 42}}
        if request.path.endswith("/embeddings"):
            vectors = [[float(len(text)), 1.0, 0.0] for text in body["input"]]
            answer["data"] = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        else:
            answer["results"] = [
                {"index": place, "relevance_score": len(text) / 100} for place, text in enumerate(body["documents"])
            ]
        return web.json_response(answer)


@pytest.fixture(scope="module")
def elsewhere() -> Elsewhere:
    return Elsewhere()


@pytest.fixture(scope="module")
def old(elsewhere: Elsewhere, serve: Serve) -> Iterator[dict[str, Any]]:
    with listening_beside(everywhere(elsewhere.answer)) as origin:
        product = serve(
            EMBEDDING_BASE_URL=f"{origin}/v1",
            EMBEDDING_API_KEY="sk-for-embedding",
            EMBEDDING_MODEL="nomic",
            RERANK_BASE_URL=f"{origin}/v1",
            RERANK_MODEL="bge",
        )
        yield {"api_key": product.keys["good"], "base_address": f"{product.origin}/api/v1"}


def test_vectors_come_from_the_embedding_server(old: dict[str, Any], elsewhere: Elsewhere) -> None:
    answer = dashscope.TextEmbedding.call("text-embedding-v4", ["abc", "a"], **old)
    assert answer.status_code == HTTPStatus.OK, answer
    first, second = (item["embedding"] for item in answer.output["embeddings"])
    assert first == pytest.approx([3 / 10**0.5, 1 / 10**0.5, 0], abs=1e-6)
    assert second == pytest.approx([0.5**0.5, 0.5**0.5, 0], abs=1e-6)
    assert answer.usage["total_tokens"] == 42
    assert elsewhere.asked[-1] == (
        "/v1/embeddings Bearer sk-for-embedding",
        {"model": "nomic", "input": ["abc", "a"], "encoding_format": "float"},
    )


def test_sparse_vectors_are_refused_there(old: dict[str, Any]) -> None:
    answer = dashscope.TextEmbedding.call("text-embedding-v4", "abc", output_type="dense&sparse", **old)
    assert (answer.status_code, answer.code) == (HTTPStatus.BAD_REQUEST, "InvalidParameter")
    assert "sparse" in answer.message


def test_the_order_comes_from_the_rerank_server(old: dict[str, Any], elsewhere: Elsewhere) -> None:
    answer = dashscope.TextReRank.call("gte-rerank", "query", ["a", "abc", "ab"], top_n=2, **old)
    assert answer.status_code == HTTPStatus.OK, answer
    assert [(item.index, item.relevance_score) for item in answer.output.results] == [(1, 0.03), (2, 0.02)]
    assert answer.usage.total_tokens == 42
    assert elsewhere.asked[-1] == (
        "/v1/rerank None",
        {"model": "bge", "query": "query", "documents": ["a", "abc", "ab"], "top_n": 3},
    )
