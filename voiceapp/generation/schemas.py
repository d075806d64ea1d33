"""Bodies of the native chat operations, and the parts of a message that the OpenAI-compatible ones share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.protocol.tools import MAX_TOOLS
from voiceapp.protocol.wire.json_schemas import check_schema, check_tools

MAX_MESSAGES = 2_000
"""Messages of one conversation: two megabytes hold far more, and reading those would hold up everybody."""

Count = Annotated[int | None, Field(ge=1, le=4)]
Tokens = Annotated[int | None, Field(ge=1)]
Seed = Annotated[int | None, Field(ge=-(2**63), le=2**63 - 1)]
TopP = Annotated[float | None, Field(gt=0, le=1)]
Penalty = Annotated[float | None, Field(ge=-2, le=2)]
TopLogprobs = Annotated[int | None, Field(ge=0, le=20)]
Stop = CleanStr | Annotated[list[CleanStr | int | list[int]], Field(max_length=16)]
"""A text, or several of them, or numbers of tokens."""


def _bounded(schema: dict[str, Any]) -> dict[str, Any]:
    check_schema(schema)
    return schema


JsonSchema = Annotated[dict[str, Any], AfterValidator(_bounded)]
"""One that an engine can compile in time."""


class ImageAddress(Schema):
    url: CleanStr


class MessagePart(Schema):
    """A piece of a message: `{"text": …}` or `{"image": …}`, or the same as OpenAI writes it, with a `type`."""

    type: CleanStr | None = None
    text: CleanStr | None = None
    image: CleanStr | None = None
    """Address (http, https) or data (`data:image/png;base64,…`) of an image."""
    image_url: ImageAddress | CleanStr | None = None
    """The same, as OpenAI writes it."""
    audio: Any = None
    """Refused: no chat model here listens."""
    input_audio: Any = None
    """Refused: no chat model here listens."""
    video: Any = None
    """Refused: no chat model here watches."""


class CalledFunction(Schema):
    name: CleanStr
    arguments: CleanStr = ""
    """JSON text, as the model wrote it."""


class CalledTool(Schema):
    id: CleanStr | None = None
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessageBody(Schema):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: CleanStr | list[MessagePart] | None = None
    tool_calls: list[CalledTool] | None = None
    """Functions that the assistant called."""
    tool_call_id: CleanStr | None = None
    """Identifier of the call that a tool's message responds to."""


Messages = Annotated[list[ChatMessageBody], Field(max_length=MAX_MESSAGES)]


class Exchange(Schema):
    """One question and its answer, in the older style of input."""

    user: CleanStr = ""
    bot: CleanStr = ""


class Function(Schema):
    model_config = ConfigDict(extra="allow")

    name: CleanStr = Field(min_length=1, max_length=128)
    description: CleanStr | None = None
    parameters: dict[str, Any] | None = None
    """JSON schema of the arguments."""


class McpTool(Schema):
    """Fields of a tool of the type `mcp`: a server that the operator lists, whose tools are called here."""

    server_label: CleanStr | None = None
    """Name of the server in the operator's list."""
    server_url: CleanStr | None = None
    """Its address there; may be left out."""
    allowed_tools: Any = None
    """Names of the only tools that may be called."""
    require_approval: Any = None
    """`never`, `always`, which is usual, or `{"never": {"tool_names": […]}}`; the operator may want more approved."""
    authorization: Any = None
    """Refused: the operator has the keys of servers."""
    headers: Any = None
    """Refused: the operator sets them."""
    connector_id: Any = None
    """Refused: the operator lists the servers."""


class Tool(McpTool):
    type: Literal["function", "mcp"] = "function"
    function: Function | None = None
    """With the type `function`."""


def _bounded_tools(tools: list[Tool]) -> list[Tool]:
    check_tools(tool.function.parameters or {} for tool in tools if tool.function)
    return tools


Tools = Annotated[list[Tool], Field(max_length=MAX_TOOLS), AfterValidator(_bounded_tools)]


class ChosenFunction(Schema):
    name: CleanStr


class ChosenTool(Schema):
    type: Literal["function"] = "function"
    function: ChosenFunction


ToolChoice = Literal["none", "auto", "required"] | ChosenTool


def _with_bounded_schema(named: dict[str, Any]) -> dict[str, Any]:
    schema = named.get("schema")
    if not isinstance(schema, dict | None):
        raise ValueError("its schema must be an object")
    check_schema(schema or {})
    return named


class ResponseFormat(Schema):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: Annotated[dict[str, Any], AfterValidator(_with_bounded_schema)] | None = None
    """Passed on to engines that follow schemas."""


class GenerationInput(Schema):
    messages: Messages | None = None
    """The conversation so far, the newest message last."""
    prompt: CleanStr | None = None
    """A question, in the older style; with `messages`, one more message of the user."""
    history: Annotated[list[Exchange], Field(max_length=MAX_MESSAGES)] | None = None
    """Exchanges before `prompt`."""


class Sampling(Schema):
    """Sampling parameters that both styles call by the same names."""

    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    top_p: TopP = None
    top_k: Annotated[int | None, Field(ge=0)] = None
    max_tokens: Tokens = None
    max_completion_tokens: Tokens = None
    """Another name of `max_tokens`."""
    n: Count = None
    """Number of replies."""
    seed: Seed = None
    stop: Stop | None = None
    """The answer ends before any of these; they are left out."""
    repetition_penalty: Annotated[float | None, Field(gt=0)] = None
    presence_penalty: Penalty = None
    frequency_penalty: Penalty = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs = None
    logit_bias: dict[str, float] | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    enable_thinking: bool | None = None
    """Passed on to engines that reason."""
    thinking_budget: Annotated[int | None, Field(ge=0)] = None
    reasoning_effort: CleanStr | None = None
    enable_search: bool | None = None
    """Passed on to engines that search the web; others answer without."""
    search_options: dict[str, Any] | None = None


class GenerationParameters(Sampling):
    result_format: Literal["text", "message"] | None = None
    """`text` answers in `output.text`, `message` in `output.choices`; without it both are filled, in incremental
    frames only the text."""
    incremental_output: bool | None = None
    """While streaming: frames carry what is new, instead of the whole text so far."""
    temperature: Annotated[float | None, Field(ge=0, lt=2)] = None


class GenerationBody(Schema):
    model: CleanStr
    input: GenerationInput
    parameters: GenerationParameters | None = None


class ReplyPart(Schema):
    text: str


class ReplyFunction(Schema):
    name: str
    arguments: str


class ReplyTool(Schema):
    index: int
    id: str
    type: Literal["function"] = "function"
    function: ReplyFunction


class ReplyMessage(Schema):
    role: Literal["assistant"] = "assistant"
    content: str | list[ReplyPart]
    """On the multimodal path a list of parts."""
    reasoning_content: str | None = None
    tool_calls: list[ReplyTool] | None = None


class ReplyChoice(Schema):
    index: int
    finish_reason: str
    """`stop`, `length` or `tool_calls`; while streaming the text `null` until the end."""
    message: ReplyMessage
    logprobs: dict[str, Any] | None = None


class ReplyOutput(Schema):
    text: str | None = None
    finish_reason: str | None = None
    choices: list[ReplyChoice] | None = None


class ReplyUsage(Schema):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int] | None = None
    output_tokens_details: dict[str, int] | None = None
    image_tokens: int | None = None
    video_tokens: int | None = None
    audio_tokens: int | None = None


class GenerationReply(Schema):
    """`status_code`, `code` and `message` are what client libraries show; on success the last two are empty."""

    status_code: int = 200
    request_id: str
    code: str = ""
    message: str = ""
    output: ReplyOutput
    usage: ReplyUsage
