"""Lessons from a chat server: what it has refused once is not sent to it again. No I/O."""

from __future__ import annotations

import logging
import re
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

_IS_UNKNOWN = re.compile(r"unsupported|not support|unrecogni[sz]ed|unknown|not permitted|extra inputs", re.IGNORECASE)
_IS_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|window|size)|maximum.{0,20}(?:context|prompt)|(?:prompt|input|conversation) is too long"
    r"|too many (?:input )?tokens|reduce the length",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\b\d{3,7}\b")


class Lessons:
    """Lessons from one model of one server."""

    def __init__(self, context_tokens: int = 0) -> None:
        """`context_tokens` that the model reads, the reply included; 0 waits until a conversation is refused."""
        self._context_tokens = context_tokens
        """By our own count, which is not the server's."""
        self._left_out: set[str] = set()
        self._has_completion_limit = False

    async def fitted(self, request: ChatRequest) -> tuple[ChatRequest, int]:
        """The request with as much of the conversation as the model reads, and how many messages were left out.

        Raises:
            EngineRefused: if the last exchange alone is too long.
        """
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
        if "max_tokens" in body and "max_completion_tokens" in said:
            self._has_completion_limit, learnt = True, "max_completion_tokens in place of max_tokens"
        elif _IS_UNKNOWN.search(said):
            found = next((name for name in OPTIONAL if name in body and re.search(rf"\b{name}\b", said)), "")
            self._left_out |= {found} - {""}
            learnt = f"no {found}" if found else ""
        elif _IS_TOO_LONG.search(said) and len(request.messages) > 1:
            self._context_tokens = _bound(said, request)
            learnt = f"a context of about {self._context_tokens} tokens"
        if learnt:
            logger.warning("chat server: the model takes %s: %s", learnt, said)
        return bool(learnt)


def _bound(said: str, request: ChatRequest) -> int:
    """The context by our own count: the server's two figures, of its bound and of the request, give the ratio."""
    asked = _tokens(request) + (request.max_tokens or 0)
    counts = sorted(int(count) for count in _COUNT.findall(said))
    share = counts[0] / counts[-1] if len(counts) > 1 else SHRINK
    return max(256, int(asked * (share if SHRINK / 4 < share < 1 else SHRINK)))


def _tokens(request: ChatRequest) -> int:
    words = (message.content + "".join(call.arguments for call in message.tool_calls) for message in request.messages)
    return sum(map(estimated, words)) + estimated(str(request.tools))
