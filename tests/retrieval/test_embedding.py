"""The native embedding operation: what it answers, and what it refuses in which words."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.conftest import Member
from tests.retrieval.conftest import EMBED, Program
from voiceapp.accounts.models import UsageRecord
from voiceapp.retrieval.schemas import EmbeddingReply


def body(texts: Any, *, model: str = "text-embedding-v4", **parameters: Any) -> dict[str, Any]:
    return {"model": model, "input": {"texts": texts}, "parameters": parameters}


def vectors(answer: dict[str, Any]) -> list[list[float]]:
    return [item["embedding"] for item in answer["output"]["embeddings"]]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_it_answers_as_the_specification_and_the_wire_have_it(program: Program) -> None:
    answer = await program.ok(EMBED, body(["Hello, world!", "Good morning"]))
    EmbeddingReply.model_validate(answer)
    assert answer.keys() == {"status_code", "request_id", "code", "message", "output", "usage"}
    assert (answer["status_code"], answer["code"], answer["message"]) == (200, "", "")
    assert [item["text_index"] for item in answer["output"]["embeddings"]] == [0, 1]
    assert all(item.keys() == {"embedding", "text_index"} for item in answer["output"]["embeddings"])
    assert answer["usage"] == {"total_tokens": 6}


@pytest.mark.parametrize(
    ("model", "dimension"),
    [("text-embedding-v4", length) for length in (2048, 1536, 1024, 768, 512, 256, 128, 64)]
    + [("text-embedding-v3", length) for length in (1024, 768, 512)],
)
async def test_it_has_every_documented_dimension(program: Program, model: str, dimension: int) -> None:
    (vector,) = vectors(await program.ok(EMBED, body("Hello", model=model, dimension=dimension)))
    assert len(vector) == dimension
    assert math.fsum(number * number for number in vector) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("model", ["text-embedding-v4", "text-embedding-v3"])
async def test_a_vector_has_1024_numbers_unless_asked(program: Program, model: str) -> None:
    (vector,) = vectors(await program.ok(EMBED, body("Hello", model=model)))
    assert len(vector) == 1024


@pytest.mark.parametrize(
    ("model", "dimension"), [("text-embedding-v3", 256), ("text-embedding-v4", 1000), ("text-embedding-v4", 0)]
)
async def test_it_refuses_other_dimensions_and_names_those_there_are(
    program: Program, model: str, dimension: int
) -> None:
    refused = await program.refusal(EMBED, body("Hello", model=model, dimension=dimension), 400)
    assert refused["code"] == "InvalidParameter"
    assert "1024, 768, 512" in refused["message"]


@pytest.mark.parametrize(
    "given",
    [
        {"texts": "Hello"},
        {"texts": ["Hello"]},
        {"contents": "Hello"},
        {"contents": ["Hello"]},
        {"contents": [{"text": "Hello"}]},
    ],
)
async def test_it_takes_texts_in_every_form(program: Program, given: dict[str, Any]) -> None:
    reference = await program.ok(EMBED, body(["Hello"], dimension=64))
    answer = await program.ok(EMBED, {"model": "text-embedding-v4", "input": given, "parameters": {"dimension": 64}})
    assert vectors(answer) == vectors(reference)


@pytest.mark.parametrize("parameters", [None, {}, {"dimension": None, "text_type": None, "output_type": None}])
async def test_parameters_may_be_left_out_or_null(program: Program, parameters: Any) -> None:
    asked = {"model": "text-embedding-v4", "input": {"texts": ["Hello"]}, "parameters": parameters}
    (vector,) = vectors(await program.ok(EMBED, asked))
    assert len(vector) == 1024


async def test_parameters_it_does_not_know_are_passed_over(program: Program) -> None:
    await program.ok(EMBED, body("Hello", kwargs={}, truncate=True))


async def test_sparse_vectors_come_beside_or_instead(program: Program) -> None:
    both = (await program.ok(EMBED, body("Knights ride horses", output_type="dense&sparse")))["output"]
    only = (await program.ok(EMBED, body("Knights ride horses", output_type="sparse")))["output"]
    (item,) = both["embeddings"]
    assert len(item["embedding"]) == 1024
    assert {entry["token"] for entry in item["sparse_embedding"]} >= {"knights", "ride", "horses"}
    assert all(entry.keys() == {"index", "value", "token"} for entry in item["sparse_embedding"])
    assert only["embeddings"] == [{"embedding": [], "text_index": 0, "sparse_embedding": item["sparse_embedding"]}]


async def test_text_type_says_which_side_of_a_search_a_sparse_vector_is_for(program: Program) -> None:
    def values(answer: dict[str, Any]) -> dict[str, float]:
        return {entry["token"]: entry["value"] for entry in answer["output"]["embeddings"][0]["sparse_embedding"]}

    query = values(await program.ok(EMBED, body("the knight", output_type="sparse", text_type="query")))
    document = values(await program.ok(EMBED, body("the knight", output_type="sparse", text_type="document")))
    assert document == values(await program.ok(EMBED, body("the knight", output_type="sparse")))
    assert query["knight"] > 10 * query["the"]
    assert document["knight"] == document["the"]


async def test_an_instruct_is_counted_once_and_changes_nothing(program: Program) -> None:
    plain = await program.ok(EMBED, body(["Hello", "Good morning"], dimension=64))
    asked = await program.ok(EMBED, body(["Hello", "Good morning"], dimension=64, instruct="Find greetings."))
    assert vectors(plain) == vectors(asked)
    assert asked["usage"]["total_tokens"] == plain["usage"]["total_tokens"] + 4


async def test_v3_takes_no_instruct(program: Program) -> None:
    refused = await program.refusal(EMBED, body("Hello", model="text-embedding-v3", instruct="Find greetings."), 400)
    assert "instruct" in refused["message"]
    assert "text-embedding-v4" in refused["message"]


async def test_eleven_texts_are_refused_naming_the_limit(program: Program) -> None:
    await program.ok(EMBED, body(["Hello"] * 10, dimension=64))
    refused = await program.refusal(EMBED, body(["Hello"] * 11), 400)
    assert refused["code"] == "InvalidParameter"
    assert "must not be larger than 10" in refused["message"]
    assert "11" in refused["message"]


async def test_a_text_that_is_too_long_is_refused_by_its_number(program: Program) -> None:
    fits = "word " * 8_192
    answer = await program.ok(EMBED, body([fits], dimension=64))
    assert answer["usage"]["total_tokens"] == 8_192
    refused = await program.refusal(EMBED, body(["Hello", fits + "more", "Hello"]), 400)
    assert refused["code"] == "InvalidParameter"
    assert refused["message"] == "input.texts[1] is longer than 8192 tokens, the most that a text may have."


@pytest.mark.parametrize("text", ["", "   ", "\n"])
async def test_an_empty_text_is_refused_by_its_number(program: Program, text: str) -> None:
    refused = await program.refusal(EMBED, body(["Hello", text]), 400)
    assert refused["message"].startswith("input.texts[1] is empty")


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "text-embedding-v4"},
        {"model": "text-embedding-v4", "input": {}},
        {"model": "text-embedding-v4", "input": {"texts": []}},
        {"model": "text-embedding-v4", "input": {"texts": None}},
        {"model": "text-embedding-v4", "input": {"texts": [1]}},
        {"model": "text-embedding-v4", "input": {"texts": "a", "contents": "b"}},
        {"model": "text-embedding-v4", "input": {"url": "https://example.org/texts.txt"}},
        {"model": 4, "input": {"texts": "a"}},
        body("Hello", dimension="64"),
        body("Hello", dimension=True),
        body("Hello", text_type="question"),
        body("Hello", output_type="dense,sparse"),
        body("Hello", instruct=["Find"]),
    ],
)
async def test_what_is_not_a_request_is_refused(program: Program, asked: dict[str, Any]) -> None:
    refused = await program.refusal(EMBED, asked, 400)
    assert refused["code"] == "InvalidParameter"
    assert refused["message"]


async def test_a_model_that_is_not_there_is_not_found(program: Program) -> None:
    assert (await program.refusal(EMBED, body("Hello", model="text-embedding-v9"), 404))["code"] == "ModelNotFound"
    assert (await program.refusal(EMBED, body("Hello", model="qwen3-rerank"), 404))["code"] == "ModelNotFound"


async def test_a_task_wants_a_file_and_not_texts(program: Program) -> None:
    refused = await program.refusal(EMBED, body("Hello"), 400, **{"X-DashScope-Async": "enable"})
    assert refused["message"] == "input.url is required."


async def test_what_was_used_is_in_the_ledger(program: Program, alice: Member) -> None:
    answer = await program.ok(EMBED, body(["Hello, world!", "Good morning"]))
    record = await UsageRecord.objects.aget(request_id=answer["request_id"])
    assert (record.account_id, record.quantity) == (alice.account.pk, answer["usage"]["total_tokens"])
    assert (record.unit, record.unit_price_nano) == ("input_tokens", 70)
    await program.refusal(EMBED, body(["Hello", ""]), 400)
    assert await UsageRecord.objects.acount() == 1


async def test_vectors_of_both_versions_find_what_is_meant(program: Program) -> None:
    texts = ["How do I stop it while it speaks?", "You can interrupt it by talking.", "Two eggs and some butter."]
    for model in ("text-embedding-v3", "text-embedding-v4"):
        question, same, other = vectors(await program.ok(EMBED, body(texts, model=model)))
        assert cosine(question, same) > cosine(question, other) + 0.2
