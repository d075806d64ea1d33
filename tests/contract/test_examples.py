"""The examples that the reference shows: each is what its operation takes, and is answered."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from aiohttp import AsyncResolver
from aiohttp.abc import ResolveResult
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.models import offered
from voiceapp.accounts.caller import Caller
from voiceapp.api import openapi_document
from voiceapp.catalogue.cards import ModelCard
from voiceapp.docs.examples import ExampleCall
from voiceapp.docs.fields import Schemas
from voiceapp.docs.reference import call_of
from voiceapp.http.examples import BODIES, RESPONSES
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
RECORDED = json.loads(RESPONSES.read_text())


def call(method: str, path: str) -> ExampleCall:
    document = openapi_document()
    return call_of(Schemas(document), method, path, document["paths"][path][method], "")


def shape(value: Any) -> Any:
    """Names and kinds of JSON, without the values."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    return [shape(part) for part in value[:1]] if isinstance(value, list) else type(value).__name__


def clipped(value: Any) -> Any:
    """The same with three numbers of each vector, and without secrets."""
    if isinstance(value, dict):
        return {name: clipped(part) for name, part in value.items()}
    if isinstance(value, list):
        return [clipped(part) for part in (value[:3] if value and isinstance(value[0], float) else value)]
    return re.sub("^(whsec_|ek_st-|eyJ).+", r"\1…", value) if isinstance(value, str) else value


def record(name: str, response: Any) -> None:
    """`RECORD=1` writes the responses anew; what stands in them is of that moment."""
    if os.environ.get("RECORD"):
        RECORDED[name] = clipped(response)
        RESPONSES.write_text(json.dumps(dict(sorted(RECORDED.items())), indent=1, ensure_ascii=False) + "\n")


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
    made = call(method, path)
    headers = {"Authorization": alice.authorization, **made.headers}
    address = path
    if "{endpoint_id}" in path:
        endpoint = await WebhookEndpoint.objects.acreate(
            workspace=alice.workspace, url="https://example.org/", secret_sealed=seal(new_secret())
        )
        address = path.replace("{endpoint_id}", endpoint.public_id)
    if "{name}" in path:
        address = await reported_at(alice)
    elif "/webrtc/" in path:
        address = made.address
        headers = {"x-service-rtc-transport": "moq", **headers}
    answer = await AsyncClient().generic(
        method.upper(),
        address,
        json.dumps(BODIES[path]),
        "application/json",
        headers=headers,
    )
    assert answer.status_code in (200, 204), answer.content
    if answer.headers.get("Content-Type", "").startswith("application/json"):
        name = f"{method.upper()} {path}".replace("/agentsvc/", "/agentstudio/")
        record(name, answer.json())
        assert shape(answer.json()) == shape(RECORDED[name])


JSON_RESPONSES = [
    (f"{method.upper()} {path}", media["schema"])
    for path, operations in openapi_document()["paths"].items()
    for method, operation in operations.items()
    if (media := operation["responses"].get("200", {}).get("content", {}).get("application/json"))
    and "/agentsvc/" not in path
]


@pytest.mark.parametrize(("name", "schema"), JSON_RESPONSES, ids=[name for name, _ in JSON_RESPONSES])
def test_every_response_has_an_example_that_its_schema_allows(name: str, schema: dict[str, Any]) -> None:
    components = {"components": openapi_document()["components"]}
    jsonschema_rs.validate({**schema, **components}, RECORDED[name])
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate({**schema, **components}, None)
