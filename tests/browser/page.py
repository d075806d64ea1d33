"""The voice page as a person uses it."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import ConsoleMessage, Page, expect

PATIENCE_MS = 30_000
"""For what takes a second where a machine has time. For what is to take no more than that, a test says so."""
expect.set_options(timeout=PATIENCE_MS)

LIVE = ("listening", "user-speaking", "processing", "ai-speaking")


class VoicePage:
    """One open page. `complaints` holds what the console and the content policy objected to."""

    def __init__(self, page: Page, address: str, preferences: dict[str, Any]) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._note_complaint)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.add_init_script(
            """addEventListener('securitypolicyviolation', (event) => {
                console.error(`CSP ${event.violatedDirective} ${event.blockedURI}`);
            });"""
        )
        if preferences:
            page.add_init_script(
                f"""if (!localStorage.getItem('voiceapp.preferences')) {{
                    localStorage.setItem('voiceapp.preferences', {json.dumps(json.dumps(preferences))});
                }}"""
            )
        page.goto(address)
        page.wait_for_selector("body[data-loaded]")

    def _note_complaint(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    @property
    def orb(self) -> Any:
        return self.page.locator("#orb")

    @property
    def state(self) -> str:
        return str(self.page.evaluate("document.body.dataset.state"))

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def wait(self, *states: str, timeout: int = PATIENCE_MS) -> None:
        self.page.wait_for_selector(", ".join(f'body[data-state="{state}"]' for state in states), timeout=timeout)

    def wait_spoken(self, characters: int = 20) -> None:
        """Until so much of the reply in the caption has been spoken."""
        spoken = self.page.locator("#caption-assistant .spoken")
        expect(spoken).to_have_text(re.compile(rf"[\s\S]{{{characters}}}"))

    def talk(self) -> None:
        """Press the orb and wait until the conversation is open."""
        self.orb.click()
        self.wait(*LIVE)

    def type(self, text: str) -> None:
        self.page.fill("#message", text)
        self.page.press("#message", "Enter")

    def caption(self, who: str) -> Any:
        return self.page.locator(f"#caption-{who}")

    def turns(self) -> list[tuple[str, str]]:
        """(role, words) of the transcript, what was not heard left out."""
        return [
            (str(role), str(text))
            for role, text in self.page.evaluate(
                """() => [...document.querySelectorAll('.turn')].map((turn) => {
                    const words = turn.querySelector('.turn-text').cloneNode(true);
                    words.querySelector('.unheard')?.remove();
                    return [turn.dataset.role, words.textContent.trim()];
                })"""
            )
        ]

    def sent(self, kind: str) -> int:
        """How many rows of the event drawer are events of this type, either way."""
        return int(self.page.locator(f'.event[data-type="{kind}"]').count())

    def set_switch(self, identifier: str, is_on: bool) -> None:
        self.page.click("#open-settings")
        self.page.set_checked(f"#{identifier}", is_on)
        self.page.keyboard.press("Escape")
        expect(self.page.locator("#settings")).to_be_hidden()

    def expect_card(self, code: str) -> Any:
        card = self.page.locator(f'.card[data-code="{code}"]')
        expect(card).to_be_visible()
        return card
