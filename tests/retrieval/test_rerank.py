"""Both rerank operations, which are one call in two styles."""

from __future__ import annotations

from typing import Any

import pytest

from tests.retrieval.conftest import FLAT, RERANK, Program
from voiceapp.accounts.models import UsageRecord
from voiceapp.retrieval.schemas import FlatRerankReply, RerankReply

QUERY = "How long is a conversation kept?"
ANSWER = "The words of a conversation are kept for 30 days."
DOCUMENTS = ["A coin has two sides.", ANSWER, "Birds sing in the morning."]


def nested(documents: Any = DOCUMENTS, query: Any = QUERY, model: str = "qwen3-rerank", **more: Any) -> dict[str, Any]:
    return {"model": model, "input": {"query": query, "documents": documents}, "parameters": more}


def flat(documents: Any = DOCUMENTS, query: Any = QUERY, model: str = "qwen3-rerank", **more: Any) -> dict[str, Any]:
    return {"model": model, "query": query, "documents": documents, **more}


BOTH = pytest.mark.parametrize(("path", "body"), [(RERANK, nested), (FLAT, flat)])


def results(answer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.get("output", answer)["results"]
    return found


async def test_the_nested_style_answers_as_specified(program: Program) -> None:
    answer = await program.ok(RERANK, nested())
    RerankReply.model_validate(answer)
    assert answer.keys() == {"output", "usage", "request_id"}
    assert [item.keys() for item in results(answer)] == [{"index", "relevance_score"}] * 3
    assert results(answer)[0]["index"] == 1


async def test_the_flat_style_answers_as_specified(program: Program) -> None:
    answer = await program.ok(FLAT, flat())
    FlatRerankReply.model_validate(answer)
    assert answer.keys() == {"id", "object", "model", "results", "usage"}
    assert (answer["object"], answer["model"]) == ("list", "qwen3-rerank")
    assert answer["id"]
    assert [item["document"] for item in results(answer)] == [
        {"text": DOCUMENTS[item["index"]]} for item in results(answer)
    ]


async def test_both_styles_are_one_call(program: Program) -> None:
    one = await program.ok(RERANK, nested(return_documents=True))
    other = await program.ok(FLAT, flat())
    assert results(one) == results(other)
    assert one["usage"] == other["usage"]


@BOTH
async def test_results_come_by_score_between_0_and_1(program: Program, path: str, body: Any) -> None:
    documents = [f"Sentence number {number} about nothing much." for number in range(120)] + [ANSWER]
    scores = [item["relevance_score"] for item in results(await program.ok(path, body(documents)))]
    assert len(scores) == 121
    assert scores == sorted(scores, reverse=True)
    assert 1 >= scores[0] > 0.8
    assert scores[-1] >= 0


@BOTH
async def test_top_n_limits_the_answer(program: Program, path: str, body: Any) -> None:
    whole = results(await program.ok(path, body()))
    assert results(await program.ok(path, body(top_n=1))) == whole[:1]
    assert results(await program.ok(path, body(top_n=50))) == whole
    assert results(await program.ok(path, body(top_n=None))) == whole
    for wrong in (0, -1, "1", 1.5, True):
        assert "top_n" in (await program.refusal(path, body(top_n=wrong), 400))["message"]


@BOTH
@pytest.mark.parametrize("model", ["gte-rerank", "gte-rerank-v2", "qwen3.7-text-rerank"])
async def test_it_answers_to_the_names_that_clients_have_built_in(
    program: Program, path: str, body: Any, model: str
) -> None:
    assert results(await program.ok(path, body(model=model)))[0]["index"] == 1


@BOTH
async def test_documents_may_be_objects_with_a_text(program: Program, path: str, body: Any) -> None:
    objects = await program.ok(path, body([{"text": text} for text in DOCUMENTS]))
    strings = await program.ok(path, body())
    assert results(objects) == results(strings)


@BOTH
async def test_an_instruct_is_taken(program: Program, path: str, body: Any) -> None:
    plain, instructed = await program.ok(path, body()), await program.ok(path, body(instruct="Find the rule."))
    assert results(plain) == results(instructed)
    assert "instruct" in (await program.refusal(path, body(instruct=5), 400))["message"]


@BOTH
async def test_tokens_are_the_query_for_each_document_and_the_documents(program: Program, path: str, body: Any) -> None:
    answer = await program.ok(path, body(["Hello, world!", "Good morning"], "Good day?"))
    assert answer["usage"] == {"total_tokens": 3 * 2 + 4 + 2}
    assert (await UsageRecord.objects.aget()).quantity == 12


async def test_the_501st_document_is_refused(program: Program) -> None:
    documents = [str(number) for number in range(501)]
    assert len(results(await program.ok(FLAT, flat(documents[:500], "7")))) == 500
    refused = await program.refusal(FLAT, flat(documents, "7"), 400)
    assert refused["code"] == "InvalidParameter"
    assert "501" in refused["message"]
    assert "500" in refused["message"]


async def test_an_item_is_cut_to_4000_tokens(program: Program) -> None:
    long = "word " * 5_000
    answer = await program.ok(RERANK, nested([long + ANSWER, "Good morning"], "Good day?"))
    assert answer["usage"]["total_tokens"] == 3 * 2 + 4_000 + 2
    answer = await program.ok(RERANK, nested(["Good morning"], long))
    assert answer["usage"]["total_tokens"] == 4_000 + 2


async def test_a_cut_document_comes_back_whole(program: Program) -> None:
    long = "word " * 5_000
    assert results(await program.ok(FLAT, flat([long])))[0]["document"]["text"] == long


async def test_a_request_over_120000_tokens_is_refused_with_the_sum(program: Program) -> None:
    refused = await program.refusal(FLAT, flat(["word " * 3_999] * 30, "a b"), 400)
    assert refused["code"] == "InvalidParameter"
    for number in ("120030", "2 x 30", "119970", "120000"):
        assert number in refused["message"]
    assert await UsageRecord.objects.acount() == 0


@pytest.mark.parametrize("shown", [True, False, None])
async def test_the_nested_style_returns_documents_on_request(program: Program, shown: bool | None) -> None:
    for item in results(await program.ok(RERANK, nested(return_documents=shown))):
        assert ("document" in item) == (shown is True)


@BOTH
@pytest.mark.parametrize(
    ("documents", "query"),
    [([], QUERY), (DOCUMENTS, ""), (DOCUMENTS, " "), ("text", QUERY), ([1], QUERY), ([{"image": "x"}], QUERY), ([], 1)],
)
async def test_what_is_not_a_request_is_refused(
    program: Program, path: str, body: Any, documents: Any, query: Any
) -> None:
    refused = await program.refusal(path, body(documents, query), 400)
    assert refused["code"] == "InvalidParameter"
    assert refused["message"]


@BOTH
async def test_a_model_that_is_not_there_is_not_found(program: Program, path: str, body: Any) -> None:
    assert (await program.refusal(path, body(model="nova"), 404))["code"] == "ModelNotFound"


@pytest.mark.parametrize("header", ["X-DashScope-Async", "x-service-async"])
async def test_the_nested_style_is_not_made_a_task(program: Program, header: str) -> None:
    assert (await program.refusal(RERANK, nested(), 403, **{header: "enable"}))["code"] == "AccessDenied"
