"""Bodies of the embedding and reranking operations, as the wire has them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from voiceapp.http.schemas import CleanStr, Schema

Texts = CleanStr | list[CleanStr]
TopN = Annotated[int | None, Field(ge=1)]


class TextPart(Schema):
    """A text in the form that multimodal models take."""

    text: CleanStr


class RetrievalUsage(Schema):
    total_tokens: int


class EmbeddingInput(Schema):
    texts: Texts | None = None
    """One text or up to 10, each of up to 8,192 tokens."""
    contents: Annotated[CleanStr | list[CleanStr | TextPart] | None, Field(description="Another name of `texts`.")] = (
        None
    )


class EmbeddingParameters(Schema):
    text_type: Literal["query", "document"] | None = None
    dimension: int | None = None
    output_type: Literal["dense", "sparse", "dense&sparse"] | None = None
    instruct: CleanStr | None = None
    """Purpose of the search, in a sentence; English is best."""


class EmbeddingBody(Schema):
    model: CleanStr
    input: EmbeddingInput
    parameters: EmbeddingParameters | None = None


class SparseValue(Schema):
    index: int
    value: float
    token: str


class EmbeddingItem(Schema):
    embedding: list[float]
    """Empty where only a sparse vector was asked for."""
    text_index: int
    sparse_embedding: list[SparseValue] | None = None


class EmbeddingOutput(Schema):
    embeddings: list[EmbeddingItem]


class EmbeddingReply(Schema):
    """`status_code`, `code` and `message` are what client libraries show; on success the last two are empty."""

    status_code: int = 200
    request_id: str
    code: str = ""
    message: str = ""
    output: EmbeddingOutput
    usage: RetrievalUsage


class CompatibleEmbeddingBody(Schema):
    model: CleanStr
    input: CleanStr | list[CleanStr] | list[int] | list[list[int]]
    """One text or up to 10. Lists of token numbers are refused: send the text."""
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = None


class CompatibleEmbeddingItem(Schema):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str
    """With `base64`: the bytes of little-endian 32-bit floats."""


class CompatibleUsage(Schema):
    prompt_tokens: int
    total_tokens: int


class CompatibleEmbeddingReply(Schema):
    id: str
    object: Literal["list"] = "list"
    data: list[CompatibleEmbeddingItem]
    model: str
    usage: CompatibleUsage


Documents = list[CleanStr | TextPart]


class RerankInput(Schema):
    query: CleanStr
    documents: Documents
    """Up to 500; of each the first 4,000 tokens are read."""


class RerankParameters(Schema):
    top_n: TopN = None
    """Number of documents in the response; all without it."""
    return_documents: bool | None = None
    instruct: CleanStr | None = None
    """Purpose of the search, in a sentence; English is best."""


class RerankBody(Schema):
    model: CleanStr
    input: RerankInput
    parameters: RerankParameters | None = None


class DocumentText(Schema):
    text: str


class RerankItem(Schema):
    index: int
    relevance_score: float
    document: DocumentText | None = None


class RerankOutput(Schema):
    results: list[RerankItem]


class RerankReply(Schema):
    output: RerankOutput
    usage: RetrievalUsage
    request_id: str


class FlatRerankBody(Schema):
    model: CleanStr
    query: CleanStr
    documents: Documents
    """Up to 500; of each the first 4,000 tokens are read."""
    top_n: TopN = None
    """Number of documents in the response; all without it."""
    instruct: CleanStr | None = None
    """Purpose of the search, in a sentence; English is best."""


class FlatRerankReply(Schema):
    id: str
    object: Literal["list"] = "list"
    model: str
    results: list[RerankItem]
    usage: RetrievalUsage


class ListRerankBody(Schema):
    model: CleanStr
    query: CleanStr
    documents: Documents
    """Up to 500; of each the first 4,000 tokens are read."""
    top_n: TopN = None
    """Number of documents in the response; all without it."""
    return_documents: bool | None = None
    """`false` leaves the documents out of the results."""


class ListRerankUsage(Schema):
    total_tokens: int
    prompt_tokens: int


class BilledUnits(Schema):
    search_units: int = 1


class ListRerankMeta(Schema):
    """Metadata for clients of Cohere."""

    billed_units: BilledUnits = BilledUnits()
    api_version: dict[str, str] = {"version": "1"}  # noqa: RUF012 - pydantic copies it


class ListRerankReply(Schema):
    id: str
    object: Literal["list"] = "list"
    model: str
    results: list[RerankItem]
    usage: ListRerankUsage
    """Usage for clients of Jina."""
    meta: ListRerankMeta = ListRerankMeta()
