"""The operations: native and OpenAI-compatible embedding, nested and flat reranking."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from voiceapp import formats
from voiceapp.accounts.auth import Caller
from voiceapp.errors import AccessDenied, InvalidParameter
from voiceapp.http.served_by import noting
from voiceapp.retrieval import embedding, rerank
from voiceapp.retrieval.batch import EmbeddingBatch
from voiceapp.retrieval.embedding import Embedded
from voiceapp.retrieval.items import native_items, numbers
from voiceapp.retrieval.rerank import Reranked
from voiceapp.retrieval.schemas import (
    CompatibleEmbeddingBody,
    CompatibleEmbeddingReply,
    DocumentText,
    EmbeddingBody,
    EmbeddingInput,
    EmbeddingParameters,
    EmbeddingReply,
    FlatRerankBody,
    FlatRerankReply,
    ListRerankBody,
    ListRerankReply,
    ListRerankUsage,
    RerankBody,
    RerankItem,
    RerankOutput,
    RerankParameters,
    RerankReply,
    RetrievalUsage,
    TextPart,
)
from voiceapp.tasks.api import create as create_task
from voiceapp.tasks.api import wants_task

native = Router(tags=["Embedding and reranking"])
flat = Router(tags=["Embedding and reranking"])
compatible = Router(tags=["OpenAI-compatible"])


@native.post("/embeddings/text-embedding/text-embedding", summary="Embed texts", response=EmbeddingReply)
async def embed_texts(request: HttpRequest, body: EmbeddingBody) -> HttpResponse:
    """Vectors of up to 10 texts of up to 8,192 tokens each. A text that is too long or empty is refused, by its number.

    The embedded engine has 896 learned dimensions and reads sixteen languages. Shorter vectors are the beginning of the
    long one; longer ones carry the words of the text besides. Sparse vectors are lexical: `text_type` says which side
    of a search they are for. `instruct` is checked, counted once and not used.

    With `X-DashScope-Async: enable` and `input.url` in the place of the texts, the answer is a task that embeds each
    line of the file there.
    """
    if wants_task(request):
        return await create_task(request, EmbeddingBatch.path)
    at, texts = _texts(body.input)
    embedded = await embedding.embed(
        _caller(request),
        embedding.native_call(body.model, texts, body.parameters or EmbeddingParameters(), texts_at=at),
        request_id=request.request_id,
    )
    noting(request)(embedded.served_by)
    return await _json(_native_reply, embedded, request.request_id)


@compatible.post("/embeddings", summary="Embed texts, OpenAI style", response=CompatibleEmbeddingReply)
async def create_embeddings(request: HttpRequest, body: CompatibleEmbeddingBody) -> HttpResponse:
    """The same as the native operation, for the `openai` libraries: dense vectors, as numbers or as base64."""
    embedded = await embedding.embed(
        _caller(request),
        embedding.EmbeddingCall(
            model=body.model,
            texts=_no_numbers(body.input),
            texts_at="input",
            dimension=body.dimensions,
            dimension_at="dimensions",
        ),
        request_id=request.request_id,
    )
    noting(request)(embedded.served_by)
    return await _json(_compatible_reply, embedded, body)


@native.post("/rerank/text-rerank/text-rerank", summary="Rerank documents", response=RerankReply, exclude_none=True)
async def rerank_documents(request: HttpRequest, body: RerankBody) -> RerankReply:
    """Up to 500 documents by their relevance to a query; of each of these texts the first 4,000 tokens are read.

    Tokens are counted as query tokens x documents + tokens of the documents; more than 120,000 are refused.
    Scores lie between 0 and 1 and compare between calls.
    """
    _refuse_async(request)
    parameters = body.parameters or RerankParameters()
    documents = _plain(body.input.documents)
    reranked = await rerank.rerank(
        _caller(request),
        rerank.RerankCall(
            model=body.model,
            query=body.input.query,
            documents=documents,
            at="input.",
            top_n=parameters.top_n,
            instruct=parameters.instruct or "",
        ),
        request_id=request.request_id,
    )
    noting(request)(reranked.served_by)
    shown = documents if parameters.return_documents else None
    return RerankReply(
        output=RerankOutput(results=_items(reranked, shown)),
        usage=RetrievalUsage(total_tokens=reranked.total_tokens),
        request_id=request.request_id,
    )


@flat.post("/reranks", summary="Rerank documents, flat style", response=FlatRerankReply, exclude_none=True)
async def rerank_documents_flat(request: HttpRequest, body: FlatRerankBody) -> FlatRerankReply:
    """The same as the nested style, without its wrappers; every result carries its document."""
    documents = _plain(body.documents)
    reranked = await rerank.rerank(
        _caller(request),
        rerank.RerankCall(
            model=body.model,
            query=body.query,
            documents=documents,
            top_n=body.top_n,
            instruct=body.instruct or "",
        ),
        request_id=request.request_id,
    )
    noting(request)(reranked.served_by)
    return FlatRerankReply(
        id=request.request_id,
        model=body.model,
        results=_items(reranked, documents),
        usage=RetrievalUsage(total_tokens=reranked.total_tokens),
    )


@compatible.post(
    "/rerank", summary="Rerank documents, Jina and Cohere style", response=ListRerankReply, exclude_none=True
)
async def create_rerank(request: HttpRequest, body: ListRerankBody) -> ListRerankReply:
    """The same for clients of Jina and of Cohere; also at `/rerank`, `/v1/rerank` and `/v2/rerank`."""
    documents = _plain(body.documents)
    reranked = await rerank.rerank(
        _caller(request),
        rerank.RerankCall(model=body.model, query=body.query, documents=documents, top_n=body.top_n),
        request_id=request.request_id,
    )
    noting(request)(reranked.served_by)
    return ListRerankReply(
        id=request.request_id,
        model=body.model,
        results=_items(reranked, None if body.return_documents is False else documents),
        usage=ListRerankUsage(total_tokens=reranked.total_tokens, prompt_tokens=reranked.total_tokens),
    )


def _caller(request: HttpRequest) -> Caller:
    """Return the authenticated caller, whose key must have the scope `inference`.

    Raises:
        AccessDenied: if the key may not be used for inference.
    """
    caller: Caller = request.auth
    caller.require("inference")
    return caller


def _refuse_async(request: HttpRequest) -> None:
    """Refuse the header that asks for a task.

    Raises:
        AccessDenied: if a task was asked for, which these operations do not make.
    """
    if wants_task(request):
        raise AccessDenied("This model does not support asynchronous calls; leave X-DashScope-Async out.")


def _texts(given: EmbeddingInput) -> tuple[str, list[str]]:
    """The texts, and what the caller called them.

    Raises:
        InvalidParameter: if there are none, or two lists of them.
    """
    if (given.texts is None) == (given.contents is None):
        raise InvalidParameter("input needs texts: a text or an array of texts.", param="input.texts")
    at, texts = ("input.contents", given.contents) if given.texts is None else ("input.texts", given.texts)
    return at, [texts] if isinstance(texts, str) else _plain(texts or [])


def _plain(texts: Sequence[str | TextPart]) -> list[str]:
    return [text if isinstance(text, str) else text.text for text in texts]


def _no_numbers(given: str | Sequence[str] | Sequence[int] | Sequence[list[int]]) -> list[str]:
    """The texts, however they were given.

    Raises:
        InvalidParameter: if they come as token numbers.
    """
    texts = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(text, str) for text in texts):
        raise InvalidParameter(
            "input holds token numbers, which mean nothing to this model's vocabulary; send the text itself "
            "(with LangChain: check_embedding_ctx_length=False).",
            param="input",
        )
    return [str(text) for text in texts]


def _items(reranked: Reranked, documents: Sequence[str] | None) -> list[RerankItem]:
    return [
        RerankItem(
            index=result.index,
            relevance_score=result.score,
            document=None if documents is None else DocumentText(text=documents[result.index]),
        )
        for result in reranked.results
    ]


async def _json(reply: Any, *parts: object) -> HttpResponse:
    """Write `reply(*parts)` as JSON in a thread: ten long vectors take milliseconds to spell.

    Not in a lane: the next call is computed there meanwhile.
    """
    body = await asyncio.to_thread(lambda: json.dumps(reply(*parts), separators=(",", ":")))
    return HttpResponse(body, content_type="application/json")


def _native_reply(embedded: Embedded, request_id: str) -> dict[str, Any]:
    return {
        "status_code": 200,
        "request_id": request_id,
        "code": "",
        "message": "",
        "output": {"embeddings": native_items(embedded.answer, embedded.count)},
        "usage": {"total_tokens": embedded.total_tokens},
    }


def _compatible_reply(embedded: Embedded, body: CompatibleEmbeddingBody) -> dict[str, Any]:
    vectors = embedded.answer.dense
    assert vectors is not None
    written: list[Any] = (
        [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        if body.encoding_format == "base64"
        else numbers(vectors)
    )
    return {
        "id": formats.identifier("embd"),
        "object": "list",
        "data": [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(written)],
        "model": body.model,
        "usage": {"prompt_tokens": embedded.total_tokens, "total_tokens": embedded.total_tokens},
    }
