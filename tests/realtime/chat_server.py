"""A language model of somebody else's: an OpenAI-compatible server in a thread of its own, small and honest.

What it does is decided by the last thing the user said, as the keys of `_ANSWERS` name it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self

from aiohttp import web

from tests.loop_thread import LoopThread
from voiceapp.engines.reply import GO_ON

KEY = "chat-key"
FIRST = "The first sentence is ready to be spoken now."
SECOND = " And this one came later."
PATIENCE_S = 20.0

Write = Callable[[bytes], Awaitable[None]]


def piece(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"


class ChatServer:
    """Start it, stop it; `go_on` lets a held answer continue, `left` is set when a client hung up on an answer.

    In a `with` block it is started, and closed at the end.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.go_on = threading.Event()
        self.left = threading.Event()
        self.port = 0
        self._loop = LoopThread()
        self._runner: web.AppRunner | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._loop.run(self._start())

    def stop(self) -> None:
        """Listen no more; can be started again."""
        self._loop.run(self._stop())

    def close(self) -> None:
        self.stop()
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def _start(self) -> None:
        application = web.Application()
        application.router.add_post("/v1/chat/completions", self._answer)
        application.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "bard"}, {"id": "nomic-embed-text"}]})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "Who are you?"}}, status=401)
        body = await request.json()
        self.requests.append(body)
        said = [message["content"] for message in body["messages"] if message["role"] == "user"]
        asked = [each for each in said if each != GO_ON][-1]
        wish = next((wish for wish in _ANSWERS if wish in asked.lower()), "")
        if wish.isdigit():
            return web.json_response({"error": {"message": "No, and no again."}}, status=int(wish))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await _ANSWERS[wish](self, body, request, response.write)
            await response.write(b"data: [DONE]\n\n")
        except (ConnectionError, asyncio.CancelledError):
            self.left.set()
            raise
        return response

    async def _story(self, body: dict[str, Any], request: web.Request, write: Write) -> None:
        """A sentence, then nothing until told to go on, then another."""
        for word in FIRST.split(" "):
            await write(piece({"content": word if word == "The" else f" {word}"}))
        await write(piece({"content": " "}))
        assert await asyncio.to_thread(self.go_on.wait, PATIENCE_S)
        await write(piece({"content": SECOND.strip()}))
        await write(piece({}, "stop"))

    async def _endless(self, body: dict[str, Any], request: web.Request, write: Write) -> None:
        """Sentence after sentence, as fast as words are spoken, for as long as somebody listens."""
        count = 0
        while True:
            count += 1
            await write(piece({"content": f"This is sentence number {count} of a story without an end. "}))
            await asyncio.sleep(0.2)

    async def _speech(self, body: dict[str, Any], request: web.Request, write: Write) -> None:
        """Minutes of words, written at once."""
        for count in range(1, 41):
            await write(piece({"content": f"This is sentence number {count} of a speech. "}))
        await write(piece({}, "stop"))

    async def _weather(self, body: dict[str, Any], request: web.Request, write: Write) -> None:
        """Asks for the tool, and speaks its answer."""
        last = body["messages"][-1]
        if last["role"] == "tool":
            await write(piece({"content": f"It is {json.loads(last['content'])['degrees']} degrees."}))
            await write(piece({}, "stop"))
            return
        call = {"index": 0, "id": "call_7", "type": "function", "function": {"name": "weather", "arguments": ""}}
        await write(piece({"role": "assistant", "tool_calls": [call]}))
        for part in ('{"city": ', '"Paris"}'):
            await write(piece({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}))
        await write(piece({}, "tool_calls"))

    async def _tool(self, body: dict[str, Any], request: web.Request, write: Write) -> None:
        """Calls the tool that is named, "Call the tool add with {…}", and says what came of it."""
        last = body["messages"][-1]
        if last["role"] == "tool":
            await write(piece({"content": f"The tool said: {last['content']}"}))
            await write(piece({}, "stop"))
            return
        name, _, arguments = last["content"].partition("Call the tool ")[2].partition(" with ")
        call = {"index": 0, "id": "call_8", "type": "function", "function": {"name": name, "arguments": arguments}}
        await write(piece({"role": "assistant", "tool_calls": [call]}))
        await write(piece({}, "tool_calls"))

    async def _break(self, body: dict[str, Any], request: web.Request, write: Write) -> None:
        """Hangs up in the middle of the answer."""
        await write(piece({"content": f"{FIRST} "}))
        assert request.transport is not None
        request.transport.abort()

    async def _sourced(self, body: dict[str, Any], request: web.Request, write: Write) -> None:
        """Names the first passage that it was given, in pieces."""
        for part in ("With the command createkey [", "1", "]."):
            await write(piece({"content": part}))
        await write(piece({}, "stop"))

    async def _plain(self, body: dict[str, Any], request: web.Request, write: Write) -> None:
        await write(piece({"content": "I am here."}))
        await write(piece({}, "stop"))


_ANSWERS: dict[str, Callable[[ChatServer, dict[str, Any], web.Request, Write], Awaitable[None]]] = {
    "api key": ChatServer._sourced,
    "story": ChatServer._story,
    "endless": ChatServer._endless,
    "speech": ChatServer._speech,
    "weather": ChatServer._weather,
    "call the tool": ChatServer._tool,
    "break": ChatServer._break,
    "500": ChatServer._plain,
    "401": ChatServer._plain,
    "400": ChatServer._plain,
    "429": ChatServer._plain,
    "": ChatServer._plain,
}
