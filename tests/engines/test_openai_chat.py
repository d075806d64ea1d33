"""The client of OpenAI-compatible chat servers, against a real local one."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.web import Handler, listening
from voiceapp.engines.interfaces import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    ChatUsage,
    SessionFacts,
    ToolCall,
    ToolCallDelta,
)
from voiceapp.engines.openai.chat import OpenAIChat
from voiceapp.engines.openai.sse import EventStream
from voiceapp.errors import EngineRefused, EngineTimeout, EngineUnavailable

KEY = "sk-very-secret-0123456789"
PATIENCE_S = 20.0
HELLO = ChatRequest(messages=(ChatMessage("user", "Hello"),))


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": choices, **more}).encode() + b"\n\n"


@dataclass
class ChatServer:
    """A server that answers with whatever `answer` does, and remembers what it was asked."""

    base_url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    answer: Handler | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        self.headers.append(dict(request.headers))
        assert request.transport is not None
        self.ports.add(request.transport.get_extra_info("peername")[1])
        assert self.answer is not None
        return await self.answer(request)

    def streams(self, *pieces: bytes, hold: bool = False) -> None:
        """Answer with `pieces`; with `hold` never end, and set `gone` when the client goes away."""

        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
            if hold:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.gone.set()
                    raise
            return response

        self.answer = answer

    def refuses(self, status: int, body: Any) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            return web.json_response(body, status=status)

        self.answer = answer


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ChatServer]:
    stand_in = ChatServer()
    async with listening(web.post("/v1/chat/completions", stand_in.handle)) as origin:
        stand_in.base_url = f"{origin}/v1"
        yield stand_in


@pytest_asyncio.fixture
async def chat(server: ChatServer) -> AsyncIterator[OpenAIChat]:
    model = OpenAIChat(base_url=server.base_url + "/", api_key=KEY, model="llama", timeout_s=PATIENCE_S)
    yield model
    await model.close()


async def ask(chat: OpenAIChat, request: ChatRequest = HELLO) -> list[ChatDelta]:
    async with aclosing(chat.stream(request)) as deltas:
        return [delta async for delta in deltas]


async def test_it_streams_text_then_the_reason_and_the_usage(server: ChatServer, chat: OpenAIChat) -> None:
    server.streams(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Good "}),
        chunk({"content": "day."}),
        chunk({}, "stop"),
        chunk(usage={"prompt_tokens": 7, "completion_tokens": 3}),
        b"data: [DONE]\n\n",
    )
    assert await ask(chat) == [
        ChatDelta(text="Good "),
        ChatDelta(text="day."),
        ChatDelta(finish_reason="stop", usage=ChatUsage(7, 3)),
    ]


async def test_it_asks_for_a_stream_with_usage_and_passes_every_parameter(server: ChatServer, chat: OpenAIChat) -> None:
    server.streams(chunk({}, "stop"))
    tool = {"type": "function", "function": {"name": "weather", "description": "", "parameters": {"type": "object"}}}
    await ask(
        chat,
        ChatRequest(
            messages=(
                ChatMessage("system", "Be brief."),
                ChatMessage("user", "Weather?"),
                ChatMessage("assistant", tool_calls=(ToolCall("call_1", "weather", '{"in": "Oslo"}'),)),
                ChatMessage("tool", "rain", tool_call_id="call_1"),
            ),
            tools=(tool,),
            tool_choice="auto",
            temperature=0.0,
            top_p=0.5,
            max_tokens=9,
            seed=4,
            extra={"top_k": 5, "stream": False},
            facts=SessionFacts(model="voice"),
        ),
    )
    assert server.requests == [
        {
            "model": "llama",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Weather?"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"in": "Oslo"}'},
                        }
                    ],
                },
                {"role": "tool", "content": "rain", "tool_call_id": "call_1"},
            ],
            "tools": [tool],
            "tool_choice": "auto",
            "temperature": 0.0,
            "top_p": 0.5,
            "max_tokens": 9,
            "seed": 4,
            "top_k": 5,
        }
    ]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_it_sends_no_parameter_that_nobody_set(server: ChatServer, chat: OpenAIChat) -> None:
    server.streams(chunk({}, "stop"))
    await ask(chat)
    assert set(server.requests[0]) == {"model", "messages", "stream", "stream_options"}


async def test_it_passes_the_fragments_of_tool_calls(server: ChatServer, chat: OpenAIChat) -> None:
    first = {"index": 0, "id": "call_9", "type": "function", "function": {"name": "dim", "arguments": ""}}
    server.streams(
        chunk({"tool_calls": [first]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"to"'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ": 5}"}}]}),
        chunk({}, "tool_calls"),
    )
    assert await ask(chat) == [
        ChatDelta(tool_call=ToolCallDelta(0, "call_9", "dim", "")),
        ChatDelta(tool_call=ToolCallDelta(0, arguments='{"to"')),
        ChatDelta(tool_call=ToolCallDelta(0, arguments=": 5}")),
        ChatDelta(finish_reason="tool_calls"),
    ]


async def test_it_reads_an_answer_that_was_not_streamed(server: ChatServer, chat: OpenAIChat) -> None:
    server.refuses(
        200,
        {
            "choices": [{"message": {"role": "assistant", "content": "Whole."}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        },
    )
    assert await ask(chat) == [
        ChatDelta(text="Whole."),
        ChatDelta(finish_reason="length", usage=ChatUsage(1, 2)),
    ]


async def test_closing_the_stream_closes_the_connection_at_once(server: ChatServer, chat: OpenAIChat) -> None:
    server.streams(chunk({"content": "Once upon"}), hold=True)
    async with aclosing(chat.stream(HELLO)) as deltas:
        assert await anext(deltas) == ChatDelta(text="Once upon")
    async with asyncio.timeout(PATIENCE_S):
        await server.gone.wait()


async def test_answers_that_ended_leave_their_connection_for_the_next(server: ChatServer, chat: OpenAIChat) -> None:
    server.streams(chunk({"content": "Yes."}, "stop"), b"data: [DONE]\n\n")
    for _ in range(3):
        await ask(chat)
    assert len(server.ports) == 1


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_said_plainly_and_not_tried_again(
    server: ChatServer, chat: OpenAIChat, status: int
) -> None:
    server.refuses(status, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with pytest.raises(EngineUnavailable) as caught:
        await ask(chat)
    assert caught.value.message == "The chat server refused the key of this server."
    assert "CHAT_API_KEY" in caught.value.for_operators
    assert not caught.value.retryable


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "model 'llama' not found"}},
        {"error": "model 'llama' not found"},
        {"message": "model 'llama' not found"},
        {"detail": "model 'llama' not found"},
    ],
)
async def test_a_refused_request_carries_the_reason(server: ChatServer, chat: OpenAIChat, body: dict[str, Any]) -> None:
    server.refuses(404, body)
    with pytest.raises(EngineRefused, match="model 'llama' not found"):
        await ask(chat)


async def test_a_reason_is_cut_and_shows_no_key(server: ChatServer, chat: OpenAIChat) -> None:
    server.refuses(400, {"error": {"message": f"bad {KEY} and sk-other-9876543210\n" + "x" * 5000}})
    with pytest.raises(EngineRefused) as caught:
        await ask(chat)
    assert "bad *** and *** xxx" in caught.value.message
    assert len(caught.value.message) < 350


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (429, EngineUnavailable, "is busy: it answered 429, too many requests."),
        (500, EngineUnavailable, "failed with status 500."),
        (504, EngineTimeout, "did not answer in time."),
    ],
)
async def test_a_server_in_trouble_may_be_asked_again(
    server: ChatServer, chat: OpenAIChat, status: int, error: type[EngineUnavailable], said: str
) -> None:
    server.refuses(status, {})
    with pytest.raises(error, match=f"The chat server {said}") as caught:
        await ask(chat)
    assert caught.value.retryable


async def test_a_redirect_is_not_followed(server: ChatServer, chat: OpenAIChat) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        raise web.HTTPTemporaryRedirect("/v1/chat/completions?again")

    server.answer = answer
    with pytest.raises(EngineUnavailable):
        await ask(chat)
    assert len(server.requests) == 2, "it is asked once more, as after any failure"


async def test_a_server_that_is_not_there_is_unavailable(unused_tcp_port: int) -> None:
    chat = OpenAIChat(base_url=f"http://127.0.0.1:{unused_tcp_port}/v1")
    with pytest.raises(EngineUnavailable, match="cannot be reached"):
        await ask(chat)
    await chat.close()


async def test_it_cannot_serve_from_a_failure_until_a_probe_finds_the_server(
    server: ChatServer, chat: OpenAIChat
) -> None:
    chat.check()
    server.refuses(500, {})
    with pytest.raises(EngineUnavailable):
        await ask(chat)
    with pytest.raises(EngineUnavailable, match="status 500"):
        chat.check()
    await chat.probe()  # it has no list of models, and says so
    chat.check()


async def test_a_probe_finds_a_server_gone_and_back(unused_tcp_port: int) -> None:
    chat = OpenAIChat(base_url=f"http://127.0.0.1:{unused_tcp_port}/v1")
    await chat.probe()
    with pytest.raises(EngineUnavailable, match="cannot be reached") as caught:
        chat.check()
    assert caught.value.remedy == "Check CHAT_BASE_URL and its server."
    runner = web.AppRunner(web.Application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    await chat.probe()
    chat.check()
    await chat.close()
    await runner.cleanup()


async def test_a_probe_of_a_server_that_says_nothing_ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voiceapp.engines.openai.client.PROBE_S", 0.1)

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    listener = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    chat = OpenAIChat(base_url=f"http://127.0.0.1:{port}/v1")
    await chat.probe()
    with pytest.raises(EngineTimeout):
        chat.check()
    await chat.close()
    listener.close()


async def test_silence_longer_than_the_timeout_is_a_timeout(server: ChatServer) -> None:
    chat = OpenAIChat(base_url=server.base_url, timeout_s=1.0)
    server.streams(chunk({"content": "Well"}), hold=True)
    deltas = chat.stream(HELLO)
    assert await anext(deltas) == ChatDelta(text="Well")
    with pytest.raises(EngineTimeout):
        await anext(deltas)
    await chat.close()


@pytest.mark.parametrize(
    "pieces",
    [
        (chunk({"content": "Half a"}),),
        (b"data: {not json}\n\n",),
        (b'data: {"choices": "none"}\n\n',),
        (b"data: 5\n\n",),
        (b'data: {"error": {"message": "out of memory"}}\n\n',),
        (b"data: " + b"x" * (1 << 20), b"x" * 100),
    ],
)
async def test_a_broken_answer_is_unavailable(server: ChatServer, chat: OpenAIChat, pieces: tuple[bytes, ...]) -> None:
    server.streams(*pieces)
    with pytest.raises(EngineUnavailable):
        await ask(chat)


async def test_the_key_is_not_logged(server: ChatServer, chat: OpenAIChat, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.refuses(500, {"error": KEY})
    with pytest.raises(EngineUnavailable):
        await ask(chat)
    assert KEY not in caplog.text
    assert KEY not in repr(chat)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_however_the_bytes_arrive(size: int) -> None:
    sent = b': hello\r\n\r\ndata: one\r\n\r\nevent: x\ndata: two\ndata:three\n\n\n\rdata: {"a": 1}\r\rdata: end'
    stream = EventStream()
    events = [event for at in range(0, len(sent), size) for event in stream.feed(sent[at : at + size])]
    assert events + stream.finish() == ["one", "two\nthree", '{"a": 1}', "end"]


IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


async def test_it_sends_images_in_their_place(server: ChatServer, chat: OpenAIChat) -> None:
    server.streams(chunk({"content": "A cat."}), chunk({}, "stop"))
    parts = ({"type": "text", "text": "What is"}, IMAGE, {"type": "text", "text": "this?"})
    await ask(chat, ChatRequest((ChatMessage("user", "What is\nthis?", parts=parts),)))
    assert server.requests[0]["messages"] == [{"role": "user", "content": list(parts)}]


async def test_it_tells_thoughts_from_the_answer(server: ChatServer, chat: OpenAIChat) -> None:
    probable = {"token": "Yes.", "logprob": -0.1}
    server.streams(
        chunk({"reasoning_content": "Is it? "}),
        chunk({"reasoning": "It is."}),
        b'data: {"choices":[{"delta":{"content":"Yes."},'
        b'"logprobs":{"content":[{"token":"Yes.","logprob":-0.1}]}}]}\n\n',
        chunk({}, "stop"),
        chunk(
            usage={
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 3},
            }
        ),
    )
    assert await ask(chat, ChatRequest((ChatMessage("user", "Is it?"),))) == [
        ChatDelta(reasoning="Is it? "),
        ChatDelta(reasoning="It is."),
        ChatDelta(text="Yes.", logprobs=(probable,)),
        ChatDelta(finish_reason="stop", usage=ChatUsage(9, 5, cached_tokens=4, reasoning_tokens=3)),
    ]
