"""Chat models of another service, in OpenAI's words, which it understands as this server does."""

from __future__ import annotations

from typing import Any

from voiceapp.engines.openai.chat import OpenAIChat
from voiceapp.engines.upstream.http.client import CHAT_PATH, Address, services


class UpstreamChat(OpenAIChat):
    """A `ChatModel`. One per process and model."""

    def __init__(self, *, model: str, **address: Any) -> None:
        """`model` is the name that the service knows; the rest is an `Address`."""
        super().__init__(server=services().at(Address(**address)), model=model, path=CHAT_PATH)
