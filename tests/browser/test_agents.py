"""An agent as operators compose it: made, tried, published and restored, and what visitors meet of it."""

from __future__ import annotations

from playwright.sync_api import Browser, StorageState, expect

from tests.outages.faults import FaultProxy

from .conftest import OpenPage
from .page import VoicePage
from .server import Server

MENU = b"# Menu\n\nThe pumpkin soup costs nine euros and fifty cents."


def test_an_agent_is_made_tried_published_and_restored(
    server: Server, proxy: FaultProxy, quiet_browser: Browser, operator_state: StorageState, open_page: OpenPage
) -> None:
    def answered(path: str, words: str, **options: StorageState) -> VoicePage:
        voice = open_page(f"http://127.0.0.1:{proxy.port}/a/kitchen{path}", **options)
        voice.talk()
        expect(voice.caption("assistant")).to_contain_text(words)
        return voice

    def save(words: str, button: str) -> None:
        desk.get_by_label("First words").fill(words)
        desk.get_by_role("button", name=button).click()

    server.manage("createkey", "--account", "kitchen")  # in whose name the operator talks
    desk = quiet_browser.new_context(storage_state=operator_state).new_page()
    desk.goto(f"http://127.0.0.1:{server.port}/admin/agents/agent/add/")
    desk.locator("#id_name").fill("kitchen")
    desk.get_by_label("Title").fill("The kitchen")
    desk.get_by_label("Public").check()
    desk.get_by_label("Mind").select_option("skills")
    desk.get_by_label("Add documents").set_input_files({"name": "menu.md", "mimeType": "text/plain", "buffer": MENU})
    save("The kitchen as a draft.", "Save and call it")
    desk.wait_for_url("**/a/kitchen?version=draft")
    trial = answered("?version=draft", "The kitchen as a draft.", storage_state=operator_state)
    trial.type("What does the pumpkin soup cost?")
    expect(trial.caption("assistant")).to_contain_text("nine euros")
    refused = quiet_browser.new_context().request.get(f"http://127.0.0.1:{server.port}/a/kitchen")
    assert refused.status == 404, "nothing is published"

    desk.goto(f"http://127.0.0.1:{server.port}/admin/agents/agent/")
    desk.get_by_role("link", name="kitchen").click()
    save("This is the first kitchen.", "Save and publish")
    expect(desk.get_by_text("New conversations have kitchen@1.")).to_be_visible()
    expect(answered("", "This is the first kitchen.").page.get_by_role("heading", name="The kitchen")).to_be_visible()
    save("This is the second kitchen.", "Save and publish")
    expect(desk.get_by_text("New conversations have kitchen@2.")).to_be_visible()
    answered("", "This is the second kitchen.")

    desk.locator("button[name=_restore][value='1']").click()
    expect(desk.get_by_label("First words")).to_have_value("This is the first kitchen.")
    desk.get_by_role("button", name="Save and publish").click()
    expect(desk.get_by_text("New conversations have kitchen@3.")).to_be_visible()
    answered("", "This is the first kitchen.")
    desk.context.close()
