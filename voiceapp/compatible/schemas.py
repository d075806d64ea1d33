"""Bodies of the OpenAI-compatible operations, as the wire has them."""

from __future__ import annotations

from typing import Any, Literal

from voiceapp.generation.schemas import Messages, Sampling
from voiceapp.http.schemas import CleanStr, Schema


class StreamOptions(Schema):
    include_usage: bool | None = None
    """One more chunk before `[DONE]`, with the usage and no choices."""


class CompletionBody(Sampling):
    model: CleanStr
    messages: Messages
    stream: bool | None = None
    stream_options: StreamOptions | None = None


class CompletedFunction(Schema):
    name: str
    arguments: str


class CompletedTool(Schema):
    id: str
    type: Literal["function"] = "function"
    function: CompletedFunction


class CompletedMessage(Schema):
    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[CompletedTool] | None = None


class CompletionChoice(Schema):
    index: int
    message: CompletedMessage
    logprobs: dict[str, Any] | None = None
    finish_reason: str
    """`stop`, `length` or `tool_calls`."""


class CompletionUsage(Schema):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int] | None = None
    completion_tokens_details: dict[str, int] | None = None


class Completion(Schema):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    """Unix seconds."""
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage


class ModelCapabilities(Schema):
    """Capabilities of a model; those that do not concern its kind are left out."""

    images: bool | None = None
    """Chat: messages may carry images."""
    tools: bool | None = None
    """Chat: it calls functions."""
    response_format: bool | None = None
    """Chat: it follows a JSON schema."""
    instructions: bool | None = None
    """Chat: it follows instructions. Embedding: it is told the purpose of the search."""
    dimensions: list[int] | None = None
    """Embedding: lengths of vectors to choose from; left out where only the other server knows them."""
    default_dimension: int | None = None
    """Embedding: the length when none is chosen."""
    sparse: bool | None = None
    """Embedding: it makes sparse vectors."""
    languages: list[str] | None = None
    """Recognition: ISO 639-1 codes; left out where they are not known."""
    timestamp_granularities: list[str] | None = None
    """Recognition: granularities of timestamps. Those of single words are not known."""
    transports: list[str] | None = None
    """Conversations: `aoq`, `webrtc`, `websocket`, the preferred transport first."""
    responds: bool | None = None
    """Conversations: false for a name under which a session only transcribes."""
    input_sample_rate: int | None = None
    """Conversations: sample rate of audio for which none is stated, in hertz."""


class ModelEntry(Schema):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    kind: str
    """`chat`, `embedding`, `rerank`, `asr`, `tts`, `realtime`, `image` or `video`."""
    serves: str
    """The model's own name, where `id` is an alias; else the same."""
    runs_here: bool
    """Its work is done by this server itself, not by another one."""
    privacy: Literal["nothing", "words", "sound"]
    """Data that other servers may get, also where another model stands in: `nothing`; `words`, text and
    the pictures with it; `sound`, the caller's voice."""
    capabilities: ModelCapabilities


class ModelList(Schema):
    object: Literal["list"] = "list"
    data: list[ModelEntry]
