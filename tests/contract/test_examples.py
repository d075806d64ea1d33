"""The examples that the reference shows: each is what its operation takes, and is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from aiohttp import AsyncResolver
from aiohttp.abc import ResolveResult
from django.test import AsyncClient
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.models import offered
from voiceapp.accounts.caller import Caller
from voiceapp.api import openapi_document
from voiceapp.catalogue.cards import ModelCard
from voiceapp.http.examples import BODIES
from voiceapp.realtime.aoq.models import AoqRelay
from voiceapp.realtime.doors import API_OFFER
from voiceapp.realtime.forwarding import REPORT_HEADER, report_headers
from voiceapp.realtime.records.recorder import Beginning, record_relayed
from voiceapp.sealing import seal
from voiceapp.webhooks.models import WebhookEndpoint
from voiceapp.webhooks.secrets import new_secret

WITH_BODY = [
    (method, path)
    for path, operations in openapi_document()["paths"].items()
    for method, operation in operations.items()
    if "application/json" in operation.get("requestBody", {}).get("content", {})
]
HEADERS = {"X-DashScope-Async": "enable", "x-service-rtc-transport": "moq"}
"""What says that a body is a task's, or asks for a grant."""


def headers_of(method: str, path: str) -> dict[str, str]:
    named = {parameter["name"] for parameter in openapi_document()["paths"][path][method].get("parameters", [])}
    return {name: value for name, value in HEADERS.items() if name in named}


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
    provider = "voiceapp.engines.upstream.http.tasks.RelayedTasks"
    cards = [
        ModelCard("qwen-image", "image", provider, options=options),
        ModelCard("wan2.2-t2v-plus", "video", provider, options=options),
    ]
    with offered(settings, [*settings.VOICE_MODELS, *cards]):
        yield


@pytest.fixture
def a_relay_lives(db: None) -> None:
    """One that grants may name; nothing connects to it."""
    AoqRelay.objects.create(
        endpoint="relay.example",
        port=8443,
        fingerprint="ab" * 32,
        capacity=10,
        heartbeat_at=timezone.now(),
        served_by="somewhere:1:2",
    )


async def reported_at(member: Member) -> str:
    """Where a session is reported that was passed on for this member."""
    beginning = Beginning(Caller.of(member.row), "theirs", "relayed", "", str(API_OFFER.entrance))
    await record_relayed(beginning)
    return report_headers(beginning)[REPORT_HEADER]


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_every_body_has_an_example(method: str, path: str) -> None:
    media = openapi_document()["paths"][path][method]["requestBody"]["content"]["application/json"]
    assert media.keys() & {"example", "examples"}


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
@pytest.mark.usefixtures("names_are_known", "every_kind_is_served", "a_relay_lives")
async def test_it_works_as_it_stands(method: str, path: str, alice: Member) -> None:
    address = path
    if "{endpoint_id}" in path:
        endpoint = await WebhookEndpoint.objects.acreate(
            workspace=alice.workspace, url="https://example.org/", secret_sealed=seal(new_secret())
        )
        address = path.replace("{endpoint_id}", endpoint.public_id)
    if "{name}" in path:
        address = await reported_at(alice)
    elif "/webrtc/" in path:
        address += "?model=voice"
    answer = await AsyncClient().generic(
        method.upper(),
        address,
        json.dumps(BODIES[path]),
        "application/json",
        headers={"Authorization": alice.authorization, **headers_of(method, path)},
    )
    assert answer.status_code in (200, 204), answer.content
