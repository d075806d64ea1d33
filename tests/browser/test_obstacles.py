"""What can be in the way of a conversation, what the page says about it, and how people get on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.outages.faults import FaultProxy

from .conftest import OpenPage
from .server import running


def test_a_session_that_is_over_is_gone_on_with_until_a_guests_hour_is_used_up(
    open_page: OpenPage, tmp_path: Path, screenshots: Path
) -> None:
    limits: dict[str, Any] = {"GUEST_SESSION_S": "8", "GUEST_SESSIONS_PER_HOUR": "2", "RESUME_GRACE_S": "0"}
    with running(tmp_path, **limits) as strict, closing(FaultProxy(strict.port)) as proxy:
        voice = open_page(f"http://127.0.0.1:{proxy.port}/")
        voice.type("What is two plus two?")
        voice.wait("ai-speaking")
        expect(voice.expect_card("session_ending")).to_contain_text("4 seconds left")
        over = voice.expect_card("session_over")
        expect(over).to_contain_text("8 seconds are over")
        expect(voice.page.locator(".card")).to_have_count(1)
        assert voice.state == "idle"  # nothing failed
        over.get_by_role("button").click()
        voice.wait("listening")
        assert [role for role, _ in voice.turns()] == ["user", "assistant", "assistant"]
        assert voice.turns()[-1][1] == "Our time is nearly up. You can go on from here afterwards."
        assert voice.sent("conversation.item.create") == 1 + 2, "the next session is not told of the end of the last"
        proxy.cut()
        voice.wait("error")  # and does not try again
        card = voice.expect_card("guest_limit")
        expect(card).to_contain_text("2 conversations an hour")
        expect(card.get_by_role("button")).to_have_text("Sign in")
        voice.page.screenshot(path=screenshots / "guest-limit.png")


def test_an_unreachable_server_is_named_and_nothing_typed_is_lost(open_page: OpenPage, proxy: FaultProxy) -> None:
    voice = open_page()
    proxy.set_down(True)
    voice.type("Are you there?")
    card = voice.expect_card("unreachable")
    assert voice.page.input_value("#message") == "Are you there?"
    proxy.set_down(False)
    card.get_by_role("button").click()
    voice.wait("listening")
    expect(voice.page.locator(".card")).to_have_count(0)


def test_missing_models_are_named_with_the_command(open_page: OpenPage, tmp_path: Path, screenshots: Path) -> None:
    (tmp_path / "models").mkdir()
    with running(tmp_path, ready=False, MODELS_DIR=str(tmp_path / "models")) as bare:
        voice = open_page(f"http://127.0.0.1:{bare.port}/")
        card = voice.expect_card("models_missing")
        expect(card).to_contain_text("manage.py fetch_models")
        voice.page.screenshot(path=screenshots / "models-missing.png")
        voice.orb.click()
        voice.wait("error")
        voice.expect_card("models_missing")


def test_a_server_that_is_still_loading_is_waited_for(open_page: OpenPage, tmp_path: Path) -> None:
    with running(tmp_path, ready=False) as starting:
        voice = open_page(f"http://127.0.0.1:{starting.port}/")
        voice.type("What is two plus two?")
        expect(voice.caption("assistant")).to_contain_text("4", timeout=120_000)
        assert voice.page.locator(".card").count() == 0


def test_a_microphone_that_does_not_open_is_explained(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.evaluate(
        """() => {
            const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
            navigator.mediaDevices.getUserMedia = async (wish) => {
                if (window.fault) throw new DOMException("no", window.fault);
                return ask(wish);
            };
        }"""
    )
    for error, code in (
        ("NotAllowedError", "microphone_denied"),
        ("NotFoundError", "microphone_missing"),
        ("NotReadableError", "microphone_busy"),
    ):
        voice.page.evaluate("(fault) => { window.fault = fault; }", error)
        voice.orb.click()
        card = voice.expect_card(code)
        voice.wait("idle")
    voice.type("What is two plus two?")
    voice.wait("ai-speaking")
    microphone = voice.page.locator("#mute")
    microphone.click()
    expect(card).to_be_visible()
    voice.page.evaluate("window.fault = null")
    card.get_by_role("button", name="Try again").click()
    expect(card).to_have_count(0)
    expect(microphone).to_have_text("Mute")


def test_the_notice_of_an_echo_can_be_closed_and_expires(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.clock.install()
    show = """async () => {
        const main = document.querySelector("script[type=module]").src;
        const { Notices } = await import(main.replace("main.js", "views/notices.js"));
        new Notices(() => {}).show({ code: "echo", message: "" });
    }"""
    voice.page.evaluate(show)
    card = voice.expect_card("echo")
    card.get_by_role("button", name="Close").click()
    expect(card).to_have_count(0)
    voice.page.evaluate(show)
    expect(card).to_be_visible()
    voice.page.clock.fast_forward(21_000)
    expect(card).to_have_count(0)


def test_an_insecure_address_still_lets_people_type(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.evaluate("Object.defineProperty(window, 'isSecureContext', { value: false })")
    voice.page.evaluate("Object.defineProperty(navigator, 'mediaDevices', { value: undefined })")
    voice.orb.click()
    card = voice.expect_card("insecure")
    card.get_by_role("button").click()
    expect(voice.page.locator("#message")).to_be_focused()
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")


def test_a_browser_that_blocks_sound_offers_a_tap(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.evaluate(
        """() => {
            const resume = AudioContext.prototype.resume;
            Object.defineProperty(AudioContext.prototype, 'state', { configurable: true, get: () => 'suspended' });
            window.allow = () => { delete AudioContext.prototype.state; };
            AudioContext.prototype.resume = () => new Promise(() => {});
            window.restore = () => { AudioContext.prototype.resume = resume; };
        }"""
    )
    voice.type("What is two plus two?")
    card = voice.expect_card("autoplay_blocked")
    expect(card.get_by_role("button")).to_have_text("Tap to hear")
