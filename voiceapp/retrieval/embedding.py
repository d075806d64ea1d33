"""One call of an embedding model, whichever style it was asked in: checked, counted, charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.metering import charge
from voiceapp.engines import tokens
from voiceapp.engines.catalogue import catalogue
from voiceapp.engines.text_interfaces import (
    EmbeddingAnswer,
    EmbeddingCapabilities,
    EmbeddingRequest,
    TextEmbedder,
    TextType,
)
from voiceapp.engines.tokens import Counted
from voiceapp.errors import InvalidParameter
from voiceapp.retrieval.schemas import EmbeddingParameters

# Interface specification, Limits.
MAX_TEXTS = 10
MAX_TEXT_TOKENS = 8_192


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for, in the words of either style."""

    model: str
    texts: Sequence[str]
    texts_at: str
    """How the style calls the texts; for messages."""
    dimension: int | None = None
    dimension_at: str = "parameters.dimension"
    text_type: TextType = "document"
    dense: bool = True
    sparse: bool = False
    instruct: str = ""


@dataclass(frozen=True, slots=True)
class Embedded:
    answer: EmbeddingAnswer
    count: int
    """Of texts."""
    total_tokens: int


def native_wish(model: str, texts: Sequence[str], how: EmbeddingParameters, *, texts_at: str) -> Wish:
    """The wish for vectors of `texts`, out of the words of the native style."""
    kinds = (how.output_type or "dense").split("&")
    return Wish(
        model=model,
        texts=texts,
        texts_at=texts_at,
        dimension=how.dimension,
        text_type=how.text_type or "document",
        dense="dense" in kinds,
        sparse="sparse" in kinds,
        instruct=how.instruct or "",
    )


async def check(wish: Wish) -> None:
    """What can be said of a wish whose texts are not known yet.

    Raises:
        InvalidParameter, ModelNotFound: as `embed`.
    """
    engine: TextEmbedder = catalogue().provider(catalogue().get(wish.model, "embedding"))
    _check_parameters(wish, engine.capabilities)
    (instruct,) = await tokens.count([wish.instruct], limit=MAX_TEXT_TOKENS)
    _check_lengths(wish, (), instruct)


async def embed(caller: Caller, wish: Wish, *, request_id: str) -> Embedded:
    """
    Raises:
        InvalidParameter: naming the text or the value, and the limit. A text that is too long is refused, not cut:
            the specification has reranking cut and does not say so of embedding.
        ModelNotFound, AccessDenied, Throttled, EngineError: as their classes say.
    """
    card = catalogue().get(wish.model, "embedding")
    engine: TextEmbedder = catalogue().provider(card)
    _check_texts(wish)
    _check_parameters(wish, engine.capabilities)
    *texts, instruct = await tokens.count([*wish.texts, wish.instruct], limit=MAX_TEXT_TOKENS)
    _check_lengths(wish, texts, instruct)
    # The instruct is read once with the request, and counted once.
    total = sum(text.count for text in texts) + instruct.count
    async with charge(
        caller,
        operation="embedding",
        model=card.name,
        family="embedding",
        reserve_tokens=total,
        request_id=request_id,
    ) as meter:
        answer = await engine.embed(
            EmbeddingRequest(
                texts=tuple(texts),
                dimension=wish.dimension or engine.capabilities.default_dimension,
                text_type=wish.text_type,
                dense=wish.dense,
                sparse=wish.sparse,
                instruct=wish.instruct,
            )
        )
        total = total if answer.total_tokens is None else answer.total_tokens
        meter.used(input_tokens=total)
    return Embedded(answer, len(texts), total)


def _check_texts(wish: Wish) -> None:
    """What can be said without reading them."""
    if not wish.texts:
        raise InvalidParameter(f"{wish.texts_at} holds no text.", param=wish.texts_at)
    if len(wish.texts) > MAX_TEXTS:
        raise InvalidParameter(
            f"The batch size must not be larger than {MAX_TEXTS}; {wish.texts_at} has {len(wish.texts)} texts.",
            param=wish.texts_at,
        )


def _check_parameters(wish: Wish, model: EmbeddingCapabilities) -> None:
    if wish.dimension is not None and model.dimensions is not None and wish.dimension not in model.dimensions:
        lengths = ", ".join(map(str, sorted(model.dimensions, reverse=True)))
        raise InvalidParameter(
            f"{wish.dimension_at} is {wish.dimension}; {wish.model} has {lengths}.", param=wish.dimension_at
        )
    if wish.dimension is not None and wish.dimension < 1:
        raise InvalidParameter(f"{wish.dimension_at} must be at least 1.", param=wish.dimension_at)
    if wish.sparse and not model.has_sparse:
        raise InvalidParameter(
            f"parameters.output_type: {wish.model} is served by an engine without sparse vectors; only dense is here.",
            param="parameters.output_type",
        )
    if wish.instruct and not model.has_instruct:
        raise InvalidParameter(
            f"parameters.instruct: {wish.model} takes no instruct; text-embedding-v4 does.",
            param="parameters.instruct",
        )


def _check_lengths(wish: Wish, texts: Sequence[Counted], instruct: Counted) -> None:
    for number, text in enumerate(texts):
        if text.was_cut:
            raise InvalidParameter(
                f"{wish.texts_at}[{number}] is longer than {MAX_TEXT_TOKENS} tokens, the most that a text may have.",
                param=f"{wish.texts_at}.{number}",
            )
        if not text.count:
            raise InvalidParameter(
                f"{wish.texts_at}[{number}] is empty; every text needs at least 1 token.",
                param=f"{wish.texts_at}.{number}",
            )
    if instruct.was_cut:
        raise InvalidParameter(
            f"parameters.instruct is longer than {MAX_TEXT_TOKENS} tokens.", param="parameters.instruct"
        )
