"""Function calls for models whose template knows no tools: chosen by meaning, their arguments written by a grammar.

A small model chooses badly among functions and writes arguments well. So the embedding model compares what the user
said with the descriptions of the functions, and the language model fills in the chosen one's schema. Measured with nine
functions and 22 messages: 22 right, where the language model alone chose 9 to 12.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voiceapp.engines.embedded.embedding import MiniLM
from voiceapp.engines.embedded.windows import Vectors
from voiceapp.engines.interfaces import ChatMessage, ChatRequest
from voiceapp.engines.models.lanes import lanes

CLOSE_ENOUGH = 0.25
"""Least cosine between a message and a function; measured: 0.29 and more where one was needed, else up to 0.20."""
MAX_SAID_CHARS = 2_000
MAX_CALLS = 8
MAX_DESCRIBED = 1_024
"""Descriptions whose vectors are kept."""
MAX_ARGUMENT_TOKENS = 512

_CLAUSES = re.compile(r"[.?!;]\s+|(?:,|(?<!\s))\s+(?:and then|and also|and|then|also)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One function that is to be called."""

    call_id: str
    name: str
    request: ChatRequest
    """Request by which the model writes the arguments; they come as JSON."""


class ToolPlanner:
    """Decides which functions to call. One per process."""

    def __init__(self) -> None:
        self._embedder = MiniLM()
        self._described: dict[str, Vectors] = {}
        """Vectors by description, the latest used last."""

    async def plan(self, request: ChatRequest) -> list[PlannedCall]:
        """The calls that the last message asks for; none when it is to be replied to in words.

        Raises:
            EngineUnavailable: if the lane is full.
        """
        said = _last_said(request.messages)
        tools = _tools(request)
        if not tools or not said or request.tool_choice == "none" or request.messages[-1].role == "tool":
            return []
        is_forced = request.tool_choice == "required" or isinstance(request.tool_choice, dict)
        clauses = [said]
        if request.extra.get("parallel_tool_calls", True):
            clauses = [part for part in _CLAUSES.split(said) if part.strip()] or [said]
        if not self._embedder.is_present or (len(tools) == 1 and is_forced):
            found = [(tools[0], said)] if is_forced else []
        else:
            described = np.stack([await self._vector(_described(tool)) for tool in tools])
            found = await lanes().reply.run(self._chosen, tools, described, clauses[:MAX_CALLS], said, is_forced)
        return [_planned(request, tool, words) for tool, words in found]

    async def _vector(self, description: str) -> Vectors:
        """Return the vector of one description; a new one is read in the lane that holds up no conversation."""
        vector = self._described.pop(description, None)
        if vector is None:
            vector = await lanes().batch.run(self._embedder.embed_now, description)
        self._described[description] = vector
        while len(self._described) > MAX_DESCRIBED:
            del self._described[next(iter(self._described))]
        return vector

    def _chosen(
        self,
        tools: Sequence[dict[str, Any]],
        described: Vectors,
        clauses: Sequence[str],
        said: str,
        is_forced: bool,
    ) -> list[tuple[dict[str, Any], str]]:
        """Return functions with the words that ask for each. Runs in a lane."""
        found: list[tuple[dict[str, Any], str]] = []
        for words in clauses if len(clauses) > 1 else []:
            likeness = described @ self._embedder.embed_now(words)
            best = int(likeness.argmax())
            if likeness[best] >= CLOSE_ENOUGH and (not found or found[-1][0] is not tools[best]):
                found.append((tools[best], words))
        if len(found) > 1:
            return found
        likeness = described @ self._embedder.embed_now(said)
        best = int(likeness.argmax())
        return [(tools[best], said)] if is_forced or likeness[best] >= CLOSE_ENOUGH else []


def without_tools(request: ChatRequest) -> ChatRequest:
    """Return the conversation for a template that knows neither tools nor their messages."""
    messages: list[ChatMessage] = []
    names: dict[str, str] = {}
    for message in request.messages:
        if message.role == "tool":
            name = names.get(message.tool_call_id or "", "the function")
            messages.append(ChatMessage("user", f"Result of {name}: {message.content}\nTell me this result."))
        elif message.tool_calls:
            names |= {call.call_id: call.name for call in message.tool_calls}
            called = ", ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
            messages.append(ChatMessage("assistant", f"{message.content} I call {called}.".strip()))
        else:
            messages.append(message)
    extra = {name: value for name, value in request.extra.items() if name != "parallel_tool_calls"}
    return replace(request, messages=tuple(messages), tools=(), tool_choice=None, extra=extra)


def results_in_words(messages: Sequence[ChatMessage]) -> str:
    """Return the functions' outputs, for a model that may repeat them wrongly; empty when none was called last."""
    results: list[str] = []
    for message in reversed(messages):
        if message.role != "tool":
            break
        try:
            value = json.loads(message.content)
        except ValueError:
            value = message.content
        results.insert(0, _in_words(value))
    return " ".join(result if result.endswith((".", "!", "?")) else f"{result}." for result in results if result)


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')}: {_in_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else str(value).strip()


def _last_said(messages: Sequence[ChatMessage]) -> str:
    said = next((message.content for message in reversed(messages) if message.role == "user"), "")
    return said[-MAX_SAID_CHARS:].strip()


def _tools(request: ChatRequest) -> list[dict[str, Any]]:
    if isinstance(request.tool_choice, dict):
        wanted = request.tool_choice["function"]["name"]
        return [tool for tool in request.tools if tool["function"]["name"] == wanted]
    return list(request.tools)


def _described(tool: dict[str, Any]) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tool["function"]["name"]).replace("_", " ")
    return f"{name}: {tool['function'].get('description') or ''}"[:MAX_SAID_CHARS]


def _planned(request: ChatRequest, tool: dict[str, Any], words: str) -> PlannedCall:
    function = tool["function"]
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    instructions = (
        f"Extract from the user's message the values of these fields of {function['name']}, as JSON: "
        f"{json.dumps(schema.get('properties') or {})}"
    )
    asked = ChatRequest(
        messages=(ChatMessage("system", instructions), ChatMessage("user", words)),
        temperature=0.0,
        max_tokens=MAX_ARGUMENT_TOKENS,
        seed=request.seed,
        extra={"response_format": {"type": "json_schema", "json_schema": {"name": "arguments", "schema": schema}}},
        facts=request.facts,
    )
    return PlannedCall(f"call_{secrets.token_hex(12)}", function["name"], asked)
