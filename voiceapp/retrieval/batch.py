"""The tasks that embed many texts and rerank for many queries: a file in, JSON lines out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.metering import require_model
from voiceapp.engines.catalogue import catalogue
from voiceapp.errors import InvalidParameter
from voiceapp.retrieval import embedding, rerank
from voiceapp.retrieval.items import native_items
from voiceapp.retrieval.schemas import EmbeddingParameters
from voiceapp.schemas import CleanStr, Schema
from voiceapp.tasks.inputs import MAX_LINES_BYTES, answered, check_sources, fetched, read_json, read_text
from voiceapp.tasks.kinds import Done, Order, Part

Url = Annotated[CleanStr, Field(max_length=2048)]


class TextFile(Schema):
    url: Url
    """Of a text file in UTF-8, one text a line."""


class EmbeddingBatchBody(Schema):
    model: CleanStr
    """Such as `text-embedding-v4` or `text-embedding-async-v2`."""
    input: TextFile
    parameters: EmbeddingParameters | None = None
    """For every text."""


class QueryFile(Schema):
    url: Url
    """Of a file of JSON lines, each with `query` and `documents`, and optionally `top_n` and a `custom_id` to know it
    by."""


class RerankBatchBody(Schema):
    model: CleanStr
    """Such as `qwen3-rerank`."""
    input: QueryFile


class _Batch:
    """What both have in common."""

    time_limit_s = 4 * 3600.0
    max_attempts = 3
    parallel = 1
    has_results = False
    read: Callable[[bytes], Any]

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])

    async def run(self, part: Part) -> Done:
        source = await fetched(part, part.order["url"], max_bytes=MAX_LINES_BYTES)
        target = part.folder / "results.jsonl"
        total = 0

        async def one(number: int, value: Any) -> Mapping[str, Any]:
            return await self._answer(part, number, value)

        with target.open("w") as sink:
            async for found in answered(part, source, self.read, one):
                sink.write(f"{json.dumps(found)}\n")
                total += found.get("usage", {}).get("total_tokens", 0)
        return Done({"url": await part.keep(target, "application/jsonl")}, {"total_tokens": total})

    async def _answer(self, part: Part, number: int, value: Any) -> dict[str, Any]:
        raise NotImplementedError


class EmbeddingBatch(_Batch):
    """A `Kind`."""

    path = "embeddings/text-embedding/text-embedding"
    title = "Embed many texts"
    description = (
        "Fetches a text file and embeds each line of it: the result, at `output.url`, has a line for each, in order, "
        "with `embedding`, and `sparse_embedding` where it was asked for, or `error`."
    )
    body = EmbeddingBatchBody
    read = staticmethod(read_text)

    async def accept(self, caller: Caller, body: EmbeddingBatchBody) -> Order:
        card = catalogue().get(body.model, "embedding")
        require_model(caller, card.name, "embedding")
        await check_sources(caller, [body.input.url])
        how = body.parameters or EmbeddingParameters()
        await embedding.check(embedding.native_wish(body.model, (), how, texts_at="line"))
        return Order(body.model, [{"url": body.input.url}], how.model_dump(exclude_none=True))

    async def _answer(self, part: Part, number: int, text: str) -> dict[str, Any]:
        how = EmbeddingParameters.model_validate(part.common)
        wish = embedding.native_wish(part.model, [text], how, texts_at="line")
        embedded = await embedding.embed(part.caller, wish, request_id=f"{part.charge_id}-{number}")
        (item,) = native_items(embedded.answer, embedded.count)
        return {**item, "text_index": number, "usage": {"total_tokens": embedded.total_tokens}}


class RerankBatch(_Batch):
    """A `Kind`."""

    path = "rerank/text-rerank/batch"
    title = "Rerank for many queries"
    description = (
        "Fetches a file of JSON lines and ranks the `documents` of each by their relevance to its `query`: the result, "
        "at `output.url`, has a line for each, in order, with `results` or `error`, and the `custom_id` it came with."
    )
    body = RerankBatchBody
    read = staticmethod(read_json)

    async def accept(self, caller: Caller, body: RerankBatchBody) -> Order:
        card = catalogue().get(body.model, "rerank")
        require_model(caller, card.name, "rerank")
        await check_sources(caller, [body.input.url])
        return Order(body.model, [{"url": body.input.url}])

    async def _answer(self, part: Part, number: int, asked: dict[str, Any]) -> dict[str, Any]:
        query, documents, top_n = asked.get("query"), asked.get("documents"), asked.get("top_n")
        if not isinstance(query, str):
            raise InvalidParameter("query must be a string.")
        if not isinstance(documents, list) or not all(isinstance(document, str) for document in documents):
            raise InvalidParameter("documents must be an array of strings.")
        if top_n is not None and (not isinstance(top_n, int) or isinstance(top_n, bool) or top_n < 1):
            raise InvalidParameter("top_n must be a positive integer.")
        wish = rerank.Wish(model=part.model, query=query, documents=documents, top_n=top_n)
        ranked = await rerank.rerank(part.caller, wish, request_id=f"{part.charge_id}-{number}")
        return {
            "results": [{"index": result.index, "relevance_score": result.score} for result in ranked.results],
            "usage": {"total_tokens": ranked.total_tokens},
        }
