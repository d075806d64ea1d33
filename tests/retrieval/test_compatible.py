"""Embedding as OpenAI's libraries ask for it."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from tests.retrieval.conftest import COMPATIBLE, EMBED, Program
from voiceapp.retrieval.schemas import CompatibleEmbeddingReply


def body(texts: Any, *, model: str = "text-embedding-v4", **more: Any) -> dict[str, Any]:
    return {"model": model, "input": texts, **more}


async def test_it_answers_as_openai_does(program: Program) -> None:
    answer = await program.ok(COMPATIBLE, body(["Hello, world!", "Good morning"]))
    CompatibleEmbeddingReply.model_validate(answer)
    assert answer["object"] == "list"
    assert answer["model"] == "text-embedding-v4"
    assert [(item["object"], item["index"]) for item in answer["data"]] == [("embedding", 0), ("embedding", 1)]
    assert answer["usage"] == {"prompt_tokens": 6, "total_tokens": 6}


async def test_it_gives_the_vectors_of_the_native_operation(program: Program) -> None:
    native = await program.ok(EMBED, {"model": "text-embedding-v4", "input": {"texts": "Hello"}})
    answer = await program.ok(COMPATIBLE, body("Hello"))
    assert answer["data"][0]["embedding"] == native["output"]["embeddings"][0]["embedding"]


async def test_base64_is_the_same_vector_in_little_endian_floats(program: Program) -> None:
    numbers = await program.ok(COMPATIBLE, body("Hello", dimensions=256))
    encoded = await program.ok(COMPATIBLE, body("Hello", dimensions=256, encoding_format="base64"))
    decoded = np.frombuffer(base64.b64decode(encoded["data"][0]["embedding"]), dtype="<f4")
    assert len(decoded) == 256
    np.testing.assert_allclose(decoded, numbers["data"][0]["embedding"], atol=1e-7)


@pytest.mark.parametrize(
    ("model", "length"),
    [("text-embedding-v3", 1024), ("text-embedding-3-small", 1536), ("text-embedding-ada-002", 1536)],
)
async def test_names_of_elsewhere_keep_their_length(program: Program, model: str, length: int) -> None:
    answer = await program.ok(COMPATIBLE, body("Hello", model=model))
    assert len(answer["data"][0]["embedding"]) == length
    assert answer["model"] == model


@pytest.mark.parametrize("tokens", [[1, 2], [[1, 2], [3]]])
async def test_token_numbers_are_refused_with_a_way_out(program: Program, tokens: Any) -> None:
    error = (await program.refusal(COMPATIBLE, body(tokens), 400))["error"]
    assert error["param"] == "input"
    assert "token numbers" in error["message"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (body([]), "input"),
        (body(""), "input[0] is empty"),
        (body(["Hello"] * 11), "must not be larger than 10"),
        (body(["Hello", "word " * 8_193]), "input[1] is longer than 8192 tokens"),
        (body("Hello", dimensions=1000), "dimensions"),
        (body("Hello", encoding_format="hex"), "encoding_format"),
        ({"model": "text-embedding-v4"}, "input"),
    ],
)
async def test_what_is_refused_is_named(program: Program, asked: dict[str, Any], said: str) -> None:
    error = (await program.refusal(COMPATIBLE, asked, 400))["error"]
    assert error["type"] == "invalid_request_error"
    assert said in error["message"]


async def test_a_model_that_is_not_there_is_not_found(program: Program) -> None:
    assert (await program.refusal(COMPATIBLE, body("Hello", model="nova"), 404))["error"]["code"] == "model_not_found"


DOCUMENTS = ["Keys are shown once.", {"text": "Cats sleep all day."}]


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank", "/v1/rerank/", "/compatible-mode/v1/rerank"])
async def test_it_reranks_wherever_libraries_of_jina_and_cohere_call(program: Program, path: str) -> None:
    asked = {"model": "rerank-v3.5", "query": "How do cats live?", "documents": DOCUMENTS, "top_n": 1}
    answer = await program.ok(path, asked)

    (best,) = answer["results"]
    assert best["index"] == 1
    assert best["document"] == {"text": "Cats sleep all day."}
    assert 0 <= best["relevance_score"] <= 1
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] > 0
    assert answer["meta"]["billed_units"] == {"search_units": 1}


async def test_documents_may_be_left_out_of_a_rerank(program: Program) -> None:
    asked = {"model": "jina-reranker-v2-base-multilingual", "query": "Cats?", "documents": DOCUMENTS}
    answer = await program.ok("/v1/rerank", {**asked, "return_documents": False, "max_chunks_per_doc": 3})
    assert [result.keys() for result in answer["results"]] == [{"index", "relevance_score"}] * 2


async def test_a_rerank_without_a_query_is_refused_in_openais_shape(program: Program) -> None:
    error = (await program.refusal("/rerank", {"model": "rerank-v3.5", "documents": DOCUMENTS}, 400))["error"]
    assert error["message"] == "query is required."
