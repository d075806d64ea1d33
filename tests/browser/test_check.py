"""The connection check: each line on a healthy server, and what it says where something is in the way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Playwright, expect

from tests.outages.faults import FaultProxy
from tests.ports import free_port, free_udp_port

from .accessibility import violations
from .calls import close_udp
from .conftest import OpenPage, launch
from .page import VoicePage
from .server import Server, running
from .speech import write_microphone
from .test_fit import CUT_OFF
from .turn_server import SECRET, answering_stun, relaying

LINES = ("address", "server", "microphone", "speaker", "echo", "websocket", "webrtc", "aoq", "stun", "turn")
NO_MICROPHONE = """() => {
    navigator.mediaDevices.getUserMedia = async () => { throw new DOMException("no", "NotAllowedError"); };
}"""
NO_WEBTRANSPORT = """() => {
    window.WebTransport = class {
        ready = new Promise(() => {});
        closed = new Promise(() => {});
        close() {}
    };
}"""
ROOM = """() => {
    // The loudspeaker's sound in the microphone, 20 dB quieter.
    let ear = null;
    const connect = AudioNode.prototype.connect;
    AudioNode.prototype.connect = function (target, ...rest) {
        if (ear && target === this.context.destination && this instanceof AudioBufferSourceNode) {
            const air = new GainNode(this.context, { gain: 0.1 });
            connect.call(this, air);
            connect.call(air, ear);
        }
        return connect.call(this, target, ...rest);
    };
    AudioContext.prototype.createMediaStreamSource = function () {
        ear = new GainNode(this);
        const room = new ConstantSourceNode(this, { offset: 0.001 }); // without a sound, there would be no frames
        room.connect(ear);
        room.start();
        return ear;
    };
}"""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with all transports, a STUN server and a relay, and an agent."""
    agents = tmp_path_factory.mktemp("agents")
    Path(agents, "desk.toml").write_text('title = "The desk"\nis_public = true\n')
    with relaying(tmp_path_factory.mktemp("relay")) as relay, answering_stun() as stun:
        variables: dict[str, Any] = {
            **{"AOQ_PORT": str(free_udp_port()), "ICE_SERVERS": f"stun:127.0.0.1:{stun}"},
            **{"TURN_URLS": relay.url, "TURN_SECRET": SECRET, "AGENTS_DIR": str(agents)},
        }
        with running(tmp_path_factory.mktemp("healthy"), **variables) as server:
            yield server


@pytest.fixture(scope="module")
def speaking(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser whose microphone hears speech."""
    microphone = write_microphone(
        tmp_path_factory.mktemp("microphone") / "speech.wav", *["One, two, three, four."] * 20
    )
    browser = launch(playwright, microphone)
    yield browser
    browser.close()


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}/check"


def run(voice: VoicePage, answer: str = "") -> dict[str, str]:
    """Check everything, say by keyboard whether the tone was heard, if it asks, and return what became of each line."""
    voice.page.focus("#start")
    voice.page.keyboard.press("Enter")
    if answer:
        voice.page.get_by_role("button", name=answer, exact=True).focus()
        voice.page.keyboard.press("Enter")
    voice.page.wait_for_selector('body[data-state="done"]', timeout=90_000)
    return {name: str(voice.page.locator(f"#{name}").get_attribute("data-state")) for name in LINES}


@pytest.mark.parametrize(("width", "scheme", "query"), [(390, "light", ""), (1280, "dark", "?agent=desk")])
def test_every_line_passes_where_nothing_is_in_the_way(
    healthy: Server, speaking: Browser, open_page: OpenPage, screenshots: Path, width: int, scheme: str, query: str
) -> None:
    look: dict[str, Any] = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    voice = open_page(
        address(healthy) + query, browser=speaking, permissions=["clipboard-read", "clipboard-write"], **look
    )
    sessions = "SELECT id FROM realtime_realtimesession"
    begun = healthy.rows(sessions)
    assert run(voice, "Yes") == dict.fromkeys(LINES, "ok")
    voice.page.screenshot(path=screenshots / f"check-{width}.png", full_page=True)
    assert voice.overflow <= 0
    assert violations(voice.page) == []
    seen = voice.page.get_by_role("status").filter(has_text="AOQ")
    expect(seen).to_contain_text(re.compile(r"Works.*It answered in \d+\.\d\d s\."))
    voice.page.click("#copy")
    expect(voice.page.locator("#copy")).to_have_text("Copied")
    copied = str(voice.page.evaluate("navigator.clipboard.readText()")).splitlines()
    assert len(copied) == 3 + len(LINES)
    assert copied[-1].startswith("TURN: Works. It answered in ")
    healthy.row(f"{sessions} WHERE ended_at IS NOT NULL AND id NOT IN ({', '.join(repr(each) for (each,) in begun)})")
    assert len(healthy.rows(sessions)) == len(begun) + 1, "the check is one conversation"


def test_each_line_that_fails_says_what_to_do(
    healthy: Server, quiet_browser: Browser, open_page: OpenPage, screenshots: Path
) -> None:
    voice = open_page(address(healthy), browser=quiet_browser, viewport={"width": 390, "height": 844})

    def lose_ice(route: Any) -> None:
        answer = route.fetch()
        config = answer.json()
        for servers, nowhere in zip(config["ice_servers"], (free_udp_port(), free_port()), strict=True):
            servers["urls"] = [re.sub(r":\d+(?=\?|$)", f":{nowhere}", url) for url in servers["urls"]]
        route.fulfill(response=answer, body=json.dumps(config))

    voice.page.route("**/voice/config*", lose_ice)
    voice.page.route_web_socket("**/voice/socket*", lambda socket: socket.close(code=1011))
    close_udp(voice)
    voice.page.evaluate(NO_WEBTRANSPORT)
    voice.page.evaluate(NO_MICROPHONE)
    passing = {"address": "ok", "server": "ok", "echo": "waiting"}
    assert run(voice, "No") == dict.fromkeys(LINES, "failed") | passing
    for name, mend in {
        "microphone": "Allow it for this page next to the address bar",
        "speaker": "Turn the volume up",
        "websocket": "blocks WebSockets. Switch these off, or try another network.",
        "webrtc": "does not let WebRTC through, which uses UDP",
        "aoq": "does not let AOQ through, which uses UDP",
        "stun": "stun:127.0.0.1:",
        "turn": "does not answer. If WebRTC does not work either, try another network",
    }.items():
        expect(voice.page.locator(f"#{name} .check-mend")).to_contain_text(mend)
    voice.page.screenshot(path=screenshots / "check-failed.png", full_page=True)
    assert violations(voice.page) == []


def test_what_a_server_does_not_offer_or_allow_is_not_the_visitors_fault(
    quiet_browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    limits: dict[str, Any] = {"RTC_ENABLED": "0", "GUEST_SESSIONS_PER_HOUR": "1", "RESUME_GRACE_S": "0"}
    with running(tmp_path, **limits) as server:
        voice = open_page(address(server), browser=quiet_browser)
        found = run(voice, "Yes")
        ways = dict.fromkeys(("webrtc", "aoq", "stun", "turn"), "off")
        assert found == dict.fromkeys(LINES, "ok") | ways | {"microphone": "failed"}
        expect(voice.page.locator("#microphone")).to_contain_text("It is open, but nothing was heard.")
        expect(voice.page.locator("#webrtc")).to_contain_text("This server does not offer it.")
        found = run(voice, "Yes")
        assert (found["server"], found["websocket"]) == ("failed", "waiting")
        expect(voice.page.locator("#server")).to_contain_text("Guests may begin 1 conversations an hour")


def test_the_microphone_that_hears_the_speaker_tells_how_loudly(
    server: Server, quiet_browser: Browser, open_page: OpenPage
) -> None:
    voice = open_page(address(server), browser=quiet_browser)
    voice.page.evaluate(ROOM)
    run(voice)
    expect(voice.page.locator("#speaker")).to_contain_text("The microphone heard the tone.")
    expect(voice.page.locator("#echo")).to_contain_text(re.compile(r"Needs attention.*-(19|20|21) dB.*Use headphones"))


@pytest.mark.parametrize("locale", ["de-DE", "es-ES", "fr-FR", "ja-JP", "zh-CN"])
def test_the_check_speaks_the_visitors_language(
    proxy: FaultProxy, open_page: OpenPage, screenshots: Path, locale: str
) -> None:
    look: dict[str, Any] = {"viewport": {"width": 320, "height": 568}, "locale": locale}
    voice = open_page(f"http://127.0.0.1:{proxy.port}/check", **look)
    expect(voice.page.locator("#start")).not_to_have_text("Start the check")
    if locale == "de-DE":  # the longest words, from right to left too
        proxy.set_down(True)
        found = run(voice)
        assert (found["server"], found["microphone"], found["websocket"]) == ("failed", "failed", "waiting")
        expect(voice.page.locator("#server")).to_contain_text("Prüfen Sie Ihre Netzwerkverbindung")
        voice.page.evaluate("document.documentElement.dir = 'rtl'")
    voice.page.screenshot(path=screenshots / f"check-{locale}.png", full_page=True)
    assert voice.overflow <= 0
    assert voice.page.evaluate(CUT_OFF, ".checks") == []
