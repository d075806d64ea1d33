"""The examples that the reference shows: each is what its operation takes, and is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from aiohttp import AsyncResolver
from aiohttp.abc import ResolveResult
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.api import openapi_document
from voiceapp.engines.catalogue import catalogue
from voiceapp.examples import BODIES
from voiceapp.webhooks.models import WebhookEndpoint
from voiceapp.webhooks.secrets import new_secret, seal

WITH_BODY = [
    (method, path)
    for path, operations in openapi_document()["paths"].items()
    for method, operation in operations.items()
    if "application/json" in operation.get("requestBody", {}).get("content", {})
]
TASKS = [
    path
    for method, path in WITH_BODY
    for header in openapi_document()["paths"][path][method].get("parameters", [])
    if header["name"] == "X-DashScope-Async"
]


@pytest.fixture
def names_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that run tests may know no name server."""

    async def resolve(_: AsyncResolver, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="93.184.215.14", port=port, family=family, proto=0, flags=0)]

    monkeypatch.setattr(AsyncResolver, "resolve", resolve)


@pytest.fixture
def every_kind_is_served(settings: Settings) -> Iterator[None]:
    """Models that draw and film are elsewhere; to be named, nobody has to be there."""
    options = {"base_url": "http://127.0.0.1:9", "api_key": "", "model": ""}
    elsewhere = (("qwen-image", "image"), ("wan2.2-t2v-plus", "video"))
    provider = "voiceapp.engines.upstream.tasks.RelayedTasks"
    settings.VOICE_MODELS = [
        *settings.VOICE_MODELS,
        *({"name": name, "kind": kind, "provider": provider, "options": options} for name, kind in elsewhere),
    ]
    catalogue.cache_clear()
    yield
    catalogue.cache_clear()


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_every_body_has_an_example(method: str, path: str) -> None:
    media = openapi_document()["paths"][path][method]["requestBody"]["content"]["application/json"]
    assert media.keys() & {"example", "examples"}


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
@pytest.mark.usefixtures("names_are_known", "every_kind_is_served")
async def test_it_works_as_it_stands(method: str, path: str, alice: Member) -> None:
    address = path
    if "{endpoint_id}" in path:
        endpoint = await WebhookEndpoint.objects.acreate(
            workspace=alice.workspace, url="https://example.org/", secret_sealed=seal(new_secret())
        )
        address = path.replace("{endpoint_id}", endpoint.public_id)
    answer = await AsyncClient().generic(
        method.upper(),
        address,
        json.dumps(BODIES[path]),
        "application/json",
        headers={"Authorization": alice.authorization} | ({"X-DashScope-Async": "enable"} if path in TASKS else {}),
    )
    assert answer.status_code == 200, answer.content
