"""Bodies of `/responses`, as the wire has them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from voiceapp.generation.schemas import MAX_MESSAGES, JsonSchema, McpTool, MessagePart, TopLogprobs, TopP
from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.protocol.tools import MAX_TOOLS
from voiceapp.protocol.wire.json_schemas import check_tools

MAX_METADATA = 16
"""Pairs of one request, as OpenAI bounds them."""


class InputItem(Schema):
    """A message (`role` and `content`), a call of a function, or its output; what a response held in `output` can be
    sent back as it is."""

    type: CleanStr | None = None
    """`message`, which is usual, `function_call` or `function_call_output`; about tools of MCP servers `mcp_call`,
    `mcp_approval_request`, `mcp_approval_response` or `mcp_list_tools`. `reasoning` is passed over."""
    id: CleanStr | None = None
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: CleanStr | list[MessagePart] | None = None
    """Content of a message: a text, or parts of the types `input_text`, `output_text` and `input_image`."""
    call_id: CleanStr | None = None
    """Identifier that joins a call and its output."""
    name: CleanStr | None = None
    """Name of the called function."""
    arguments: CleanStr | None = None
    """Arguments of a call: JSON text, as the model wrote it."""
    output: CleanStr | list[MessagePart] | None = None
    """Output of the function or tool."""
    server_label: CleanStr | None = None
    """MCP server of the tool."""
    error: Any = None
    """The error of a tool that failed."""
    approval_request_id: CleanStr | None = None
    """Approval request that is replied to, or that led to the call."""
    approve: bool | None = None
    """True if the call may be made."""


class FunctionTool(McpTool):
    type: CleanStr = "function"
    """`function`, or `mcp` for a server that the operator lists; other tools are refused."""
    name: Annotated[CleanStr, Field(min_length=1, max_length=128)] | None = None
    description: CleanStr | None = None
    parameters: dict[str, Any] | None = None
    """JSON schema of the arguments."""
    strict: bool | None = None


def _bounded_tools(tools: list[FunctionTool]) -> list[FunctionTool]:
    check_tools(tool.parameters or {} for tool in tools)
    return tools


FunctionTools = Annotated[list[FunctionTool], Field(max_length=MAX_TOOLS), AfterValidator(_bounded_tools)]


class NamedTool(Schema):
    type: Literal["function"]
    name: CleanStr


class TextFormat(Schema):
    type: Literal["text", "json_object", "json_schema"]
    name: CleanStr | None = None
    description: CleanStr | None = None
    json_schema: Annotated[JsonSchema | None, Field(alias="schema")] = None
    """With the type `json_schema`: what the answer has to follow."""
    strict: bool | None = None


class TextSettings(Schema):
    format: TextFormat | None = None
    """Plain text, JSON, or JSON that follows a schema."""


class Reasoning(Schema):
    effort: CleanStr | None = None
    """Passed on to engines that reason."""


class ResponseBody(Schema):
    model: CleanStr = ""
    """Needed unless `prompt` names an agent."""
    input: CleanStr | Annotated[list[InputItem], Field(max_length=MAX_MESSAGES)]
    """A question, or the whole conversation so far, the newest item last."""
    instructions: CleanStr | None = None
    """System message before the conversation."""
    stream: bool | None = None
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    top_p: TopP = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    tools: FunctionTools | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    text: TextSettings | None = None
    reasoning: Reasoning | None = None
    include: list[CleanStr] | None = None
    """`message.output_text.logprobs` adds the probabilities of tokens; others change nothing."""
    top_logprobs: TopLogprobs = None
    truncation: Literal["auto", "disabled"] | None = None
    metadata: Annotated[dict[CleanStr, CleanStr] | None, Field(max_length=MAX_METADATA)] = None
    """Told back as it is."""
    store: bool | None = None
    """Left out or false: responses are not stored, and true is refused."""
    background: bool | None = None
    """True is refused: a response is given in the request that asks for it."""
    previous_response_id: CleanStr | None = None
    """Refused, because responses are not stored; send the whole conversation in `input`."""
    conversation: Any = None
    """Refused, for the same reason."""
    prompt: dict[str, Any] | None = None
    """`id` names an agent, which replies; `version` and `variables` are for it."""


class IncompleteDetails(Schema):
    reason: Literal["max_output_tokens", "content_filter"]


class ResponseUsage(Schema):
    input_tokens: int
    input_tokens_details: dict[str, int]
    output_tokens: int
    output_tokens_details: dict[str, int]
    total_tokens: int


class ModelResponse(Schema):
    id: str
    object: Literal["response"] = "response"
    created_at: int
    """Unix seconds."""
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    error: dict[str, Any] | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    model: str
    output: list[dict[str, Any]]
    """Items in their order: `reasoning`, `message` with parts of the type `output_text`, `function_call`, and those
    about tools of MCP servers: `mcp_list_tools`, `mcp_call`, `mcp_approval_request`."""
    usage: ResponseUsage | None = None
    """With the last event of a stream."""
