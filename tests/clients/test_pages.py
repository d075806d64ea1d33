"""OpenAI's library for agents in a browser: a page of another origin talks with a client secret, by both transports."""

from __future__ import annotations

import json
import threading
import urllib.request
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.conftest import launch
from tests.browser.speech import write_microphone
from tests.clients.environments import FOLDER
from tests.realtime.product import Product

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


class Files(SimpleHTTPRequestHandler):
    """The library's bundle, and an empty page."""

    def do_GET(self) -> None:
        if self.path == "/":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("transport", ["websocket", "webrtc"])
def test_a_page_of_another_origin_talks(transport: str, product: Product, tmp_path: Path) -> None:
    secrets = urllib.request.Request(
        f"{product.origin}/v1/realtime/client_secrets",
        json.dumps({"session": {"type": "realtime", "model": "gpt-realtime"}}).encode(),
        {"Authorization": f"Bearer {product.keys['good']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(secrets) as made:
        secret = json.load(made)["value"]
    bundle = FOLDER / "javascript/node_modules/@openai/agents-realtime/dist/bundle"
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(bundle)))
    threading.Thread(target=site.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = launch(playwright, write_microphone(tmp_path / "microphone.wav", 60.0))
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{site.server_port}/")
        words = page.evaluate(PAGE, [transport, product.address, secret])
        browser.close()
    site.shutdown()
    site.server_close()
    assert words == "2 plus 2 is 4."
