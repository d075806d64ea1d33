"""The examples that the reference shows: each is what its operation takes, and is answered."""

from __future__ import annotations

import json

import pytest
from django.test import AsyncClient

from tests.conftest import Member
from voiceapp.api import openapi_document
from voiceapp.examples import BODIES

WITH_BODY = [
    path
    for path, operations in openapi_document()["paths"].items()
    for operation in operations.values()
    if "application/json" in operation.get("requestBody", {}).get("content", {})
]
TASKS = [
    path
    for path in WITH_BODY
    for header in openapi_document()["paths"][path]["post"].get("parameters", [])
    if header["name"] == "X-DashScope-Async"
]


@pytest.mark.parametrize("path", WITH_BODY)
def test_every_body_has_an_example(path: str) -> None:
    media = openapi_document()["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    assert media.keys() & {"example", "examples"}


@pytest.mark.parametrize("path", WITH_BODY)
async def test_it_works_as_it_stands(path: str, alice: Member) -> None:
    answer = await AsyncClient().generic(
        "POST",
        path,
        json.dumps(BODIES[path]),
        "application/json",
        headers={"Authorization": alice.authorization} | ({"X-DashScope-Async": "enable"} if path in TASKS else {}),
    )
    assert answer.status_code == 200, answer.content
