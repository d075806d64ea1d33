"""One call of a rerank model, whichever style it was asked in: cut, counted, charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import charge
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.models import tokens
from voiceapp.engines.models.providers import provider_of
from voiceapp.engines.models.tokens import Counted
from voiceapp.engines.text_interfaces import Ranked, Reranker, RerankRequest
from voiceapp.errors import InvalidParameter

# Interface specification, Limits.
MAX_DOCUMENTS = 500
MAX_ITEM_TOKENS = 4_000
MAX_REQUEST_TOKENS = 120_000


@dataclass(frozen=True, slots=True)
class RerankCall:
    """A call of a rerank model, read from the request of either style."""

    model: str
    query: str
    documents: Sequence[str]
    at: str = ""
    """Prefix of `query` and `documents` in the style's names: "input." or ""."""
    top_n: int | None = None
    instruct: str = ""


@dataclass(frozen=True, slots=True)
class Reranked:
    results: Sequence[Ranked]
    total_tokens: int
    served_by: str
    """`ModelCard.origin` of the model that ranked."""


async def rerank(caller: Caller, call: RerankCall, *, request_id: str) -> Reranked:
    """The `top_n` documents that the query is best served with, best first.

    Raises:
        InvalidParameter: naming the value, and the limit with what was counted against it.
        ModelNotFound: if the model does not exist.
        AccessDenied: if the key may not use the model.
        Throttled: if a rate, quota or budget is used up.
        EngineError: if the engine fails.
    """
    card = catalogue().get(call.model, "rerank")
    engine: Reranker = provider_of(card)
    _check(call)
    # Interface specification, Limits: longer content is truncated.
    query, *documents = await tokens.count([call.query, *call.documents], limit=MAX_ITEM_TOKENS)
    if not query.count:
        raise InvalidParameter(f"{call.at}query is empty.", param=f"{call.at}query")
    total = _request_tokens(query, documents, call)
    async with charge(
        caller, operation="rerank", model=card.name, family="rerank", request_id=request_id, input_tokens=total
    ) as meter:
        ranking = await engine.rerank(RerankRequest(query, tuple(documents), instruct=call.instruct))
        total = total if ranking.total_tokens is None else ranking.total_tokens
        meter.used(input_tokens=total)
    return Reranked(ranking.results[: call.top_n], total, ranking.served_by or card.origin)


def _check(call: RerankCall) -> None:
    """Check the call without reading the texts."""
    if not call.documents:
        raise InvalidParameter(f"{call.at}documents holds no document.", param=f"{call.at}documents")
    if len(call.documents) > MAX_DOCUMENTS:
        raise InvalidParameter(
            f"{call.at}documents has {len(call.documents)} documents; at most {MAX_DOCUMENTS} are taken.",
            param=f"{call.at}documents",
        )


def _request_tokens(query: Counted, documents: Sequence[Counted], call: RerankCall) -> int:
    """Tokens of the query for each document, and of the documents (specification, Limits).

    Raises:
        InvalidParameter: if they are too many.
    """
    read = sum(document.count for document in documents)
    total = query.count * len(documents) + read
    if total > MAX_REQUEST_TOKENS:
        raise InvalidParameter(
            f"The request has {total} tokens (query {query.count} x {len(documents)} documents + {read} of the "
            f"documents); at most {MAX_REQUEST_TOKENS} are taken.",
            param=f"{call.at}documents",
        )
    return total
