"""The examples for developers, run as they stand: each takes a grant from its own backend and holds a conversation."""

from __future__ import annotations

import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from django.conf import settings
from playwright.sync_api import Browser, Playwright, expect

from tests.engines.speech import word_errors
from tests.ports import free_udp_port
from tests.web import listening_beside

from .conftest import launch
from .page import PATIENCE_MS
from .server import Server, running
from .speech import write_microphone

EXAMPLES = Path(settings.BASE_DIR, "docs", "examples")
FILES = {
    "/": EXAMPLES / "aoq.html",
    "/moq-net.js": Path(settings.BASE_DIR, "static", "voice", "vendor", "moq-net.js"),
    "/independent": Path(__file__).parent / "independent.html",
    "/moqt.js": Path(settings.BASE_DIR, "var/javascript/node_modules/@moqt/webtransport/dist/browser/index.js"),
}
QUESTION = "What is twelve times twelve?"
REPLY = "12 times 12 is 144."
LOUD = """async () => {
    const stream = document.querySelector("audio").srcObject;
    const context = new AudioContext();
    const meter = new AnalyserNode(context);
    context.createMediaStreamSource(stream).connect(meter);
    const samples = new Float32Array(meter.fftSize);
    for (let look = 0; look < 40; look += 1) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        meter.getFloatTimeDomainData(samples);
        if (samples.some((sample) => Math.abs(sample) > 0.05)) return true;
    }
    return false;
}"""
"""Whether something can be heard of what the page plays."""


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("relay"), AOQ_PORT=str(free_udp_port())) as server:
        yield server


@pytest.fixture(scope="module")
def key(relay: Server) -> str:
    return relay.new_key("Acme")


@pytest.fixture
def backend(relay: Server, key: str) -> Iterator[str]:
    """A developer's own server: a page, a copy of the library, and an operation that asks for grants; its address."""

    async def file(request: web.Request) -> web.FileResponse:
        if request.path not in FILES:
            raise web.HTTPNotFound
        return web.FileResponse(FILES[request.path])

    async def grant(request: web.Request) -> web.Response:
        headers = {"Authorization": f"Bearer {key}", "x-service-rtc-transport": "moq"}
        url = f"http://127.0.0.1:{relay.port}/api/v1/webrtc/realtime?model=voice"
        async with ClientSession(headers=headers) as session, session.post(url, data=b"{}") as granted:
            return web.Response(body=await granted.read(), content_type="application/json")

    with listening_beside(web.get("/{path:.*}", file), web.post("/{path:.*}", grant)) as address:
        yield address


def test_the_program_prints_and_keeps_the_reply(backend: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "aoq.py"), f"{backend}/grant", QUESTION]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stdout.strip()) == (0, REPLY), done.stderr
    with wave.open(str(tmp_path / "reply.wav")) as reply:
        assert reply.getnframes() / reply.getframerate() > 1


@pytest.mark.parametrize("name", ["aoq.html", "aoq.py"])
def test_the_examples_are_short_enough_to_read(name: str) -> None:
    lines = (EXAMPLES / name).read_text().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120


def test_the_page_hears_a_question_and_answers_aloud(backend: str, playwright: Playwright, tmp_path: Path) -> None:
    browser = launch(playwright, write_microphone(tmp_path / "microphone.wav", 2.0, QUESTION, 60.0))
    try:
        page = browser.new_page()
        page.goto(backend)
        page.click("button")
        expect(page.locator("pre")).to_contain_text(REPLY, timeout=PATIENCE_MS)
        understood = page.locator("pre").inner_text().splitlines()[0]
        assert min(word_errors(asked, understood) for asked in (QUESTION, "What is 12 times 12?")) <= 1
        page.wait_for_function(LOUD, timeout=PATIENCE_MS)
    finally:
        browser.close()


def test_another_implementation_holds_a_conversation(backend: str, playwright: Playwright, tmp_path: Path) -> None:
    browser = launch(playwright, write_microphone(tmp_path / "microphone.wav", 1.0))
    try:
        page = browser.new_page()
        page.goto(f"{backend}/independent")
        found = page.evaluate("window.ask()")
        assert (found["protocol"], found["code"], found["transcript"]) == ("moqt-18", 1000, REPLY)
        assert found["sounds"] > 50
    finally:
        browser.close()


CALLS = """async ([origin, key]) => {
    const offer = async () => {
        const peer = new RTCPeerConnection();
        peer.addTransceiver("audio");
        peer.createDataChannel("events");
        await peer.setLocalDescription();
        return peer.localDescription.sdp;
    };
    const json = (body) => ({ method: "POST", type: "application/json", body: JSON.stringify(body) });
    const speech = { method: "POST", type: "application/sdp" };
    const chat = { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }] };
    const calls = [
        ["/v1/models"],
        ["/v1/chat/completions", json(chat)],
        ["/v1/chat/completions", json({ ...chat, stream: true })],
        ["/v1/embeddings", json({ model: "text-embedding-v4", input: "one" })],
        ["/v1/rerank", json({ model: "gte-rerank-v2", query: "a", documents: ["a", "b"] })],
        ["/v1/realtime/client_secrets", json({})],
        ["/api/v1/tokens", { method: "POST" }],
        ["/api/v1/tasks"],
        ["/api/v1/webrtc/realtime?model=voice", { ...speech, body: await offer() }],
        ["/api/v1/webrtc/realtime?model=voice", { method: "POST", transport: "moq" }],
        ["/v1/realtime/calls", { ...speech, body: "no offer" }],
        ["/v1/models/none"],
    ];
    const found = [];
    for (const [path, { method, type, transport, body } = {}] of calls) {
        const headers = { Authorization: `Bearer ${key}` };
        if (type) headers["Content-Type"] = type;
        if (transport) headers["x-service-rtc-transport"] = transport;
        const response = await fetch(origin + path, { method, headers, body });
        found.push([response.status, response.headers.has("X-Request-ID"), (await response.text()).length > 2]);
    }
    const private_pages = [];
    for (const path of ["/voice/config", "/voice/webrtc", "/docs"]) {
        await fetch(origin + path, { credentials: "include" }).then(() => private_pages.push(path), () => {});
    }
    return [found, private_pages];
}"""
"""What a page of another origin reads of the API, and what it does not read of the server's pages."""


def test_a_page_of_another_origin_calls_the_api(backend: str, relay: Server, key: str, quiet_browser: Browser) -> None:
    page = quiet_browser.new_page()
    page.goto(backend)
    found, private_pages = page.evaluate(CALLS, [f"http://127.0.0.1:{relay.port}", key])
    assert found == [[status, True, True] for status in [*[200] * 10, 400, 404]]
    assert private_pages == []
    page.close()
