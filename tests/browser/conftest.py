"""A real browser with a spoken microphone, against a real server behind a network that can be cut."""

from __future__ import annotations

import functools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, Playwright, StorageState, expect, sync_playwright

from tests.outages.faults import FaultProxy

from .fonts import fontconfig_file
from .operators import make_operator, signed_in
from .page import PATIENCE_MS, VoicePage
from .server import Server, running
from .speech import write_microphone

EXPECTED = ("WebSocket connection to", "net::ERR_", "Failed to load resource: the server responded")
"""What the console says while the network is cut, or a refusal provoked, on purpose."""

OpenPage = Callable[..., VoicePage]
OpenWindow = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def is_browser(item: pytest.Item) -> bool:
        return Path(__file__).parent in item.path.parents

    for item in filter(is_browser, items):
        item.add_marker(pytest.mark.browser)
    # Last: Playwright's loop runs until the end of the run, and no other can run beside it in this thread. Files that
    # stay on one worker come first, large ones before small ones, so that workers end at about the same time.
    sizes = Counter(item.path for item in items)
    stays = {path: 'scope="module"' in path.read_text() for path in sizes}
    items.sort(
        key=lambda item: (True, not stays[item.path], -sizes[item.path]) if is_browser(item) else (False, False, 0)
    )


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With the voice that speaks to visitors: what it says is recognised again."""
    with running(tmp_path_factory.mktemp("server"), DEFAULT_VOICE="") as server:
        yield server


@pytest.fixture
def proxy(server: Server) -> Iterator[FaultProxy]:
    proxy = FaultProxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def silence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_microphone(tmp_path_factory.mktemp("microphone") / "silence.wav", 60.0)


LANGUAGE, TIME_ZONE = "en-US", "Europe/Berlin"


def launch(playwright: Playwright, microphone: Path, *, fonts: str = "wide", text_percent: int = 100) -> Browser:
    """A browser that hears a WAV file once, from the moment the microphone opens.

    It takes fonts (narrow or wide), size of text, language and time zone from here, and none of them from this machine.
    """
    installed = (path for name in ("chromium-headless-shell", "chromium") if (path := shutil.which(name)))
    chromium = os.environ.get("CHROMIUM") or next(installed, None)
    assert chromium, "no Chromium is installed: `make .venv/system.stamp` does it"
    inherited = {name: value for name, value in os.environ.items() if name not in ("LC_ALL", "LANGUAGE")}
    return playwright.chromium.launch(
        executable_path=chromium,
        env={**inherited, "LANG": "C.UTF-8", "TZ": TIME_ZONE, "FONTCONFIG_FILE": str(fontconfig_file(fonts))},
        args=[
            f"--lang={LANGUAGE}",
            f"--blink-settings=defaultFontSize={16 * text_percent // 100}",
            "--use-fake-ui-for-media-stream",
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-audio-capture={microphone}%noloop",
            "--autoplay-policy=no-user-gesture-required",
            "--no-sandbox",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-proxy-server",
        ],
    )


@pytest.fixture(scope="session")
def quiet_browsers(playwright: Playwright, silence: Path) -> Iterator[Callable[..., Browser]]:
    """Gives browsers whose microphone hears nothing, one for each choice of fonts and size of text (see `launch`)."""
    with ExitStack() as browsers:

        @functools.cache
        def quiet_browser(**choice: Any) -> Browser:
            browser = launch(playwright, silence, **choice)
            browsers.callback(browser.close)
            return browser

        yield quiet_browser


@pytest.fixture(scope="session")
def quiet_browser(quiet_browsers: Callable[..., Browser]) -> Browser:
    """A browser whose microphone hears nothing."""
    return quiet_browsers()


@pytest.fixture
def open_window(quiet_browser: Browser) -> Iterator[OpenWindow]:
    """Opens windows by Playwright's options, for pages that are no conversation; they may use the clipboard.

    What a console objects to fails the test, but for keys that are refused.
    """
    complaints: list[str] = []
    with ExitStack() as contexts:

        def open_window(**options: Any) -> Page:
            context = quiet_browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
            contexts.callback(context.close)
            page = context.new_page()
            page.on("console", lambda message: complaints.append(f"{message.text} {message.location['url']}"))
            page.on("pageerror", lambda error: complaints.append(error.message))
            return page

        yield open_window
    assert [each for each in complaints if "status of 401" not in each] == []


@pytest.fixture(scope="session")
def operator_state(quiet_browser: Browser, server: Server) -> StorageState:
    make_operator(server)
    return signed_in(quiet_browser, server)


QUESTION = "What can you do?"


@pytest.fixture(scope="session")
def whole_reply(quiet_browser: Browser, server: Server) -> tuple[str, str]:
    """What the assistant says to QUESTION when nothing comes between: all but the last sentence, and that."""
    with quiet_browser.new_context() as context:
        voice = VoicePage(context.new_page(), f"http://127.0.0.1:{server.port}/", {"transport": "websocket"})
        voice.set_switch("is-spoken", False)
        voice.type(QUESTION)
        expect(voice.page.locator('.event[data-type="response.done"]')).to_have_count(1)
        [_, (_, reply)] = voice.turns()
    begin, end = reply.rsplit(". ", 1)
    return f"{begin}.", end


@pytest.fixture
def open_page(quiet_browsers: Callable[..., Browser], proxy: FaultProxy) -> Iterator[OpenPage]:
    """Opens the voice page; `address`, `browser`, `transport` and Playwright's context options may be given.

    `look`, the choice of fonts and size of text that `launch` has, is for a browser that is not given.

    The WebSocket carries the conversation unless another transport is asked for: it is what the proxy can cut. None
    leaves the choice to the page. Developer tools and transcript are open, but on a `first_visit`.
    What the console or the content policy objected to fails the test.
    """
    opened: list[VoicePage] = []
    with ExitStack() as contexts:

        def open_page(
            address: str = "",
            *,
            browser: Browser | None = None,
            transport: str | None = "websocket",
            first_visit: bool = False,
            look: dict[str, Any] | None = None,
            **options: Any,
        ) -> VoicePage:
            usual = {
                **{"viewport": {"width": 1280, "height": 800}, "locale": LANGUAGE, "timezone_id": TIME_ZONE},
                "reduced_motion": "reduce",  # drawing motion without a graphics card takes a quarter of a core
            }
            context = (browser or quiet_browsers(**(look or {}))).new_context(**{**usual, **options})
            context.set_default_timeout(PATIENCE_MS)
            contexts.callback(context.close)
            address = address or f"http://127.0.0.1:{proxy.port}/"
            chosen = {} if first_visit else {"isDeveloper": True, "isTranscriptOpen": True}
            opened.append(VoicePage(context.new_page(), address, {**chosen, "transport": transport or "automatic"}))
            return opened[-1]

        yield open_page
        proxy.faults.is_silent = False
    complaints = [text for page in opened for text in page.complaints]
    assert [text for text in complaints if not any(known in text for known in EXPECTED)] == []


@pytest.fixture
def spoken_page(playwright: Playwright, open_page: OpenPage, tmp_path: Path) -> Iterator[Callable[..., VoicePage]]:
    """Opens the page in a browser of its own that hears the given texts and silences."""
    with ExitStack() as browsers:

        def spoken_page(*parts: str | float, fonts: str = "wide", voice: str = "en-us+m3", **options: Any) -> VoicePage:
            microphone = write_microphone(tmp_path / "microphone.wav", *parts, 60.0, voice=voice)
            browser = launch(playwright, microphone, fonts=fonts)
            browsers.callback(browser.close)
            return open_page(**options, browser=browser)

        yield spoken_page


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures for people to look at go."""
    place = Path(settings.BASE_DIR, "var", "screenshots")
    place.mkdir(parents=True, exist_ok=True)
    return place
