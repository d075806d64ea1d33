"""Output items of a response and their events: pieces of a reply in, typed events out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from voiceapp.compatible.responses.approvals import approval_id
from voiceapp.engines.interfaces import ToolCallDelta
from voiceapp.generation.chat import ChatOutput
from voiceapp.protocol.work import ReplyToolCall, ToolsListed

Json = dict[str, Any]
Events = Iterator[Json]


@dataclass(slots=True)
class Part:
    """The one part of a message or of a thought: its text, and how its events are called."""

    kind: str
    """`output_text` or `reasoning_text`: the type of the part, and the middle of the names of its events."""
    text: str = ""
    logprobs: list[Json] = field(default_factory=list)

    @property
    def is_message(self) -> bool:
        return self.kind == "output_text"

    def wire(self) -> Json:
        if self.is_message:
            return {"type": self.kind, "text": self.text, "annotations": [], "logprobs": self.logprobs}
        return {"type": self.kind, "text": self.text}


class OutputItems:
    def __init__(self, request_id: str) -> None:
        self.items: list[Json] = []
        """As the wire has them; those that are still written are `in_progress`."""
        self._request_id = request_id
        self._part: Part | None = None
        """Part of the last item, while it is written."""
        self._calls: dict[int, int] = {}
        """Position of each call's item, by the number that the engine gave it; calls stay open to the end,
        because their fragments may come in turns."""
        self._tool_call = ""
        """The call of a server's tool that is being made."""

    def add(self, piece: ChatOutput) -> Events:
        """Return the events of one piece."""
        if piece.reasoning:
            yield from self._write("reasoning_text", piece.reasoning)
        if piece.text or piece.logprobs:
            yield from self._write("output_text", piece.text, [_logprob(found) for found in piece.logprobs])
        if piece.tool_call is not None:
            yield from self._call(piece.tool_call)
        if isinstance(piece.of_server, ToolsListed):
            yield from self._tools(piece.of_server)
        elif piece.of_server is not None:
            yield from self._tool(piece.of_server)

    def end(self, status: str) -> Events:
        """Return the events of the end. A response that says nothing has an empty message."""
        if not any(item["type"] in ("message", "function_call", "mcp_approval_request") for item in self.items):
            yield from self._write("output_text", "")
        yield from self._close_part(status)
        for place in self._calls.values():
            item = self.items[place]
            about = {"item_id": item["id"], "output_index": place}
            yield {"type": "response.function_call_arguments.done", **about, "arguments": item["arguments"]}
            yield from self._finish(place, status)

    def _write(self, kind: str, text: str, logprobs: list[Json] | None = None) -> Events:
        if self._part is None or self._part.kind != kind:
            yield from self._close_part("completed")
            yield from self._open_part(kind)
        part = self._part
        assert part is not None
        part.text += text
        part.logprobs += logprobs or []
        if text:
            told = {"logprobs": _told(logprobs or [])} if part.is_message else {}
            yield {"type": f"response.{kind}.delta", **self._about_part(), "delta": text, **told}

    def _open_part(self, kind: str) -> Events:
        self._part = part = Part(kind)
        if part.is_message:
            yield from self._open({"type": "message", "role": "assistant", "content": []}, "msg")
        else:
            yield from self._open({"type": "reasoning", "summary": [], "content": []}, "rs")
        yield {"type": "response.content_part.added", **self._about_part(), "part": part.wire()}

    def _close_part(self, status: str) -> Events:
        part = self._part
        if part is None:
            return
        told = {"logprobs": _told(part.logprobs)} if part.is_message else {}
        yield {"type": f"response.{part.kind}.done", **self._about_part(), "text": part.text, **told}
        yield {"type": "response.content_part.done", **self._about_part(), "part": part.wire()}
        self._part = None
        self.items[-1]["content"] = [part.wire()]
        yield from self._finish(len(self.items) - 1, status)

    def _call(self, fragment: ToolCallDelta) -> Events:
        if fragment.index not in self._calls:
            yield from self._close_part("completed")
            self._calls[fragment.index] = len(self.items)
            call_id = fragment.call_id or f"call_{fragment.index}"
            call = {"type": "function_call", "call_id": call_id, "name": fragment.name, "arguments": ""}
            yield from self._open(call, "fc")
        place = self._calls[fragment.index]
        item = self.items[place]
        if fragment.arguments:
            item["arguments"] += fragment.arguments
            about = {"item_id": item["id"], "output_index": place}
            yield {"type": "response.function_call_arguments.delta", **about, "delta": fragment.arguments}

    def _tools(self, listed: ToolsListed) -> Events:
        label, tools = listed.work.server_label, listed.tools
        error = f"The MCP server {label} cannot be reached." if tools is None else None
        yield from self._open({"type": "mcp_list_tools", "server_label": label, "tools": [], "error": error}, "mcpl")
        yield from self._tell("mcp_list_tools.in_progress")
        self.items[-1]["tools"] = tools or []
        yield from self._tell("mcp_list_tools.failed" if error else "mcp_list_tools.completed")
        yield from self._finish(len(self.items) - 1, "failed" if error else "completed")

    def _tool(self, call: ReplyToolCall) -> Events:
        called = {"server_label": call.server_label, "name": call.name, "arguments": call.arguments}
        yield from self._close_part("completed")
        if call.is_asked:
            asked = {"id": approval_id(called), "type": "mcp_approval_request", **called}
            yield from self._open(asked, "")
            yield from self._finish(len(self.items) - 1, "completed")
            return
        if self._tool_call != call.call_id:
            self._tool_call = call.call_id
            about = {"approval_request_id": call.approval_request_id, "output": None, "error": None}
            yield from self._open({"type": "mcp_call", **called, **about}, "mcp")
            yield from self._tell("mcp_call.in_progress")
            yield from self._tell("mcp_call_arguments.delta", delta=call.arguments)
            yield from self._tell("mcp_call_arguments.done", arguments=call.arguments)
        if call.output is None and call.error is None:
            return
        self._tool_call = ""
        if call.error is not None:
            content = [{"type": "text", "text": call.error}]
            self.items[-1]["error"] = {"type": "mcp_tool_execution_error", "content": content}
        self.items[-1]["output"] = call.output
        status = "failed" if call.output is None else "completed"
        yield from self._tell(f"mcp_call.{status}")
        yield from self._finish(len(self.items) - 1, status)

    def _tell(self, what: str, **about: str) -> Events:
        place = len(self.items) - 1
        yield {"type": f"response.{what}", "item_id": self.items[-1]["id"], "output_index": place, **about}

    def _open(self, item: Json, prefix: str) -> Events:
        place = len(self.items)
        self.items.append({"id": f"{prefix}_{self._request_id}_{place}", **item, "status": "in_progress"})
        yield {"type": "response.output_item.added", "output_index": place, "item": dict(self.items[place])}

    def _finish(self, place: int, status: str) -> Events:
        self.items[place]["status"] = status
        yield {"type": "response.output_item.done", "output_index": place, "item": dict(self.items[place])}

    def _about_part(self) -> Json:
        place = len(self.items) - 1
        return {"item_id": self.items[place]["id"], "output_index": place, "content_index": 0}


def _logprob(found: Json) -> Json:
    """A token as it stands in a part, where every field has to be."""
    return {
        "token": found["token"],
        "logprob": found["logprob"],
        "bytes": found.get("bytes") or list(found["token"].encode("utf-8", "replace")),
        "top_logprobs": [
            {
                "token": other["token"],
                "logprob": other["logprob"],
                "bytes": other.get("bytes") or list(other["token"].encode("utf-8", "replace")),
            }
            for other in found.get("top_logprobs") or ()
        ],
    }


def _told(logprobs: list[Json]) -> list[Json]:
    """Tokens as events tell of them: without bytes."""
    return [
        {
            "token": found["token"],
            "logprob": found["logprob"],
            "top_logprobs": [{name: other[name] for name in ("token", "logprob")} for other in found["top_logprobs"]],
        }
        for found in logprobs
    ]
