"""Every route under the API roots: in the OpenAPI document, keyed, in its family's shape, with and without a slash."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from django.test import AsyncClient
from django.urls import URLPattern, URLResolver, get_resolver

from tests.conftest import Member
from voiceapp.api import openapi_document
from voiceapp.http.error_responses import AGENT_ROOTS
from voiceapp.http.examples import BODIES
from voiceapp.http.middleware import API_ROOTS

Branches = list[URLPattern | URLResolver]
METHODS = ("get", "post", "put", "patch", "delete")


def walk(patterns: Branches, prefix: str = "/") -> Iterator[str]:
    """Every address in the URL map, as the OpenAPI document writes it."""
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from walk(pattern.url_patterns, address)
        else:
            yield re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", address)


ROUTES = sorted({address for address in walk(get_resolver().url_patterns) if address.startswith(API_ROOTS)})
OPERATIONS = [route for route in ROUTES if route != "/openapi.json"]


def test_there_are_routes() -> None:
    assert len(OPERATIONS) >= 1


LINKS = "/api/v1/files/{token}/{name}"
"""The one route without a key: its address is signed, and a wrong one leads nowhere."""


def test_no_route_is_written_with_a_slash_at_its_end() -> None:
    assert [route for route in ROUTES if route.endswith("/")] == []


def test_every_route_is_in_the_openapi_document() -> None:
    assert set(OPERATIONS) == set(openapi_document()["paths"])


@pytest.mark.parametrize("route", OPERATIONS)
@pytest.mark.parametrize("slash", ["", "/"])
async def test_every_route_wants_a_key_and_knows_its_methods(route: str, slash: str, db: None) -> None:
    client = AsyncClient()
    address = re.sub(r"\{\w+\}", "x", route) + slash
    served = openapi_document()["paths"][route].keys()
    for method in METHODS:
        answer = await client.generic(method.upper(), address, b"{", "application/json")
        without_key = 404 if route == LINKS else 401
        assert answer.status_code == (without_key if method in served else 405), f"{method} {address}"
        assert answer["Content-Type"] == "application/json"
        body = answer.json()
        assert body["request_id"] == answer["X-Request-ID"]
        if route.startswith("/compatible-mode/"):
            assert body.keys() == {"error", "request_id"}
        elif route.startswith(AGENT_ROOTS):
            assert body.keys() == {"type", "error", "request_id"}
            assert body["error"].keys() == {"code", "message"}
        else:
            assert body.keys() >= {"code", "message"}
            assert ("error" in body) == route.startswith("/compatible-api/")
        if method not in served:
            assert {allowed.strip().lower() for allowed in answer["Allow"].split(",")} == set(served)


UNSCOPED = {LINKS, "/api/v1/tokens", "/api/v1/webrtc/inference", "/api/v1/webrtc/sessions/{name}"}
JSON_ROUTES = [
    route
    for route, operations in openapi_document()["paths"].items()
    if route not in UNSCOPED
    if all(
        [*one.get("requestBody", {}).get("content", ["application/json"])] == ["application/json"]
        for one in operations.values()
    )
]
"""Offers and files are refused in the tests of their rooms."""


@pytest.mark.parametrize("route", JSON_ROUTES)
async def test_every_route_wants_a_scope(route: str, alice: Member) -> None:
    alice.row.scopes = []
    await alice.row.asave()
    address, body = re.sub(r"\{\w+\}", "x", route), json.dumps(BODIES.get(route, {}))
    key = {"Authorization": alice.authorization}
    for method in openapi_document()["paths"][route]:
        answers = [
            await AsyncClient().generic(method.upper(), address, body, "application/json", headers=key | more)
            for more in ({}, {"X-DashScope-Async": "enable"})
        ]
        assert min(answer.status_code for answer in answers) >= 400
        assert any(b"may not be used for" in answer.content for answer in answers), method
