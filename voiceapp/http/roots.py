"""Paths under which programs call, and addresses that mean the same."""

from __future__ import annotations

API_ROOTS = ("/api/", "/compatible-api/", "/compatible-mode/", "/openapi.json")
"""Any version of it, so that a wrong one is refused in JSON as well."""
COMPATIBLE_ROOT = "/compatible-mode/"
FLAT_ROOT = "/compatible-api/"
AGENT_ROOTS = ("/api/v1/agentsvc/", "/api/v1/agentstudio/")
SHORT_ROOT = "/v1/"
"""Path that OpenAI's libraries add to a host: the compatible root."""
RERANK = "/compatible-mode/v1/rerank"
ALIASES = {"/rerank": RERANK, "/rerank/": RERANK, "/v2/rerank": RERANK, "/v2/rerank/": RERANK}
"""Paths of reranking in the libraries of Jina and Cohere."""


def canonical(path: str) -> str:
    """The address under which an operation is registered: `/v1/models` → `/compatible-mode/v1/models`."""
    if path.startswith(SHORT_ROOT):
        return COMPATIBLE_ROOT + path[1:]
    return ALIASES.get(path, path)
