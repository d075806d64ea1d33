"""How the documentation looks, and whether everybody can read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from .accessibility import RULES, axe_source
from .server import Server
from .test_looks import SIZES, VARIANTS

PAGES = {"reference": "/docs", "contents": "/docs/manual", "manual": "/docs/manual/connecting-a-program"}


@pytest.mark.parametrize(("width", "scheme"), VARIANTS)
def test_everybody_can_read_it(
    quiet_browser: Browser, server: Server, screenshots: Path, width: int, scheme: str
) -> None:
    context = quiet_browser.new_context(viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    for name, address in PAGES.items():
        page.goto(f"http://127.0.0.1:{server.port}{address}")
        page.screenshot(path=screenshots / f"docs-{name}-{width}-{scheme}.png")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        if page.locator(".side-fold summary").is_visible():
            page.locator(".side-fold summary").click()
        page.evaluate(axe_source())
        rules = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
        # What is in order would be megabytes to pass on.
        found = page.evaluate("async (rules) => (await axe.run(document, rules)).violations", rules)
        assert [(fault["id"], [node["target"] for node in fault["nodes"]]) for fault in found] == []
    context.close()
    assert complaints == []


def test_it_is_read_with_the_keyboard_and_without_scripts(quiet_browser: Browser, server: Server) -> None:
    context = quiet_browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/docs/manual")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/manual#text")
    page.locator("main a").first.press("Enter")
    page.wait_for_url("**/docs/manual/what-it-is")
    page.locator("a[rel=next]").press("Enter")
    page.wait_for_url("**/docs/manual/talking-on-the-page")
    assert page.locator("h1").inner_text() == "Talking on the page"
    context.close()
