"""How the documentation looks, and whether everybody can read it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, StorageState, expect

from voiceapp.docs.families import FAMILIES
from voiceapp.docs.views import PLAYGROUND

from .accessibility import RULES, axe_source
from .conftest import OpenWindow
from .server import Server
from .speech import write_microphone
from .test_looks import SIZES, VARIANTS

PAGES = {
    "connect": "/docs/connect",
    "reference": "/docs",
    "playground": "/docs/playground",
    "family": "/docs/reference/chat",
    "errors": "/docs/reference/errors",
    "events": "/docs/reference/events",
    "tasks": "/docs/reference/events-run-task",
    "search": "/docs/search?q=key",
    "contents": "/docs/manual",
    "manual": "/docs/manual/connecting-a-program",
}
NARROWEST = 320
PARSED = """(codes) => {
    const AsyncFunction = (async () => {}).constructor;
    return codes.filter((code) => {
        try {
            return !new AsyncFunction(code);
        } catch {
            return true;
        }
    });
}"""
"""Which of some programs are not JavaScript."""


@pytest.mark.parametrize(("width", "scheme"), VARIANTS)
def test_everybody_can_read_it(
    open_window: OpenWindow, server: Server, screenshots: Path, width: int, scheme: str
) -> None:
    page = open_window(viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme)
    for name, address in PAGES.items():
        page.goto(f"http://127.0.0.1:{server.port}{address}")
        page.screenshot(path=screenshots / f"docs-{name}-{width}-{scheme}.png")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        if name in ("family", "playground"):
            expect(page.locator(".try form").last).to_be_visible()
            page.locator(".try").first.scroll_into_view_if_needed()
            page.screenshot(path=screenshots / f"docs-try-{name}-{width}-{scheme}.png")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.evaluate(axe_source())
        rules = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
        # What is in order would be megabytes to pass on.
        found = page.evaluate("async (rules) => (await axe.run(document, rules)).violations", rules)
        assert [(fault["id"], [node["target"] for node in fault["nodes"]]) for fault in found] == []


@pytest.fixture
def page(open_window: OpenWindow, server: Server) -> Page:
    return open_window(base_url=f"http://127.0.0.1:{server.port}")


def test_every_page_holds_on_the_narrowest_phone(page: Page) -> None:
    page.set_viewport_size({"width": NARROWEST, "height": 640})
    for address in (*PAGES.values(), *(f"/docs/reference/{family.slug}" for family in FAMILIES)):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, address


def test_the_examples_are_shown_in_the_language_that_was_chosen_and_copied(page: Page) -> None:
    page.goto("/docs/reference/tasks")
    first = page.locator(".example").first
    expect(first.locator("pre:visible")).to_have_attribute("data-language", "curl")
    first.get_by_label("Python").check()
    for example in page.locator(".example").all():
        expect(example.locator("pre:visible")).to_have_attribute("data-language", "python")
    page.goto("/docs/reference/chat")
    example = page.locator(".example").last
    shown = example.locator("pre:visible")
    expect(shown).to_have_attribute("data-language", "python")
    example.get_by_role("button").click()
    expect(example.get_by_role("button")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == shown.text_content()


@pytest.fixture
def key(open_window: OpenWindow, server: Server, operator_state: StorageState) -> str:
    server.manage("createkey", "--account", "Acme")  # the account that an operator talks in the name of
    page = open_window(storage_state=operator_state)
    page.goto(f"http://127.0.0.1:{server.port}/docs/connect")
    page.get_by_role("button", name="Make a key").click()
    key = page.locator(".new-key code").text_content()
    page.context.close()
    assert key
    return key


def test_an_operation_is_tried_with_a_key_that_stays_in_the_page(page: Page, key: str) -> None:
    page.goto("/docs/reference/embeddings")
    place = page.locator(".try").first
    place.locator("summary").click()
    send, status, shown = place.get_by_role("button", name="Send"), place.get_by_role("status"), place.locator(".tried")
    send.click()
    expect(status).to_contain_text("The API key is missing.")
    place.locator("input[type=password]").fill(f"{key}x")
    with page.expect_response("**/api/v1/services/**"):
        send.click()
    expect(status).to_contain_text("401 Unauthorized")
    expect(shown).to_contain_text("InvalidApiKey")
    place.locator("input[type=password]").fill(key)
    with page.expect_request("**/api/v1/services/**") as sent:
        send.click()
    expect(status).to_contain_text("200 OK after")
    expect(status).to_contain_text("ms")
    expect(shown).to_contain_text("text_index")
    expect(shown).to_contain_text("Bearer sk-…")
    assert sent.value.headers["authorization"] == f"Bearer {key}"
    assert key not in page.url + page.content() + page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}])"
    )
    page.reload()
    place.locator("summary").click()
    expect(place.locator("input[type=password]")).to_have_value("")


def test_the_playground_sends_a_call_of_each_kind_and_shows_it_as_a_program(
    page: Page, key: str, tmp_path: Path, screenshots: Path
) -> None:
    recording = write_microphone(tmp_path / "question.wav", "What is two plus two?")
    page.goto("/docs/playground")

    def tried(title: str) -> Any:
        place = page.locator("section").filter(has=page.get_by_role("heading", name=title, exact=True))
        place.locator("summary").click()
        place.locator("input[type=password]").fill(key)
        if title == "Transcription":
            place.locator("input[type=file]").set_input_files(recording)
        place.get_by_role("button", name="Send").click()
        expect(place.get_by_role("status")).to_contain_text("ms, complete after")
        expect(place.get_by_role("button", name="Stop")).to_be_hidden()
        expect(place.get_by_role("status")).to_contain_text("200 OK")
        return place

    places = {title: tried(title) for title in PLAYGROUND}
    expect(places["A task"].locator(".tried")).to_contain_text("SUCCEEDED")
    for title in ("Speech", "A task"):
        player = places[title].locator("audio")
        page.wait_for_function("(player) => player.duration > 0.5", arg=player.element_handle())
    programs = places["Transcription"].locator(".example")
    places["Transcription"].get_by_text("As a program").click()
    command = programs.locator("pre:visible").text_content()
    assert key not in command
    environment = {**os.environ, "API_KEY": key, "no_proxy": "*"}
    run = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    heard = json.loads(run.stdout)["text"]
    expect(places["Transcription"].locator(".tried")).to_contain_text(f'"text": "{heard}"')
    programs.get_by_label("Python").check()
    expect(programs.locator("pre:visible")).to_contain_text('open("question.wav", "rb")')
    programs.get_by_role("button").click()
    assert page.evaluate("navigator.clipboard.readText()") == programs.locator("pre:visible").text_content()
    page.screenshot(path=screenshots / "docs-playground-tried.png", full_page=True)


def test_the_programs_in_javascript_are_javascript(page: Page) -> None:
    codes: list[str] = []
    for family in FAMILIES:
        page.goto(f"/docs/reference/{family.slug}")
        codes += page.locator("[data-language=javascript]").all_text_contents()
    assert len(codes) > 40
    page.goto("about:blank")  # where no policy forbids to make functions of text
    assert page.evaluate(PARSED, [*codes, "const wrong ="]) == ["const wrong ="]


def test_the_key_leads_to_the_search(page: Page) -> None:
    page.goto("/docs/manual/webhooks")
    page.keyboard.press("/")
    page.keyboard.type("cancel/task")
    expect(page.get_by_role("searchbox")).to_have_value("cancel/task")
    page.get_by_role("searchbox").fill("cancel task")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/search?q=cancel+task")
    expect(page.locator("mark").first).to_be_visible()
    page.get_by_role("link", name="Cancel a task", exact=True).click()
    page.wait_for_url("**/docs/reference/tasks#tasks_cancel_task")


def test_it_is_read_with_the_keyboard_and_without_scripts(open_window: OpenWindow, server: Server) -> None:
    page = open_window(java_script_enabled=False, viewport={"width": 1280, "height": 800})
    page.goto(f"http://127.0.0.1:{server.port}/docs/manual")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/manual#text")
    page.locator(".contents a").first.press("Enter")
    page.wait_for_url("**/docs/manual/what-it-is")
    page.locator("a[rel=next]").press("Enter")
    page.wait_for_url("**/docs/manual/talking-on-the-page")
    assert page.locator("h1").inner_text() == "Talking on the page"
    page.get_by_role("searchbox").fill("webhook")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/search?q=webhook")
    page.locator("main a").first.click()
    page.goto(f"http://127.0.0.1:{server.port}/docs/reference/chat")
    example = page.locator(".example").first
    assert example.get_by_role("button").count() == 0
    example.get_by_label("JavaScript").check()
    expect(example.locator("pre:visible")).to_have_attribute("data-language", "javascript")
