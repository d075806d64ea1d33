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


class ModelEntry(Schema):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    kind: str
    """`chat`, `embedding`, `rerank`, `asr`, `tts`, `realtime`, `image` or `video`."""
    serves: str
    """The model's own name, where `id` is an alias; else the same."""


class ModelList(Schema):
    object: Literal["list"] = "list"
    data: list[ModelEntry]
