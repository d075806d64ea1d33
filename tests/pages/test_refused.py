"""What a person reads instead of a page: what is the matter, and what they or the operator can do."""

from __future__ import annotations

import pytest
from django.test import Client, RequestFactory
from django.views.defaults import server_error
from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


def test_an_address_where_nothing_is_leads_back_to_the_page() -> None:
    answer = Client().get("/nothing/here")
    assert answer.status_code == 404
    assert "No page exists at this address" in (page := answer.content.decode())
    assert 'href="/"' in page


@pytest.mark.parametrize(
    ("typed", "page"),
    [("/admin", "/admin/"), ("/docs/", "/docs"), ("/docs/manual/?q=a", "/docs/manual?q=a"), ("/privacy/", "/privacy")],
)
def test_the_slash_at_the_end_of_a_page_does_not_matter(typed: str, page: str) -> None:
    answer = Client().get(typed)
    assert (answer.status_code, answer["Location"]) == (302, page)


def test_a_page_that_is_switched_off_does_not_lead_to_itself(settings: Settings) -> None:
    settings.PUBLIC_PAGE = "off"
    assert 'href="/"' not in Client().get("/").content.decode()


def test_a_host_that_is_not_known_tells_the_operator_which_setting_it_is() -> None:
    answer = Client().get("/", HTTP_HOST="elsewhere.example")
    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.content.decode()


def test_a_form_without_its_token_says_what_to_do() -> None:
    answer = Client(enforce_csrf_checks=True).post("/login", {"username": "paula", "password": "secret"})
    assert answer.status_code == 403
    page = answer.content.decode()
    assert "reload the page" in page
    assert "CSRF_TRUSTED_ORIGINS" in page


def test_a_failure_of_ours_is_said_to_be_ours() -> None:
    answer = server_error(RequestFactory().get("/"))
    assert answer.status_code == 500
    assert "wrong on our side" in answer.content.decode()
