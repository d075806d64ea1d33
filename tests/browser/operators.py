"""Somebody who runs the installation, at the operators' site."""

from __future__ import annotations

from playwright.sync_api import Page, expect

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
