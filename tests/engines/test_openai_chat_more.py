"""What a chat server elsewhere is told and tells beyond plain text: images, thoughts, probabilities, usage in full."""

from __future__ import annotations

from tests.engines.test_openai_chat import KEY, ChatServer, ask, chunk, server
from voiceapp.engines.interfaces import ChatDelta, ChatMessage, ChatRequest, ChatUsage
from voiceapp.engines.openai.chat import OpenAIChat

__all__ = ["server"]

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def seeing(server: ChatServer) -> OpenAIChat:
    return OpenAIChat(base_url=server.base_url, api_key=KEY, model="eyes")


async def test_it_sends_images_in_their_place(server: ChatServer) -> None:
    server.streams(chunk({"content": "A cat."}), chunk({}, "stop"))
    chat = seeing(server)
    parts = ({"type": "text", "text": "What is"}, IMAGE, {"type": "text", "text": "this?"})
    await ask(chat, ChatRequest((ChatMessage("user", "What is\nthis?", parts=parts),)))
    assert server.requests[0]["messages"] == [{"role": "user", "content": list(parts)}]
    await chat.close()


async def test_it_tells_thoughts_from_the_answer(server: ChatServer) -> None:
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
    chat = seeing(server)
    assert await ask(chat, ChatRequest((ChatMessage("user", "Is it?"),))) == [
        ChatDelta(reasoning="Is it? "),
        ChatDelta(reasoning="It is."),
        ChatDelta(text="Yes.", logprobs=(probable,)),
        ChatDelta(finish_reason="stop", usage=ChatUsage(9, 5, cached_tokens=4, reasoning_tokens=3)),
    ]
    await chat.close()
