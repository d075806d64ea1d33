"""The product with embedding and reranking served elsewhere, as its settings say, through a real client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import dashscope
import pytest

from tests.realtime.conftest import Serve


class Elsewhere(BaseHTTPRequestHandler):
    """Embeds a text as its length, and ranks documents by theirs."""

    asked: list[tuple[str, dict[str, Any]]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((f"{self.path} {self.headers['Authorization']}", body))
        answer: dict[str, Any] = {"usage": {"total_tokens": 42}}
        if self.path.endswith("/embeddings"):
            vectors = [[float(len(text)), 1.0, 0.0] for text in body["input"]]
            answer["data"] = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        else:
            answer["results"] = [
                {"index": place, "relevance_score": len(text) / 100} for place, text in enumerate(body["documents"])
            ]
        content = json.dumps(answer).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ThreadingHTTPServer]:
    Elsewhere.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def old(elsewhere: ThreadingHTTPServer, serve: Serve) -> dict[str, Any]:
    address = f"http://127.0.0.1:{elsewhere.server_port}/v1"
    product = serve(
        EMBEDDING_BASE_URL=address,
        EMBEDDING_API_KEY="sk-for-embedding",
        EMBEDDING_MODEL="nomic",
        RERANK_BASE_URL=address,
        RERANK_MODEL="bge",
    )
    return {"api_key": product.keys["good"], "base_address": f"{product.origin}/api/v1"}


def test_vectors_come_from_the_embedding_server(old: dict[str, Any]) -> None:
    answer = dashscope.TextEmbedding.call("text-embedding-v4", ["abc", "a"], **old)
    assert answer.status_code == HTTPStatus.OK, answer
    first, second = (item["embedding"] for item in answer.output["embeddings"])
    assert first == pytest.approx([3 / 10**0.5, 1 / 10**0.5, 0], abs=1e-6)
    assert second == pytest.approx([0.5**0.5, 0.5**0.5, 0], abs=1e-6)
    assert answer.usage["total_tokens"] == 42
    assert Elsewhere.asked[-1] == (
        "/v1/embeddings Bearer sk-for-embedding",
        {"model": "nomic", "input": ["abc", "a"], "encoding_format": "float"},
    )


def test_sparse_vectors_are_refused_there(old: dict[str, Any]) -> None:
    answer = dashscope.TextEmbedding.call("text-embedding-v4", "abc", output_type="dense&sparse", **old)
    assert (answer.status_code, answer.code) == (HTTPStatus.BAD_REQUEST, "InvalidParameter")
    assert "sparse" in answer.message


def test_the_order_comes_from_the_rerank_server(old: dict[str, Any]) -> None:
    answer = dashscope.TextReRank.call("gte-rerank", "query", ["a", "abc", "ab"], top_n=2, **old)
    assert answer.status_code == HTTPStatus.OK, answer
    assert [(item.index, item.relevance_score) for item in answer.output.results] == [(1, 0.03), (2, 0.02)]
    assert answer.usage.total_tokens == 42
    assert Elsewhere.asked[-1] == (
        "/v1/rerank None",
        {"model": "bge", "query": "query", "documents": ["a", "abc", "ab"], "top_n": 3},
    )
