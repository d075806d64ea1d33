"""The OpenAPI document: valid, complete, and the same for everybody."""

from __future__ import annotations

import tomllib
from typing import Any, cast

import pytest
import schemathesis
from django.test import AsyncClient, Client

from tests.contract import openai_operations
from voiceapp.api import openapi_document
from voiceapp.http.openapi import FAILURES, FIELDS, described_fields

WITHOUT_KEY = {"/api/v1/files/{token}/{name}", "/api/v1/uploads/direct"}
"""Where the address itself is the right to read, or a signed form the right to write."""
BODY_OR_NONE = {"/api/v1/webrtc/realtime", "/api/v1/webrtc/inference"} | {
    f"/api/v1/{root}/webhook_endpoints/{{endpoint_id}}/reset_secret" for root in ("agentsvc", "agentstudio")
}
"""Where client libraries send no body, and others may wish for something in one."""

OPERATIONS = [
    pytest.param(path, operation, id=f"{method.upper()} {path}")
    for path, operations in openapi_document()["paths"].items()
    for method, operation in operations.items()
]


def resolved(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as it stands among the components."""
    name = answer.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = openapi_document()["components"]["responses"][name] if name else answer
    return found


async def test_it_is_served_to_anybody_as_json() -> None:
    answer = await AsyncClient().get("/openapi.json")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert answer.json() == {**openapi_document(), "servers": [{"url": "http://testserver"}]}
    assert (await AsyncClient().post("/openapi.json")).status_code == 405


def test_it_is_served_to_synchronous_servers_as_well() -> None:
    assert Client().get("/openapi.json").status_code == 200


def test_it_is_valid() -> None:
    schemathesis.openapi.from_dict(openapi_document()).validate()


def test_it_names_every_operation_once() -> None:
    names = [cast(Any, operation.values[1])["operationId"] for operation in OPERATIONS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("path", "operation"), OPERATIONS)
def test_it_says_what_may_come_instead_of_an_answer(path: str, operation: dict[str, Any]) -> None:
    shape = "Failure"
    if path.startswith(("/api/v1/agentsvc/", "/api/v1/agentstudio/")):
        shape = "AgentFailure"
    if path.startswith("/compatible-"):
        shape = "CompatibleFailure" if path.startswith("/compatible-mode/") else "FlatFailure"
    for status in FAILURES:
        answer = resolved(operation["responses"][str(status)])
        assert answer["content"]["application/json"]["schema"]["$ref"].endswith(f"/{shape}")
        assert "X-Request-ID" in answer["headers"]
        assert ("Retry-After" in answer["headers"]) == (status in (429, 503))


@pytest.mark.parametrize(("path", "operation"), OPERATIONS)
def test_it_describes_every_operation_for_people(path: str, operation: dict[str, Any]) -> None:
    assert operation.get("security") == (None if path in WITHOUT_KEY else [{"BearerKey": []}])
    assert len(operation["tags"]) == 1
    assert operation["summary"]
    assert operation["description"]
    assert "requestBody" not in operation or operation["requestBody"]["required"] == (path not in BODY_OR_NONE)


def test_every_field_has_a_description() -> None:
    fields = list(described_fields(openapi_document()))
    assert len(fields) > 600
    assert [f"{place}{name}" for place, name, field in fields if not field.get("description")] == []
    names = {name for _, name, _ in fields} | {f"{place}{name}" for place, name, _ in fields}
    assert set(tomllib.loads(FIELDS.read_text())) <= names


def test_the_table_of_operations_is_that_of_openais_library() -> None:
    assert openai_operations.TABLE.read_text() == openai_operations.table(), "python -m tests.contracts --write"


def test_every_reference_leads_somewhere() -> None:
    document = openapi_document()

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [found for item in value.values() for found in references(item)]
        return [found for item in value for found in references(item)] if isinstance(value, list) else []

    for reference in references(document):
        _, *parts = reference.split("/")
        target: Any = document
        for part in parts:
            target = target[part]
        assert target
