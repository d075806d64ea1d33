"""The cards of the embedded embedding models."""

from __future__ import annotations

from voiceapp.catalogue.cards import EmbeddingCapabilities, ModelCard

_ENGINES = "voiceapp.engines"


def _embedder(name: str, *dimensions: int, default: int, instruct: bool = False, alias: str = "") -> ModelCard:
    capabilities = EmbeddingCapabilities(frozenset(dimensions), default, has_sparse=True, has_instruct=instruct)
    provider = f"{_ENGINES}.embedded.embedder.EmbeddedEmbedder"
    aliases = (alias,) if alias else ()
    return ModelCard(name, "embedding", provider, aliases=aliases, runs_here=True, embedding=capabilities)


EMBEDDERS = (
    _embedder("text-embedding-v4", 2048, 1536, 1024, 768, 512, 256, 128, 64, default=1024, instruct=True),
    _embedder("text-embedding-v3", 1024, 768, 512, default=1024),
    _embedder("text-embedding-async-v2", 1536, default=1536, alias="text-embedding-async-v1"),
    _embedder(
        "text-embedding-3-small", 1536, 1024, 768, 512, 256, 128, 64, default=1536, alias="text-embedding-ada-002"
    ),
)
"""One engine under the names, and with the dimensions, that clients know."""
