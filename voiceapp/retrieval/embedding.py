"""One call of an embedding model, whichever style it was asked in: checked, counted, charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import charge
from voiceapp.catalogue.cards import EmbeddingCapabilities
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.models import tokens
from voiceapp.engines.models.providers import provider_of
from voiceapp.engines.models.tokens import Counted
from voiceapp.engines.text_interfaces import (
    EmbeddingRequest,
    EmbeddingResult,
    TextEmbedder,
    TextType,
)
from voiceapp.errors import InvalidParameter
from voiceapp.retrieval.schemas import EmbeddingParameters

# Interface specification, Limits.
MAX_TEXTS = 10
MAX_TEXT_TOKENS = 8_192


@dataclass(frozen=True, slots=True)
class EmbeddingCall:
    """A call of an embedding model, read from the request of either style."""

    model: str
    texts: Sequence[str]
    texts_at: str
    """Name of the texts in the request's style; for messages."""
    dimension: int | None = None
    dimension_at: str = "parameters.dimension"
    text_type: TextType = "document"
    dense: bool = True
    sparse: bool = False
    instruct: str = ""


@dataclass(frozen=True, slots=True)
class Embedded:
    answer: EmbeddingResult
    count: int
    total_tokens: int
    served_by: str
    """`ModelCard.origin` of the model that gave the vectors."""


def native_call(model: str, texts: Sequence[str], how: EmbeddingParameters, *, texts_at: str) -> EmbeddingCall:
    """The call for vectors of `texts`, out of the words of the native style."""
    kinds = (how.output_type or "dense").split("&")
    return EmbeddingCall(
        model=model,
        texts=texts,
        texts_at=texts_at,
        dimension=how.dimension,
        text_type=how.text_type or "document",
        dense="dense" in kinds,
        sparse="sparse" in kinds,
        instruct=how.instruct or "",
    )


async def check(call: EmbeddingCall) -> None:
    """Check what can be said of a call whose texts are not known yet.

    Raises:
        InvalidParameter: naming the value and the limit.
        ModelNotFound: if the model does not exist.
    """
    _check_parameters(call, catalogue().get(call.model, "embedding").embedding)
    (instruct,) = await tokens.count([call.instruct], limit=MAX_TEXT_TOKENS)
    _check_lengths(call, (), instruct)


async def embed(caller: Caller, call: EmbeddingCall, *, request_id: str) -> Embedded:
    """The vectors of the texts, and the tokens that they cost.

    Raises:
        InvalidParameter: naming the text or the value, and the limit. A text that is too long is refused, not cut:
            the specification has reranking cut and does not say so of embedding.
        ModelNotFound: if the model does not exist.
        AccessDenied: if the key may not use the model.
        Throttled: if a rate, quota or budget is used up.
        EngineError: if the engine fails.
    """
    card = catalogue().get(call.model, "embedding")
    engine: TextEmbedder = provider_of(card)
    _check_texts(call)
    _check_parameters(call, card.embedding)
    *texts, instruct = await tokens.count([*call.texts, call.instruct], limit=MAX_TEXT_TOKENS)
    _check_lengths(call, texts, instruct)
    # The instruct is read once with the request, and counted once.
    total = sum(text.count for text in texts) + instruct.count
    async with charge(
        caller,
        operation="embedding",
        model=card.name,
        family="embedding",
        request_id=request_id,
        input_tokens=total,
    ) as meter:
        answer = await engine.embed(
            EmbeddingRequest(
                texts=tuple(texts),
                dimension=call.dimension or card.embedding.default_dimension,
                text_type=call.text_type,
                dense=call.dense,
                sparse=call.sparse,
                instruct=call.instruct,
            )
        )
        total = total if answer.total_tokens is None else answer.total_tokens
        meter.used(input_tokens=total)
    return Embedded(answer, len(texts), total, answer.served_by or card.origin)


def _check_texts(call: EmbeddingCall) -> None:
    """Check the texts without reading them."""
    if not call.texts:
        raise InvalidParameter(f"{call.texts_at} holds no text.", param=call.texts_at)
    if len(call.texts) > MAX_TEXTS:
        raise InvalidParameter(
            f"The batch size must not be larger than {MAX_TEXTS}; {call.texts_at} has {len(call.texts)} texts.",
            param=call.texts_at,
        )


def _check_parameters(call: EmbeddingCall, model: EmbeddingCapabilities) -> None:
    if call.dimension is not None and model.dimensions is not None and call.dimension not in model.dimensions:
        lengths = ", ".join(map(str, sorted(model.dimensions, reverse=True)))
        raise InvalidParameter(
            f"{call.dimension_at} is {call.dimension}; {call.model} has {lengths}.", param=call.dimension_at
        )
    if call.dimension is not None and call.dimension < 1:
        raise InvalidParameter(f"{call.dimension_at} must be at least 1.", param=call.dimension_at)
    if call.sparse and not model.has_sparse:
        raise InvalidParameter(
            f"parameters.output_type: {call.model} is served by an engine without sparse vectors; only dense is here.",
            param="parameters.output_type",
        )
    if call.instruct and not model.has_instruct:
        raise InvalidParameter(
            f"parameters.instruct: {call.model} takes no instruct; text-embedding-v4 does.",
            param="parameters.instruct",
        )


def _check_lengths(call: EmbeddingCall, texts: Sequence[Counted], instruct: Counted) -> None:
    for number, text in enumerate(texts):
        if text.was_cut:
            raise InvalidParameter(
                f"{call.texts_at}[{number}] is longer than {MAX_TEXT_TOKENS} tokens, the most that a text may have.",
                param=f"{call.texts_at}.{number}",
            )
        if not text.count:
            raise InvalidParameter(
                f"{call.texts_at}[{number}] is empty; every text needs at least 1 token.",
                param=f"{call.texts_at}.{number}",
            )
    if instruct.was_cut:
        raise InvalidParameter(
            f"parameters.instruct is longer than {MAX_TEXT_TOKENS} tokens.", param="parameters.instruct"
        )
