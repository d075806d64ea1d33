"""The talk button on a page of another site: in a real browser, from another origin, under a strict content policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from playwright.sync_api import Browser, FrameLocator, Page, expect

from tests.web import everywhere, listening_beside

from .accessibility import axe_source
from .conftest import QUESTION
from .server import Server, running

PAGE = """<!doctype html><html lang="{language}"><title>A shop</title><h1>A shop</h1><main><p>Tea and coffee.</p></main>
<script src="{server}/embed.js" {attributes} async></script>"""


class Site:
    """A site of another owner; `address` is its origin."""

    def __init__(self, server: Server) -> None:
        self.attributes, self.language, self.address = "", "en", ""
        self._voice = f"http://127.0.0.1:{server.port}"

    async def show(self, request: web.Request) -> web.Response:
        page = PAGE.format(server=self._voice, attributes=self.attributes, language=self.language)
        policy = f"default-src 'none'; script-src {self._voice}; frame-src {self._voice}"
        return web.Response(text=page, content_type="text/html", headers={"Content-Security-Policy": policy})


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose own page is for people who signed in."""
    with running(tmp_path_factory.mktemp("strict"), PUBLIC_PAGE="login", DEFAULT_VOICE="en-us") as server:
        yield server


@pytest.fixture
def site(strict: Server) -> Iterator[Site]:
    site = Site(strict)
    with listening_beside(everywhere(site.show)) as origin:
        site.address = origin.replace("127.0.0.1", "localhost")
        yield site


@pytest.fixture
def page(quiet_browser: Browser) -> Iterator[Page]:
    with quiet_browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce") as context:
        yield context.new_page()


def allow(server: Server, origin: str, *, at_once: int = 5, session_s: int = 180) -> None:
    server.execute(
        "insert into accounts_account (name, created_at, is_active) values (?, '2026-01-01', 1)", f"Guests of {origin}"
    )
    server.execute(
        """insert into accounts_guestsite (origin, sessions_at_once, sessions_per_hour, session_s, account_id)
        select ?, ?, 10, ?, id from accounts_account where name = ?""",
        *(origin, at_once, session_s, f"Guests of {origin}"),
    )


def opened(page: Page) -> FrameLocator:
    page.locator("voiceapp-talk .talk").click()
    frame = page.frame_locator("voiceapp-talk iframe")
    expect(frame.locator("body[data-loaded]")).to_be_attached()
    return frame


def test_visitors_of_an_allowed_site_talk_on_its_page(
    page: Page, strict: Server, site: Site, screenshots: Path
) -> None:
    allow(strict, site.address, session_s=65)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.extend([message.text] if message.type == "error" else []))
    page.goto(site.address)
    states = page.evaluate_handle(
        "() => { const seen = []; addEventListener('state', ({ detail }) => seen.push(detail)); return seen; }"
    )
    frame = opened(page)
    expect(frame.locator("#sign-in")).to_have_count(0)
    frame.locator("#orb").click()  # the microphone opens within the frame
    expect(frame.locator("body[data-state='listening']")).to_be_attached()
    expect(frame.locator("#link-text")).to_have_text("1:05 left")  # the site's own limit
    frame.locator("#message").fill(QUESTION)
    frame.locator("#message").press("Enter")
    expect(frame.locator("#caption-assistant")).not_to_be_empty()
    expect(frame.locator("body[data-state='ai-speaking']")).to_be_attached()
    page.screenshot(path=screenshots / "embedded.png")
    assert {"idle", "listening", "ai-speaking"} <= set(states.json_value())
    page.evaluate(axe_source())
    found = page.evaluate("async () => (await axe.run()).violations.map(({ id, nodes }) => [id, nodes[0].html])")
    assert [violation for violation in found if violation[0] != "region"] == []  # the shop's own page has no banner
    page.locator("voiceapp-talk .close").click()
    expect(page.locator("voiceapp-talk .talk")).to_be_focused()
    assert strict.row("select is_guest from realtime_realtimesession where ended_at is not null") == (1,)
    assert complaints == [], complaints


def test_another_site_shows_that_it_may_not(page: Page, strict: Server, site: Site) -> None:
    """A page that names the origin of an allowed site is not shown either: the browser knows where it stands."""
    allow(strict, "https://allowed.example.org")
    page.clock.install()
    page.goto(site.address)
    page.locator("voiceapp-talk .talk").click()
    page.clock.fast_forward(16_000)
    expect(page.locator("voiceapp-talk [role=alert]")).to_have_text(
        "The voice assistant is not available on this page."
    )
    refused = page.request.get(f"http://127.0.0.1:{strict.port}/embed?site={site.address}")
    assert refused.status == 403
    assert "frame-ancestors 'none'" in refused.headers["content-security-policy"]
    named = page.request.get(f"http://127.0.0.1:{strict.port}/embed?site=https://allowed.example.org")
    assert named.status == 200
    assert "frame-ancestors https://allowed.example.org;" in named.headers["content-security-policy"] + ";"
    assert "x-frame-options" not in named.headers
    page.evaluate(
        """(address) => {
            const frame = document.createElement('iframe');
            frame.src = address;
            document.body.append(frame);
            return new Promise((resolve) => frame.addEventListener('load', resolve));
        }""",
        f"http://127.0.0.1:{strict.port}/embed?site=https://allowed.example.org",
    )
    assert all(frame.locator("#orb").count() == 0 for frame in page.frames)


def test_a_site_has_seats_of_its_own(page: Page, strict: Server, site: Site) -> None:
    allow(strict, site.address, at_once=0)
    page.goto(site.address)
    frame = opened(page)
    frame.locator("#orb").click()
    expect(frame.locator("body[data-state='queued']")).to_be_attached()


def test_the_button_speaks_the_pages_language_and_takes_a_label_and_a_theme(
    page: Page, strict: Server, site: Site
) -> None:
    allow(strict, site.address)
    site.language = "de-CH"
    page.goto(site.address)
    expect(page.locator("voiceapp-talk .talk")).to_have_text("Sprechen Sie mit uns")
    expect(opened(page).locator("html")).to_have_attribute("lang", "de")
    site.attributes = 'data-label="Fragen?" data-theme="dark"'
    page.goto(site.address)
    expect(page.locator("voiceapp-talk .talk")).to_have_text("Fragen?")
    expect(opened(page).locator("html")).to_have_attribute("data-theme", "dark")
