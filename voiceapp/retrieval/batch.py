"""The tasks that embed many texts and rerank for many queries: a file in, JSON lines out."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import require_budget, require_model
from voiceapp.catalogue.lookup import catalogue
from voiceapp.errors import InvalidParameter
from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.retrieval import embedding, rerank
from voiceapp.retrieval.items import native_items
from voiceapp.retrieval.schemas import EmbeddingParameters
from voiceapp.tasks.kinds import PartResult, Payload
from voiceapp.tasks.storage.inputs import check_sources, fetched
from voiceapp.tasks.storage.json_lines import MAX_LINES_BYTES, read_json, read_text, results_of
from voiceapp.tasks.work.context import TaskContext

Url = Annotated[CleanStr, Field(max_length=2048)]


class TextFile(Schema):
    url: Url
    """Address of a text file in UTF-8, one text a line."""


class EmbeddingBatchBody(Schema):
    model: CleanStr
    """Such as `text-embedding-v4` or `text-embedding-async-v2`."""
    input: TextFile
    parameters: EmbeddingParameters | None = None
    """For every text."""


class QueryFile(Schema):
    url: Url
    """Address of a file of JSON lines, each with `query` and `documents`, and optionally `top_n` and a `custom_id`."""


class RerankBatchBody(Schema):
    model: CleanStr
    """Such as `qwen3-rerank`."""
    input: QueryFile


class _Batch(ABC):
    """Common part of both kinds of batch."""

    time_limit_s = 4 * 3600.0
    max_attempts = 3
    parallel = 1
    has_results = False
    read: Callable[[bytes], Any]
    family: str

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])

    async def run(self, part: TaskContext) -> PartResult:
        await require_budget(part.caller, part.model, self.family)
        source = await fetched(part, part.order["url"], max_bytes=MAX_LINES_BYTES)
        target = part.folder / "results.jsonl"
        total = 0

        async def one(number: int, value: Any) -> Mapping[str, Any]:
            return await self._answer(part, number, value)

        written = 0
        with target.open("w") as sink:
            async for found in results_of(part, source, self.read, one):
                written += sink.write(f"{json.dumps(found)}\n")
                part.require_room(written)
                total += found.get("usage", {}).get("total_tokens", 0)
        return PartResult({"url": await part.keep(target, "application/jsonl")}, {"total_tokens": total})

    @abstractmethod
    async def _answer(self, part: TaskContext, number: int, value: Any) -> dict[str, Any]:
        """The line of results for one line of the input."""


class EmbeddingBatch(_Batch):
    """A `Kind`."""

    path = "embeddings/text-embedding/text-embedding"
    title = "Embed many texts"
    description = (
        "Fetches a text file and embeds each line of it: the result, at `output.url`, has a line for each, in order, "
        "with `embedding`, and `sparse_embedding` where it was asked for, or `error`."
    )
    body = EmbeddingBatchBody
    family = "embedding"
    read = staticmethod(read_text)

    async def accept(self, caller: Caller, body: EmbeddingBatchBody) -> Payload:
        card = catalogue().get(body.model, "embedding")
        require_model(caller, card.name, "embedding")
        await require_budget(caller, card.name, "embedding")
        await check_sources(caller, [body.input.url])
        how = body.parameters or EmbeddingParameters()
        await embedding.check(embedding.native_call(body.model, (), how, texts_at="line"))
        return Payload(body.model, [{"url": body.input.url}], how.model_dump(exclude_none=True))

    async def _answer(self, part: TaskContext, number: int, text: str) -> dict[str, Any]:
        how = EmbeddingParameters.model_validate(part.common)
        call = embedding.native_call(part.model, [text], how, texts_at="line")
        embedded = await embedding.embed(part.caller, call, request_id=f"{part.charge_id}-{number}")
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
    family = "rerank"
    read = staticmethod(read_json)

    async def accept(self, caller: Caller, body: RerankBatchBody) -> Payload:
        card = catalogue().get(body.model, "rerank")
        require_model(caller, card.name, "rerank")
        await require_budget(caller, card.name, "rerank")
        await check_sources(caller, [body.input.url])
        return Payload(body.model, [{"url": body.input.url}])

    async def _answer(self, part: TaskContext, number: int, asked: dict[str, Any]) -> dict[str, Any]:
        query, documents, top_n = asked.get("query"), asked.get("documents"), asked.get("top_n")
        if not isinstance(query, str):
            raise InvalidParameter("query must be a string.")
        if not isinstance(documents, list) or not all(isinstance(document, str) for document in documents):
            raise InvalidParameter("documents must be an array of strings.")
        if top_n is not None and (not isinstance(top_n, int) or isinstance(top_n, bool) or top_n < 1):
            raise InvalidParameter("top_n must be a positive integer.")
        call = rerank.RerankCall(model=part.model, query=query, documents=documents, top_n=top_n)
        ranked = await rerank.rerank(part.caller, call, request_id=f"{part.charge_id}-{number}")
        return {
            "results": [{"index": result.index, "relevance_score": result.score} for result in ranked.results],
            "usage": {"total_tokens": ranked.total_tokens},
        }
