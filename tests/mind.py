"""A chat server on loopback with the timing and the habits of a hosted one, good and bad. It is no model.

`python -m tests.mind` runs one with a hosted model's timing and prints its address; `/asked` counts its requests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.web import listening

FIRST_TOKEN_S = 0.3
WORDS_PER_S = 60.0
"""A hosted model's, as measured."""
HEAD = {"id": "stub", "object": "chat.completion.chunk", "created": 0, "model": "stub"}


@dataclass(frozen=True)
class Habit:
    """How one request is answered."""

    text: str = "Paris is the capital of France. It lies on the Seine."
    first_token_s: float = 0.0
    words_per_s: float = 0.0
    """0 writes all at once."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    refuses: str = ""
    """Name of a field that is refused, wherever it is sent."""
    reads_bytes: int = 0
    """Longer conversations are refused; 0 reads any."""
    thoughts: int = 0
    """Words of reasoning, written as `reasoning_content` at the same rate before the reply."""
    stops_after: int | None = None
    """Words after which nothing more comes."""
    breaks_after: int | None = None
    """Words after which the connection is closed."""
    finish: str = "stop"
    calls: str = ""
    """A function that is called in place of words."""
    by_character: bool = False
    """Write character by character, so that tags are divided."""


@dataclass
class Mind:
    """The server: the n-th request gets the n-th habit, all further ones the last."""

    habits: list[Habit]
    base_url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    ports: set[int] = field(default_factory=set)
    """Of the clients' connections."""
    left: int = 0
    """Requests whose client went away."""

    def note_port(self, request: web.Request) -> None:
        assert request.transport is not None
        self.ports.add(request.transport.get_extra_info("peername")[1])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.note_port(request)
        body = await request.json()
        habit = self.habits[min(len(self.requests), len(self.habits) - 1)]
        self.requests.append(body)
        self.was_asked.set()
        try:
            return await self._answer(request, body, habit)
        except (asyncio.CancelledError, ConnectionError):
            self.left += 1
            raise

    async def _answer(self, request: web.Request, body: dict[str, Any], habit: Habit) -> web.StreamResponse:
        if habit.refuses and habit.refuses in body:
            instead = "max_completion_tokens" if habit.refuses == "max_tokens" else "the default"
            said = f"Unsupported parameter: '{habit.refuses}' is not supported with this model. Use '{instead}'."
            return web.json_response({"error": {"message": said}}, status=400)
        read = len(json.dumps(body["messages"]))
        if habit.reads_bytes and read > habit.reads_bytes:
            said = f"This model's maximum context length is {habit.reads_bytes} tokens, and you sent {read} tokens."
            return web.json_response({"error": {"message": said}}, status=400)
        if habit.status != 200:
            return web.json_response(habit.body, status=habit.status, headers=habit.headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await asyncio.sleep(habit.first_token_s)
        pause_s = 1 / habit.words_per_s if habit.words_per_s else 0.0
        for _ in range(habit.thoughts):
            await self._write(response, {"reasoning_content": "hmm "}, pause_s)
        pieces = list(habit.text) if habit.by_character else habit.text.split(" ")
        for number, piece in enumerate(pieces if not habit.calls else ()):
            if number == habit.stops_after:
                await asyncio.Event().wait()
            if number == habit.breaks_after:
                assert request.transport is not None
                request.transport.abort()
                return response
            space = " " if number and not habit.by_character else ""
            await self._write(response, {"content": space + piece}, pause_s)
        if habit.calls:
            function = {"name": habit.calls, "arguments": "{}"}
            await self._write(response, {"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}, 0.0)
        usage = {"prompt_tokens": 8, "completion_tokens": len(pieces)}
        await self._write(response, {}, 0.0, habit.finish, usage=usage)
        await response.write(b"data: [DONE]\n\n")
        return response

    @staticmethod
    async def _write(
        response: web.StreamResponse, delta: dict[str, Any], pause_s: float, finish: str | None = None, **more: Any
    ) -> None:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        await response.write(b"data: " + json.dumps({**HEAD, "choices": choices, **more}).encode() + b"\n\n")
        if pause_s:
            await asyncio.sleep(pause_s)


@asynccontextmanager
async def mind(*habits: Habit) -> AsyncIterator[Mind]:
    found = Mind(list(habits))

    async def models(request: web.Request) -> web.StreamResponse:
        found.note_port(request)
        return web.json_response({"data": []})

    async def asked(_: web.Request) -> web.StreamResponse:
        """Of replies: a server that loads its model first is asked for one token."""
        return web.json_response(sum(request.get("max_tokens") != 1 for request in found.requests))

    routes = (
        web.post("/v1/chat/completions", found.handle),
        web.get("/v1/models", models),
        web.get("/v1/asked", asked),
    )
    async with listening(*routes) as origin:
        found.base_url = f"{origin}/v1"
        yield found


async def _serve() -> None:
    async with mind(Habit(first_token_s=FIRST_TOKEN_S, words_per_s=WORDS_PER_S)) as server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
