"""A person sets up a second factor and signs in with it."""

from __future__ import annotations

import time
from pathlib import Path

import pyotp
import segno
from playwright.sync_api import Browser, Page, expect

from .accessibility import violations
from .operators import check_fits
from .server import Server

MODULES = """(picture) => {
    const size = picture.naturalWidth;
    const context = new OffscreenCanvas(size, size).getContext("2d");
    context.drawImage(picture, 0, 0);
    const { data } = context.getImageData(0, 0, size, size);
    const row = (y) => Array.from({ length: size }, (_, x) => (data[4 * (y * size + x)] < 128 ? 1 : 0));
    return [picture.width, Array.from({ length: size }, (_, y) => row(y))];
}"""
"""Width of the picture as it is shown, and its pixels: one for each module of the code."""
PERSON = "User.objects.create_user('paula', password='a-long-password')"


def code(secret: str, steps: int) -> str:
    return pyotp.TOTP(secret).at(time.time(), counter_offset=steps)


def test_a_person_sets_up_codes_and_signs_in_with_one(
    quiet_browser: Browser, server: Server, screenshots: Path
) -> None:
    server.manage("shell", "--command", f"from django.contrib.auth.models import User; {PERSON}")
    root = f"http://127.0.0.1:{server.port}"
    with quiet_browser.new_context() as context:
        page, complaints = context.new_page(), list[str]()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)

        def look(name: str) -> None:
            for colours in ("light", "dark"):
                page.emulate_media(color_scheme=colours)
                for width in (390, 1280):
                    check_fits(page, width)
                    page.screenshot(path=screenshots / f"two-factor-{name}-{width}-{colours}.png", full_page=True)
                assert violations(page) == []

        page.goto(f"{root}/two-factor")
        enter_password(page)
        secret = page.locator("#secret").inner_text()
        picture = page.get_by_role("img", name="QR code of the secret")
        width, modules = picture.evaluate(MODULES)
        address = pyotp.TOTP(secret).provisioning_uri(name="paula", issuer_name="Voiceapp")
        assert modules == [[int(dark) for dark in row] for row in segno.make_qr(address).matrix_iter(border=4)]
        assert width > 180, "a phone can read it"
        look("setup")
        page.get_by_role("textbox", name="Code").fill("000000")
        page.keyboard.press("Enter")
        wrong = "That code is wrong, or was used already. Enter the next one."
        expect(page.get_by_role("textbox", name="Code")).to_have_accessible_description(wrong)
        look("wrong")
        page.get_by_role("textbox", name="Code").fill(code(secret, 0))
        page.get_by_role("button", name="Turn on").click()
        expect(page.locator("#codes li")).to_have_count(8)
        look("codes")

        context.clear_cookies()
        page.goto(f"{root}/two-factor")
        enter_password(page)
        expect(page.get_by_role("textbox", name="Code")).to_be_focused()
        look("code")
        page.keyboard.type(code(secret, 1))
        page.keyboard.press("Enter")
        page.get_by_label("Password").fill("a-long-password")
        look("on")
        page.get_by_role("button", name="Turn off").click()
        expect(page.locator("#secret")).not_to_have_text(secret)
        assert complaints == []


def enter_password(page: Page) -> None:
    page.get_by_label("User name").fill("paula")
    page.get_by_label("Password").fill("a-long-password")
    page.get_by_role("button", name="Sign in").click()
