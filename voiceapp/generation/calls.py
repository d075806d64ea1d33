"""Calls of a chat model, independent of the style of their request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from voiceapp.engines.interfaces import ChatMessage, ChatRequest, SessionFacts
from voiceapp.errors import InvalidParameter
from voiceapp.generation.schemas import GenerationParameters, Sampling, Stop

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
    """The call for a reply to `messages`."""
    stop, extra = _split(how.stop)
    extra |= {name: value for name in PASSED_ON if (value := getattr(how, name)) is not None}
    choice, shape = how.tool_choice, how.response_format
    if shape is not None and shape.type == "text":
        shape = None  # what is written anyway; who writes a reply must not depend on it
    return ChatCall(
        model=model,
        request=ChatRequest(
            messages=messages,
            tools=tuple(tool.model_dump(exclude_none=True) for tool in how.tools or ()),
            tool_choice=choice if isinstance(choice, str | None) else choice.model_dump(),
            temperature=how.temperature,
            top_p=how.top_p,
            max_tokens=how.max_completion_tokens or how.max_tokens,
            seed=how.seed,
            extra=extra,
            facts=SessionFacts(model=model),
        ),
        count=how.n or 1,
        stop=stop,
        response_format=None if shape is None else shape.model_dump(exclude_none=True),
        messages_at=messages_at,
        parameters_at=parameters_at,
    )


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
