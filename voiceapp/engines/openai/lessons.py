"""Lessons from a chat server: what it has refused once is not sent to it again. No I/O."""

from __future__ import annotations

import logging
import math
import re
import time
from typing import Any

from voiceapp.engines.interfaces import ChatRequest
from voiceapp.engines.models.context import fitted
from voiceapp.engines.models.tokens import estimated
from voiceapp.errors import EngineRefused

logger = logging.getLogger(__name__)

OPTIONAL = ("temperature", "top_p", "top_k", "presence_penalty", "repetition_penalty", "seed", "stream_options")
"""Fields that a reply can do without."""
USUAL_REPLY_TOKENS = 512
"""Room for a reply whose length the caller did not limit."""
SHRINK = 0.7
"""Part of a conversation that is tried when the server does not say how much it reads."""
LEAST_TOKENS = 1024
"""Bound that is learnt from a server that does not say how much it reads; models read as much."""
MOST_RATIO = 4
"""Tokens of a server for one by our own count."""
LESSON_S = 600.0
"""Time for which lessons hold: a server may be mended, or may have meant one request."""

_UNKNOWN = r"(?:unsupported|(?:not|n't) support(?:ed)?|unrecogni[sz]ed|unknown|not permitted|extra inputs)"
_BETWEEN = (
    r"(?:\W+(?:is|are|do|does|was|were|msg|request|body|parameters?|arguments?|fields?|keyword|name|value|supplied"
    r"|not permitted))*\W+"
)
_IS_ABOUT_TOOLS = re.compile(r"\b(?:functions?|tools?|schema)\b", re.IGNORECASE)
_IS_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|window|size)|maximum.{0,20}(?:context|prompt)|(?:prompt|input|conversation) is too long"
    r"|too many (?:input )?tokens|reduce the length",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\b\d{3,7}\b")
_LIMIT = re.compile(r"(?:context|maximum|limit)\D{0,40}?\b(\d{3,7})\b|> ?(\d{3,7})\b", re.IGNORECASE)


class Lessons:
    def __init__(self, context_tokens: int = 0) -> None:
        """`context_tokens` that the model reads, the reply included; 0 waits until a conversation is refused."""
        self._set_tokens = context_tokens
        self._forget()

    def _forget(self) -> None:
        self._context_tokens = self._set_tokens
        """By our own count, which is not the server's."""
        self._left_out: set[str] = set()
        self._has_completion_limit = False
        self._ends_at = math.inf

    async def fitted(self, request: ChatRequest) -> tuple[ChatRequest, int]:
        """The request with as much of the conversation as the model reads, and how many messages were left out.

        Raises:
            EngineRefused: if the last exchange alone is too long.
        """
        if time.monotonic() >= self._ends_at:
            self._forget()
        if not self._context_tokens:
            return request, 0

        async def count(request: ChatRequest) -> int:
            return _tokens(request)

        reply_tokens = request.max_tokens or USUAL_REPLY_TOKENS
        return await fitted(request, context_tokens=self._context_tokens, reply_tokens=reply_tokens, count=count)

    def applied(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of a request without what the server refuses."""
        body = {name: value for name, value in body.items() if name not in self._left_out}
        if self._has_completion_limit and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return body

    def learn(self, refused: EngineRefused, request: ChatRequest, body: dict[str, Any]) -> bool:
        """Learn from a refusal of a request that went out as `body`; false if it teaches nothing."""
        said, learnt = refused.message, ""
        found = _refused_field(refused, request, body)
        if found == "max_tokens" and "max_completion_tokens" in said:
            self._has_completion_limit, learnt = True, "max_completion_tokens in place of max_tokens"
        elif found in OPTIONAL:
            self._left_out.add(found)
            learnt = f"no {found}"
        elif (
            _IS_TOO_LONG.search(said) and len(request.messages) > 1 and not any(each.parts for each in request.messages)
        ):
            asked = _tokens(request) + (request.max_tokens or 0)
            if (bound := _bound(said, asked)) < asked:
                self._context_tokens, learnt = bound, f"a context of about {bound} tokens"
        if learnt:
            self._ends_at = min(self._ends_at, time.monotonic() + LESSON_S)
            logger.warning("chat server: the model takes %s: %s", learnt, said)
        return bool(learnt)


def _refused_field(refused: EngineRefused, request: ChatRequest, body: dict[str, Any]) -> str:
    """The field that the server does not know; empty where it may be quoting what the caller sent."""
    names = [name for name in (*OPTIONAL, "max_tokens") if name in body]
    said, written = refused.message, " ".join(message.content for message in request.messages)
    if refused.parameter_elsewhere:
        is_unknown = re.search(_UNKNOWN, said, re.IGNORECASE)
        return next((name for name in names if name == refused.parameter_elsewhere and is_unknown), "")
    if request.tools and _IS_ABOUT_TOOLS.search(said):
        return ""
    for name in names:
        beside = rf"{_UNKNOWN}{_BETWEEN}{name}\b|\b{name}{_BETWEEN}{_UNKNOWN}"
        if (found := re.search(beside, said, re.IGNORECASE)) and found[0] not in written:
            return name
    return ""


def _bound(said: str, asked: int) -> int:
    """The context by our own count, of which the request has `asked`: the server's two figures, of its bound and of the
    request, give the ratio."""
    counts = sorted(int(count) for count in _COUNT.findall(said))
    if not (limit := _LIMIT.search(said)):
        return max(LEAST_TOKENS, int(asked * SHRINK))
    stated = int(limit[1] or limit[2])
    share = stated / counts[-1]
    return max(stated // MOST_RATIO, int(asked * (share if SHRINK / 4 < share < 1 else SHRINK)))


def _tokens(request: ChatRequest) -> int:
    words = (message.content + "".join(call.arguments for call in message.tool_calls) for message in request.messages)
    return sum(map(estimated, words)) + estimated(str(request.tools))
