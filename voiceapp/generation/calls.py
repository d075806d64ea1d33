"""Calls of a chat model, independent of the style of their request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voiceapp.catalogue.lookup import mcp_addresses
from voiceapp.engines.interfaces import ChatMessage, ChatRequest, SessionFacts
from voiceapp.errors import InvalidParameter
from voiceapp.generation.schemas import GenerationParameters, Sampling, Stop, Tool
from voiceapp.protocol.items import McpItem
from voiceapp.protocol.tools import read_mcp

PASSED_ON = (
    "top_k",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "parallel_tool_calls",
    "enable_thinking",
    "thinking_budget",
    "reasoning_effort",
    "enable_search",
    "search_options",
)
"""Parameters that go to the engine by their own names; it uses those it knows."""


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A call of a chat model, read from the request of either style."""

    model: str
    request: ChatRequest
    servers: tuple[dict[str, Any], ...] = ()
    """MCP servers whose tools the model may call, as `read_mcp` gives them."""
    approvals: tuple[McpItem, ...] | None = None
    """Items about tools of servers; None where the style has no such items, and a call cannot be asked for."""
    count: int = 1
    """Number of replies."""
    stop: tuple[str, ...] = ()
    response_format: dict[str, Any] | None = None
    messages_at: str = "messages"
    """Name of the messages in the request's style; for refusals."""
    parameters_at: str = ""
    """Prefix of parameter names in refusals: "parameters." in the native style, "" in the compatible one."""
    format_at: str = "response_format"
    """Name of the response format in the request's style, behind `parameters_at`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables for the instructions of the agent that `model` names."""
    places: tuple[str, ...] = ()
    """Path of each message in the body; empty where that is its number behind `messages_at`."""

    def place(self, number: int) -> str:
        """Return the path of a message in the body; for refusals."""
        return self.places[number] if self.places else f"{self.messages_at}.{number}"


def chat_call(
    model: str, messages: tuple[ChatMessage, ...], how: Sampling, *, messages_at: str, parameters_at: str
) -> ChatCall:
    """Return the call for a reply to `messages`.

    Raises:
        InvalidParameter: if a tool cannot be read, or is of a server that the operator does not list.
    """
    stop, extra = _split(how.stop)
    extra |= {name: value for name in PASSED_ON if (value := getattr(how, name)) is not None}
    choice, shape = how.tool_choice, how.response_format
    if shape is not None and shape.type == "text":
        shape = None  # what is written anyway; who writes a reply must not depend on it
    functions, servers = _tools(how.tools or (), f"{parameters_at}tools")
    if servers and (how.n or 1) > 1:
        raise InvalidParameter(
            f"{parameters_at}n above 1 does not go with tools of servers.", param=f"{parameters_at}n"
        )
    return ChatCall(
        model=model,
        request=ChatRequest(
            messages=messages,
            tools=functions,
            tool_choice=choice if isinstance(choice, str | None) else choice.model_dump(),
            temperature=how.temperature,
            top_p=how.top_p,
            max_tokens=how.max_completion_tokens or how.max_tokens,
            seed=how.seed,
            extra=extra,
            facts=SessionFacts(model=model),
        ),
        servers=servers,
        count=how.n or 1,
        stop=stop,
        response_format=None if shape is None else shape.model_dump(exclude_none=True),
        messages_at=messages_at,
        parameters_at=parameters_at,
    )


def _tools(tools: Sequence[Tool], at: str) -> tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]:
    """The functions of the caller, and the servers whose tools are called here."""
    given = [(tool.model_dump(exclude_none=True), f"{at}.{number}") for number, tool in enumerate(tools)]
    functions, servers = [], []
    for tool, place in given:
        if tool["type"] == "mcp":
            servers.append(read_mcp(tool, place, dict(mcp_addresses())))
        elif "function" not in tool:
            raise InvalidParameter(f"{place}.function is required.", param=f"{place}.function")
        else:
            functions.append(tool)
    return tuple(functions), tuple(servers)


def native_call(
    model: str, messages: tuple[ChatMessage, ...], how: GenerationParameters, *, messages_at: str
) -> ChatCall:
    """Return the call for a reply to messages of the native style.

    Raises:
        InvalidParameter: if parameters do not go together.
    """
    if (how.n or 1) > 1 and how.result_format == "text":
        raise InvalidParameter("parameters.n above 1 needs result_format message.", param="parameters.n")
    return chat_call(model, messages, how, messages_at=messages_at, parameters_at="parameters.")


def _split(stop: Stop | None) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The texts at which an answer ends, and the numbers of tokens for engines that know them."""
    texts: list[str] = []
    ids: list[int] = []
    for item in [stop] if isinstance(stop, str) else stop or []:
        if isinstance(item, str):
            texts += [item] if item else []
        else:
            ids += [item] if isinstance(item, int) else item
    return tuple(texts), {"stop_token_ids": ids} if ids else {}
