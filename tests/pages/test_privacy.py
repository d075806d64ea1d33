"""The privacy line and page tell visitors what this installation does, as its settings have it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from tests.models import LLAMA, UPSTREAM, offered

pytestmark = pytest.mark.django_db

TAG = re.compile(r"<[^>]+>")
OPERATORS_WORDS = re.compile(r"\b[A-Z]{2,}_[A-Z_]+\b|manage\.py|admin")
LINKS = ("/privacy", "/docs/manual/talking-on-the-page", "/docs/connect")


@pytest.fixture(autouse=True)
def open_to_guests(settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"


def read(address: str) -> str:
    """The words of a page as a guest reads them."""
    response = Client().get(address)
    assert response.status_code == 200
    body = response.content.decode().partition("<body")[2]
    return " ".join(TAG.sub(" ", body).split())


@pytest.mark.parametrize(
    ("days", "on_the_page", "in_full"),
    [
        (0, "It does not keep what is said.", "not keep the words of a conversation."),
        (1, "It keeps what is said as text for 1 day, and its operators can read it.", "for 1 day, and then"),
        (45, "It keeps what is said as text for 45 days, and its operators can read it.", "for 45 days, and then"),
    ],
)
def test_it_says_how_long_words_are_kept_and_who_reads_them(
    settings: Settings, days: int, on_the_page: str, in_full: str
) -> None:
    settings.TRANSCRIPT_DAYS = days
    assert f"This server does not record your voice. {on_the_page}" in read("/")
    assert in_full in read("/privacy")
    assert ("can read" in read("/privacy")) is (days > 0)


def test_the_page_leads_to_help_reference_and_privacy() -> None:
    page = Client().get("/").content.decode()
    for address in LINKS:
        assert f'<a href="{address}" target="_blank">' in page
        assert Client().get(address).status_code == 200


def test_it_says_what_leaves_this_server(settings: Settings) -> None:
    usual = settings.VOICE_MODELS
    assert "Your words are not sent to another one." in read("/privacy")
    assert "another service" not in read("/privacy")
    with offered(settings, [LLAMA, *usual]):
        assert "It gets the words of the conversation as text." in read("/privacy")
        assert "Your words are not sent" not in read("/privacy")
    with offered(settings, [replace(LLAMA, name="local", runs_here=True, fallbacks=("llama",)), LLAMA, *usual]):
        assert "It gets the words of the conversation as text." in read("/privacy")
    settings.INSPECTION_BASE_URL = "http://[::1]:9"
    assert "Another server checks whether the words" in read("/privacy")
    assert "Your words are not sent" not in read("/privacy")
    elsewhere = [replace(card, runs_here=card.kind != "asr") for card in usual]
    with offered(settings, elsewhere):
        assert "It sends the sound to another server" in read("/privacy")
    with offered(settings, [*usual, UPSTREAM]):
        page = read("/privacy")
    assert "“Theirs” in Settings, you talk to another service, which gets the sound of your voice." in page
    assert "their-secret" not in page
    assert "voice.example.org" not in page


@pytest.mark.parametrize(("seconds", "words"), [(3600, "1 hour"), (43_200, "12 hours"), (14 * 86_400, "14 days")])
def test_it_says_for_how_long_the_browser_is_known(settings: Settings, seconds: int, words: str) -> None:
    settings.SESSION_COOKIE_AGE = seconds
    assert f"one that recognises your browser for {words}, whether you are signed in or not. It" in read("/privacy")


def test_it_speaks_to_visitors(settings: Settings) -> None:
    with offered(settings, [LLAMA, *settings.VOICE_MODELS, UPSTREAM]):
        for address in ("/", "/privacy"):
            assert OPERATORS_WORDS.findall(read(address)) == []


def test_it_can_be_read_before_signing_in_and_is_gone_with_the_page(settings: Settings) -> None:
    settings.PUBLIC_PAGE = "login"
    assert "This server does not record" not in read("/login")
    assert '<a href="/privacy">' in Client().get("/login").content.decode()
    assert "can read them" in read("/privacy")
    settings.PUBLIC_PAGE = "off"
    assert Client().get("/privacy").status_code == 404
