"""The task that embeds many texts: a file of lines in, JSON lines out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import require_budget, require_model
from voiceapp.catalogue.lookup import catalogue
from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.retrieval import embedding
from voiceapp.retrieval.items import native_items
from voiceapp.retrieval.schemas import EmbeddingParameters
from voiceapp.tasks.kinds import PartResult, Payload
from voiceapp.tasks.storage.inputs import check_sources, fetched
from voiceapp.tasks.storage.text_lines import MAX_LINES_BYTES, results_of
from voiceapp.tasks.work.context import TaskContext


class TextFile(Schema):
    url: Annotated[CleanStr, Field(max_length=2048)]
    """Address of a text file in UTF-8, one text a line."""


class EmbeddingBatchBody(Schema):
    model: CleanStr
    """Such as `text-embedding-v4` or `text-embedding-async-v2`."""
    input: TextFile
    parameters: EmbeddingParameters | None = None
    """For every text."""


class EmbeddingBatch:
    """A `Kind`."""

    path = "embeddings/text-embedding/text-embedding"
    title = "Embed many texts"
    description = (
        "Fetches a text file and embeds each line of it: the result, at `output.url`, has a line for each, in order, "
        "with `embedding`, and `sparse_embedding` where it was asked for, or `error`."
    )
    body = EmbeddingBatchBody
    time_limit_s = 4 * 3600.0
    max_attempts = 3
    parallel = 1
    has_results = False

    async def accept(self, caller: Caller, body: EmbeddingBatchBody) -> Payload:
        card = catalogue().get(body.model, "embedding")
        require_model(caller, card.name, "embedding")
        await require_budget(caller, card.name, "embedding")
        await check_sources(caller, [body.input.url])
        how = body.parameters or EmbeddingParameters()
        await embedding.check(embedding.native_call(body.model, (), how, texts_at="line"))
        return Payload(body.model, [{"url": body.input.url}], how.model_dump(exclude_none=True))

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])

    async def run(self, part: TaskContext) -> PartResult:
        await require_budget(part.caller, part.model, "embedding")
        source = await fetched(part, part.order["url"], max_bytes=MAX_LINES_BYTES)
        target = part.folder / "results.jsonl"
        how = EmbeddingParameters.model_validate(part.common)
        total = written = 0

        async def one(number: int, text: str) -> Mapping[str, Any]:
            call = embedding.native_call(part.model, [text], how, texts_at="line")
            embedded = await embedding.embed(part.caller, call, request_id=f"{part.charge_id}-{number}")
            (item,) = native_items(embedded.answer, embedded.count)
            return {**item, "text_index": number, "usage": {"total_tokens": embedded.total_tokens}}

        with target.open("w") as sink:
            async for found in results_of(part, source, one):
                written += sink.write(f"{json.dumps(found)}\n")
                part.require_room(written)
                total += found.get("usage", {}).get("total_tokens", 0)
        return PartResult({"url": await part.keep(target, "application/jsonl")}, {"total_tokens": total})
