"""The person who runs the installation, at the operators' site."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, StorageState, expect

from .server import Server

NAME, PASSWORD = "olga", "olgas-long-password"


def make_operator(server: Server) -> None:
    """Give an installation its operator."""
    command = ("createsuperuser", "--noinput", "--username", NAME, "--email", "olga@example.org")
    server.manage(*command, DJANGO_SUPERUSER_PASSWORD=PASSWORD)


def sign_in(page: Page, server: Server) -> None:
    """Have a page show the operators' site to its operator."""
    page.goto(f"http://127.0.0.1:{server.port}/admin/")
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Operations")).to_be_visible()


def signed_in(browser: Browser, server: Server) -> StorageState:
    """What a browser keeps after its operator has signed in, for contexts that begin there."""
    context = browser.new_context()
    sign_in(context.new_page(), server)
    state = context.storage_state()
    context.close()
    return state


DESK = 1440
"""From this width on every list is a table, with the admin's own sidebar open beside it."""


def check_list(page: Page, width: int) -> None:
    """Assert that the list on the page fits a window of this width, names all its values and can be sorted."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )  # lists.js has seen it
    beside, titles, hidden, unnamed, is_table = page.evaluate(
        """() => {
            const list = document.querySelector("#result_list");
            const named = (head) => head.querySelector(".text")?.textContent.trim();
            const heads = [...list.tHead.rows[0].cells].filter(named);
            const links = [...list.tHead.querySelectorAll("th.sortable .text a")];
            const values = [...list.tBodies[0].querySelectorAll("td:not(.action-checkbox)")];
            return [
                Math.max(
                    document.documentElement.scrollWidth - innerWidth,
                    list.parentElement.scrollWidth - list.parentElement.clientWidth,
                ),
                heads.filter((head) => head.checkVisibility()).length / heads.length,
                links.filter((link) => !link.checkVisibility()).map((link) => link.textContent),
                values.filter((value) => !getComputedStyle(value, "::before").content.includes(":")).length,
                getComputedStyle(list).display === "table",
            ];
        }"""
    )
    assert beside <= 0, f"wider than a window of {width}"
    assert hidden == [], f"cannot be sorted at {width}"
    if width >= DESK:
        expect(page.locator("#nav-sidebar")).to_be_visible()
        assert is_table, f"room for columns at {width}, and none are shown"
    assert (titles == 1) if is_table else (unnamed == 0), f"values without a name at {width}"
