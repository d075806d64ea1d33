"""What a person sees when a page failed."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.urls import path


async def without_database(request: HttpRequest) -> HttpResponse:
    raise OperationalError("database is locked")


def without_reason(request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError


urlpatterns = [path("away", without_database), path("broken", without_reason)]
handler500 = "voiceapp.pages.failed.failed"

pytestmark = pytest.mark.urls(__name__)


async def test_it_says_that_the_database_is_away() -> None:
    response = await AsyncClient(raise_request_exception=False).get("/away")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert "database does not respond" in response.content.decode()
    assert "locked" not in response.content.decode()


def test_any_other_fault_is_a_page_that_failed() -> None:
    response = Client(raise_request_exception=False).get("/broken")
    assert response.status_code == 500
    assert "Something went wrong on our side" in response.content.decode()
