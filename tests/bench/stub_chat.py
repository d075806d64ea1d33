"""`python -m tests.bench.stub_chat`: a chat server that says any number of tokens at once, to measure what others add.

It is no model: `max_tokens` words are sent as fast as the socket takes them, one event each. Prints its port.
"""

from __future__ import annotations

import json

from aiohttp import web

HEAD = {"id": "stub", "object": "chat.completion.chunk", "created": 0, "model": "stub"}


def event(delta: dict[str, str], reason: str | None = None, **more: object) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return b"data: " + json.dumps({**HEAD, "choices": choices, **more}).encode() + b"\n\n"


WORD = event({"content": "word "})


async def answer(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    tokens = body.get("max_tokens") or 16
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(tokens):
        await response.write(WORD)
    usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": tokens + 8}
    await response.write(event({}, "stop", usage=usage) + b"data: [DONE]\n\n")
    return response


async def application() -> web.Application:
    app = web.Application()
    for root in ("/v1", "/compatible-mode/v1"):
        app.router.add_post(f"{root}/chat/completions", answer)
    return app


if __name__ == "__main__":
    web.run_app(application(), host="127.0.0.1", port=0, print=lambda said: print(said, flush=True), access_log=None)
