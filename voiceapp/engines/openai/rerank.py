"""A rerank model behind a server with `/rerank`: llama.cpp, vLLM, LocalAI, Infinity (the shape of Jina and Cohere), and
Text Embeddings Inference, which names things differently.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from voiceapp.engines.openai.client import ServerProvider
from voiceapp.engines.text_interfaces import Ranked, Ranking, RerankRequest
from voiceapp.errors import EngineUnavailable

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
"""Some servers send every document back."""

Shape = Literal["documents", "texts"]


class OpenAIReranker(ServerProvider):
    """A `Reranker`."""

    title = "rerank server"
    settings = "RERANK"

    def __init__(self, *, shape: Shape = "documents", **about: Any) -> None:
        """`shape` is what the server calls the documents: `texts` for Text Embeddings Inference, `documents` for all
        others. For the rest see `ServerProvider`."""
        super().__init__(**about)
        self._shape = shape
        self._sends_logits = False
        """Some servers (llama.cpp) give raw scores; the first one outside [0, 1] gives them away."""

    async def rerank(self, request: RerankRequest) -> Ranking:
        found = await self._server.ask("/rerank", self._body(request), limit=MAX_RESPONSE_BYTES)
        try:
            scores = scores_of(found["results"] if isinstance(found, dict) else found)
            total = int((found.get("usage") or {}).get("total_tokens") or 0) if isinstance(found, dict) else 0
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise EngineUnavailable("The rerank server sent something that is not a ranking.") from error
        if sorted(scores) != list(range(len(request.documents))):
            raise EngineUnavailable("The rerank server did not rank every document once.")
        self._sends_logits |= any(not 0 <= score <= 1 for score in scores.values())
        results = [Ranked(index, self._relevance(score)) for index, score in scores.items()]
        return Ranking(sorted(results, key=lambda result: (-result.score, result.index)), total or None)

    def _body(self, request: RerankRequest) -> dict[str, Any]:
        documents = [document.text for document in request.documents]
        if self._shape == "texts":
            return {"query": request.query.text, "texts": documents, "truncate": True}
        body: dict[str, Any] = {
            "model": self._model,
            "query": request.query.text,
            "documents": documents,
            "top_n": len(documents),
        }
        if request.instruct:
            body["instruction"] = request.instruct
        return body

    def _relevance(self, score: float) -> float:
        if not self._sends_logits:
            return score
        return 1 / (1 + math.exp(-score)) if score >= 0 else 1 - 1 / (1 + math.exp(score))


def scores_of(results: list[dict[str, Any]]) -> dict[int, float]:
    """Score by index.

    Raises:
        KeyError: if a result lacks its index or score.
        TypeError: if `results` is not a list of objects.
        ValueError: if a score is not a number.
    """
    scores: dict[int, float] = {}
    for result in results:
        score = float(result["relevance_score"] if "relevance_score" in result else result["score"])
        if not math.isfinite(score) or result["index"] in scores:
            raise ValueError("not a ranking")
        scores[int(result["index"])] = score
    return scores
