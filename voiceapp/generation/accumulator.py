"""Answers put together from their pieces."""

from __future__ import annotations

from typing import Any

from voiceapp.generation.chat import ChatOutput


class Accumulator:
    """One answer so far."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.text = ""
        self.reasoning = ""
        self.tool_calls: list[dict[str, Any]] = []
        """Calls in the form of the wire, in both styles."""
        self.logprobs: list[dict[str, Any]] = []
        self.finish_reason: str | None = None

    def add(self, piece: ChatOutput) -> None:
        self.text += piece.text
        self.reasoning += piece.reasoning
        self.logprobs += piece.logprobs
        self.finish_reason = piece.finish_reason or self.finish_reason
        call = piece.tool_call
        if call is None:
            return
        known = next((known for known in self.tool_calls if known["index"] == call.index), None)
        if known is None:
            # The id is empty in all fragments of a call but the first.
            function = {"name": call.name, "arguments": call.arguments}
            self.tool_calls.append({"index": call.index, "id": call.call_id, "type": "function", "function": function})
            return
        known["id"] = known["id"] or call.call_id
        known["function"]["name"] += call.name
        known["function"]["arguments"] += call.arguments
