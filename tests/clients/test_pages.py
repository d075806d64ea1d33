"""OpenAI's library for agents in a browser: a page of another origin talks with a client secret, by both transports."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web
from playwright.sync_api import sync_playwright

from tests.browser.conftest import launch
from tests.browser.speech import write_microphone
from tests.clients.environments import FOLDER
from tests.realtime.product import Product
from tests.web import listening_beside

PAGE = """async ([transportName, address, secret]) => {
    const agents = await import("/openai-realtime-agents.mjs");
    const { OpenAIRealtimeWebRTC, OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession } = agents;
    const transport = transportName === "webrtc"
        ? new OpenAIRealtimeWebRTC({ baseUrl: `http://${address}/v1/realtime/calls` })
        : new OpenAIRealtimeWebSocket({ url: `ws://${address}/v1/realtime?model=gpt-realtime` });
    const session = new RealtimeSession(new RealtimeAgent({ name: "Assistant" }), { transport });
    const ended = Promise.withResolvers();
    let words = "";
    session.on("error", ({ error }) => ended.reject(new Error(JSON.stringify(error))));
    transport.on("audio_transcript_delta", ({ delta }) => { words += delta; });
    session.on("agent_end", () => ended.resolve());
    await session.connect({ apiKey: secret });
    session.sendMessage("What is two plus two?");
    await ended.promise;
    session.close();
    return words;
}"""


async def empty(request: web.Request) -> web.Response:
    return web.Response(content_type="text/html")


@pytest.mark.parametrize("transport", ["websocket", "webrtc"])
def test_a_page_of_another_origin_talks(transport: str, product: Product, tmp_path: Path) -> None:
    session = {"session": {"type": "realtime", "model": "gpt-realtime"}}
    secret = product.ask("/v1/realtime/client_secrets", session).body["value"]
    bundle = FOLDER / "javascript/node_modules/@openai/agents-realtime/dist/bundle"
    routes = web.get("/", empty), web.static("/", bundle)
    with sync_playwright() as playwright, listening_beside(*routes) as origin:
        browser = launch(playwright, write_microphone(tmp_path / "microphone.wav", 60.0))
        page = browser.new_page()
        page.goto(origin)
        words = page.evaluate(PAGE, [transport, product.address, secret])
        browser.close()
    assert words == "2 plus 2 is 4."
