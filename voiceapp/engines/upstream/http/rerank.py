"""Rerank models of another service, with the native operation."""

from __future__ import annotations

from typing import Any

from voiceapp.engines.openai.rerank import scores_of
from voiceapp.engines.text_interfaces import Ranked, Ranking, RerankRequest
from voiceapp.engines.upstream.http.client import RERANK_PATH, UpstreamModel
from voiceapp.errors import EngineUnavailable

MAX_RESPONSE_BYTES = 16 * 1024 * 1024


class UpstreamReranker(UpstreamModel):
    """A `Reranker`. One per process and model."""

    async def rerank(self, request: RerankRequest) -> Ranking:
        found = await self._server.ask(RERANK_PATH, self._body(request), limit=MAX_RESPONSE_BYTES)
        try:
            scores = scores_of(found["output"]["results"])
            total = int((found.get("usage") or {}).get("total_tokens") or 0)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise EngineUnavailable("The service that runs this model sent something that is not a ranking.") from error
        if sorted(scores) != list(range(len(request.documents))):
            raise EngineUnavailable("The service that runs this model did not rank every document once.")
        results = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return Ranking([Ranked(index, score) for index, score in results], total or None)

    def _body(self, request: RerankRequest) -> dict[str, Any]:
        documents = [document.text for document in request.documents]
        parameters: dict[str, Any] = {"top_n": len(documents), "return_documents": False}
        if request.instruct:
            parameters["instruct"] = request.instruct
        return {
            "model": self._model,
            "input": {"query": request.query.text, "documents": documents},
            "parameters": parameters,
        }
