"""Interfaces of engines for embedding and reranking. A provider implements one of these in one file.

Requests are in order when they get here: the doors count and cut texts (`engines/models/tokens.py`) and check values
against the capabilities on the model's card. Cancelling the awaiting task ends the work after the batch in progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.models.tokens import Counted

Vector = NDArray[np.float32]
TextType = Literal["query", "document"]


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    texts: tuple[Counted, ...]
    dimension: int | None = None
    """None: the model's own."""
    text_type: TextType = "document"
    dense: bool = True
    sparse: bool = False
    instruct: str = ""
    """Purpose of the search, in a sentence; engines that do not follow instructions ignore it."""


@dataclass(frozen=True, slots=True)
class SparseEntry:
    index: int
    """Index of the token in the model's vocabulary."""
    value: float
    token: str


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    dense: NDArray[np.float32] | None
    """Unit vectors, shape [texts, dimension]."""
    sparse: tuple[tuple[SparseEntry, ...], ...] | None = None
    total_tokens: int | None = None
    """As another server counted them; None: those of the request stand."""
    served_by: str = ""
    """`ModelCard.origin` of the model that did the work; empty where no model has fallbacks."""


class TextEmbedder(Protocol):
    async def embed(self, request: EmbeddingRequest) -> EmbeddingResult:
        """Vectors in the order of the texts.

        Raises:
            EngineUnavailable: if the engine cannot serve now.
            EngineTimeout: if the engine takes too long.
            EngineRefused: if the engine does not accept the request.
        """


@dataclass(frozen=True, slots=True)
class RerankRequest:
    query: Counted
    documents: tuple[Counted, ...]
    instruct: str = ""


@dataclass(frozen=True, slots=True)
class Ranked:
    index: int
    """Index of the document in the request."""
    score: float
    """Relevance in [0, 1], on a scale that is the same in every call."""


@dataclass(frozen=True, slots=True)
class Ranking:
    results: Sequence[Ranked]
    """Every document once; scores never rise."""
    total_tokens: int | None = None
    """As another server counted them; None: those of the request stand."""
    served_by: str = ""
    """`ModelCard.origin` of the model that did the work; empty where no model has fallbacks."""


class Reranker(Protocol):
    async def rerank(self, request: RerankRequest) -> Ranking:
        """The documents by relevance to the query.

        Raises:
            EngineUnavailable: if the engine cannot serve now.
            EngineTimeout: if the engine takes too long.
            EngineRefused: if the engine does not accept the request.
        """
