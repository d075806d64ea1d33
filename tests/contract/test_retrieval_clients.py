"""Embedding and reranking through the client libraries that exist, against the real server process."""

from __future__ import annotations

import asyncio
import os
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

import dashscope
import openai
import pytest
from dashscope.rerank.text_rerank import AioTextReRank
from dashscope.v2.errors import APIStatusError

from tests.realtime.product import Product

QUESTION = "How do I stop the assistant while it speaks?"
TEXTS = [QUESTION, "You can interrupt it by talking.", "Two eggs and some butter."]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def assert_meant(vectors: list[list[float]]) -> None:
    question, same, other = vectors
    assert cosine(question, same) > cosine(question, other) + 0.2


def test_text_embedding_of_1x(old: dict[str, Any]) -> None:
    answer = dashscope.TextEmbedding.call(
        "text-embedding-v4", TEXTS, dimension=256, text_type="document", output_type="dense&sparse", **old
    )
    assert answer.status_code == HTTPStatus.OK, answer
    assert not answer.code
    items = answer.output["embeddings"]
    assert [item["text_index"] for item in items] == [0, 1, 2]
    assert_meant([item["embedding"] for item in items])
    assert items[1]["sparse_embedding"][0].keys() == {"index", "value", "token"}
    assert answer.usage["total_tokens"] > 15
    assert answer.request_id


def test_a_single_string_in_1x(old: dict[str, Any]) -> None:
    answer = dashscope.TextEmbedding.call(dashscope.TextEmbedding.Models.text_embedding_v3, QUESTION, **old)
    assert answer.status_code == HTTPStatus.OK, answer
    (item,) = answer.output["embeddings"]
    assert len(item["embedding"]) == 1024


def test_a_refusal_in_1x(old: dict[str, Any]) -> None:
    answer = dashscope.TextEmbedding.call("text-embedding-v4", ["x"] * 11, **old)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert answer.code == "InvalidParameter"
    assert "must not be larger than 10" in answer.message
    assert answer.request_id
    answer = dashscope.TextEmbedding.call("text-embedding-v4", QUESTION, **old | {"api_key": "sk-wrong"})
    assert (answer.status_code, answer.code) == (HTTPStatus.UNAUTHORIZED, "InvalidApiKey")


def test_rerank_of_1x(old: dict[str, Any]) -> None:
    answer = dashscope.TextReRank.call(
        dashscope.TextReRank.Models.gte_rerank, QUESTION, TEXTS[1:], top_n=2, return_documents=True, **old
    )
    assert answer.status_code == HTTPStatus.OK, answer
    first, second = answer.output.results
    assert (first.index, second.index) == (0, 1)
    assert 1 >= first.relevance_score > second.relevance_score >= 0
    assert first["document"] == {"text": TEXTS[1]}
    assert answer.usage.total_tokens > 15


def test_rerank_without_its_documents_in_1x(old: dict[str, Any]) -> None:
    answer = dashscope.TextReRank.call("qwen3-rerank", QUESTION, TEXTS[1:], instruct="Find the rule.", **old)
    assert answer.status_code == HTTPStatus.OK, answer
    assert answer.output.results[0]["document"] is None


def test_rerank_of_the_async_1x(old: dict[str, Any]) -> None:
    answer = asyncio.run(AioTextReRank.call("qwen3-rerank", QUESTION, TEXTS[1:], **old))
    assert answer.status_code == HTTPStatus.OK, answer
    assert answer.output.results[0].index == 0
    refused = asyncio.run(AioTextReRank.call("qwen3-rerank", QUESTION, TEXTS[1:], top_n=0, **old))
    assert (refused.status_code, refused.code) == (HTTPStatus.BAD_REQUEST, "InvalidParameter")
    assert "top_n" in refused.message


def test_embeddings_of_2x(new: dashscope.Client) -> None:
    answer = new.embeddings.create(
        model="text-embedding-v4", input=TEXTS, dimension=512, instruct="Find the rule.", output_type="dense&sparse"
    )
    assert [item.index for item in answer.embeddings] == [0, 1, 2]
    assert_meant([item.embedding for item in answer.embeddings])
    assert answer.embeddings[0].sparse_embedding
    assert answer.usage.total_tokens > 15
    assert answer.request_id


def test_rerank_of_2x(new: dashscope.Client) -> None:
    answer = new.rerank.create(model="qwen3-rerank", query=QUESTION, documents=TEXTS[1:], return_documents=True)
    assert [item.index for item in answer.results] == [0, 1]
    assert answer.results[0].document is not None
    assert answer.results[0].document.text == TEXTS[1]


def test_refusals_in_2x(new: dashscope.Client) -> None:
    with pytest.raises(APIStatusError) as refused:
        new.embeddings.create(model="text-embedding-v3", input=QUESTION, dimension=64)
    assert refused.value.status_code == 400
    assert "1024, 768, 512" in str(refused.value)
    with pytest.raises(APIStatusError) as refused:
        new.rerank.create(model="nova", query=QUESTION, documents=TEXTS)
    assert refused.value.status_code == 404


def test_embeddings_of_openai(compatible: openai.OpenAI) -> None:
    answer = compatible.embeddings.create(model="text-embedding-v4", input=TEXTS, dimensions=256)
    assert [item.index for item in answer.data] == [0, 1, 2]
    assert_meant([item.embedding for item in answer.data])
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 15
    plain = compatible.embeddings.create(
        model="text-embedding-v4", input=TEXTS, dimensions=256, encoding_format="float"
    )
    assert plain.data[0].embedding == pytest.approx(answer.data[0].embedding, abs=1e-7)


def test_refusals_in_openai(product: Product, compatible: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        compatible.embeddings.create(model="nova", input=QUESTION)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="token numbers") as refused:
        compatible.embeddings.create(model="text-embedding-v4", input=[[1, 2, 3]])
    assert refused.value.param == "input"
    with pytest.raises(openai.AuthenticationError) as unknown:
        compatible.with_options(api_key="sk-wrong").embeddings.create(model="text-embedding-v4", input=QUESTION)
    assert unknown.value.code == "invalid_api_key"


def test_the_flat_style_through_openai(product: Product, compatible: openai.OpenAI) -> None:
    flat = compatible.with_options(base_url=f"{product.origin}/compatible-api/v1")
    body = {"model": "qwen3-rerank", "query": QUESTION, "documents": TEXTS[1:], "top_n": 1}
    answer: Any = flat.post("/reranks", cast_to=object, body=body)
    (result,) = answer["results"]
    assert result["index"] == 0
    assert result["document"] == {"text": TEXTS[1]}
    with pytest.raises(openai.BadRequestError, match="top_n"):
        flat.post("/reranks", cast_to=object, body=body | {"top_n": 0})


def test_a_client_that_leaves_is_not_worked_for(product: Product, compatible: openai.OpenAI) -> None:
    flat = compatible.with_options(base_url=f"{product.origin}/compatible-api/v1")

    def ranked(numbers: range, client: openai.OpenAI = flat) -> None:
        documents = [f"{number} " + "nothing much " * 500 for number in numbers]
        client.post(
            "/reranks", cast_to=object, body={"model": "qwen3-rerank", "query": QUESTION, "documents": documents}
        )

    before = cpu_s(product.pid)
    ranked(range(12))
    some = cpu_s(product.pid) - before
    with pytest.raises(openai.APITimeoutError):
        ranked(range(12, 60), flat.with_options(timeout=some / 4))
    answer = compatible.embeddings.create(model="text-embedding-v4", input=QUESTION)
    assert len(answer.data[0].embedding) == 1024
    time.sleep(1.0)  # in which it would go on, if it did
    assert cpu_s(product.pid) - before < 3 * some, "of five times as much for the whole"


def cpu_s(process_id: int) -> float:
    """Processor time of a process so far (proc(5): fields 14 and 15, behind the name, which may hold anything)."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
