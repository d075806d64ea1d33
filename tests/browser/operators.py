"""The person who runs the installation, at the operators' site."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, StorageState, expect

from .server import Server

NAME, PASSWORD = "olga", "olgas-long-password"


def make_operator(server: Server) -> None:
    command = ("createsuperuser", "--noinput", "--username", NAME, "--email", "olga@example.org")
    server.manage(*command, DJANGO_SUPERUSER_PASSWORD=PASSWORD)


def sign_in(page: Page, server: Server) -> None:
    """Have a page show the operators' site to its operator."""
    page.goto(f"http://127.0.0.1:{server.port}/admin/")
    page.get_by_label("User name").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Open conversations")).to_be_visible()


def signed_in(browser: Browser, server: Server) -> StorageState:
    """What a browser keeps after its operator has signed in, for contexts that begin there."""
    context = browser.new_context()
    sign_in(context.new_page(), server)
    state = context.storage_state()
    context.close()
    return state


def check_fits(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"wider than a window of {width}"
