"""The reference, drawn from an OpenAPI document."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from voiceapp.docs.fields import Schemas
from voiceapp.docs.reference import Operation, also, pages

SCHEMAS: dict[str, Any] = {
    "Message": {
        "type": "object",
        "required": ["role", "content"],
        "properties": {
            "role": {"type": "string", "enum": ["system", "user"]},
            "content": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/components/schemas/Part"}}]
            },
        },
    },
    "Parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
    "Part": {"type": "object", "properties": {"text": {"type": "string", "maxLength": 10}}},
    "Body": {
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": {"type": "string", "description": "The `name` of a <b>model</b>."},
            "messages": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Message"}},
            "top_p": {"anyOf": [{"type": "number", "maximum": 1}, {"type": "null"}], "default": None},
            "stream": {"type": "boolean", "default": False},
            "again": {"anyOf": [{"$ref": "#/components/schemas/Body"}, {"type": "null"}]},
        },
    },
    "Upload": {
        "type": "object",
        "required": ["file", "model"],
        "properties": {"file": {"type": "string", "format": "binary"}, "model": {"type": "string", "default": "m"}},
    },
}

PATH = "/api/v1/tasks/{id}/talk"
ADDRESS = "https://host/api/v1/tasks"


def document(**operation: Any) -> dict[str, Any]:
    """A document of one operation, which answers 200 and may fail."""
    details = {
        "operationId": "talk",
        "summary": "Talk",
        "description": "Says *something*.",
        "tags": ["Chat"],
        "x-error-codes": ["ModelNotFound", "NotFound"],
        "responses": {
            "200": {"description": "OK", "content": {"application/json": {"schema": {"type": "string"}}}},
            "400": {"$ref": "#/components/responses/Failure400"},
        },
        **operation,
    }
    responses = {"Failure400": {"description": "Wrong."}}
    return {"paths": {PATH: {"post": details}}, "components": {"schemas": SCHEMAS, "responses": responses}}


def operation(**details: Any) -> Operation:
    [page] = pages(document(**details), "https://host")
    [found] = page.operations
    return found


def curl(**details: Any) -> str:
    """Its example for a shell."""
    return next(example.code for example in operation(**details).examples if example.language == "curl")


def body(name: str, content_type: str = "application/json", **media: Any) -> dict[str, Any]:
    return {"content": {content_type: {"schema": {"$ref": f"#/components/schemas/{name}"}, **media}}}


def test_an_operation_stands_on_the_page_of_its_family() -> None:
    [page] = pages(document(), "https://host")
    assert page.family.slug == "tasks"
    [found] = page.operations
    assert (found.id, found.method, found.path, found.summary) == ("talk", "POST", PATH, "Talk")
    assert found.description == "<p>Says <em>something</em>.</p>\n"
    assert [answer.status for answer in found.answers] == ["200"]
    assert [(error.code, error.status) for error in found.errors] == [("NotFound", "404"), ("ModelNotFound", "404")]


def test_an_operation_at_two_roots_is_shown_once() -> None:
    twice = document()
    details = twice["paths"].pop(PATH)["post"]
    for root in ("agentsvc", "agentstudio"):
        twice["paths"][f"/api/v1/{root}/webhook_endpoints"] = {"post": {**details, "operationId": f"{root}_talk"}}
    [page] = pages(twice, "https://host")
    [found] = page.operations
    assert found.id == "agentstudio_talk"
    assert found.also == ["/api/v1/agentsvc/webhook_endpoints"]


def test_it_names_every_path_of_an_operation() -> None:
    assert also("/compatible-mode/v1/models") == ["/v1/models"]
    assert also("/compatible-mode/v1/rerank") == ["/v1/rerank", "/rerank", "/v2/rerank"]
    assert also("/api/v1/tasks") == []


def test_an_operation_without_a_family_is_an_error() -> None:
    with pytest.raises(LookupError, match="/elsewhere"):
        pages({**document(), "paths": {"/elsewhere": document()["paths"][PATH]}}, "https://host")


def test_it_lists_every_field_with_its_parts_behind_it() -> None:
    found = operation(requestBody=body("Body")).body
    assert found is not None
    fields = {field.path: field for field in found.fields}
    assert list(fields)[:5] == [
        "model",
        "messages",
        "messages[].role",
        "messages[].content",
        "messages[].content[].text",
    ]
    assert fields["model"].is_required
    assert fields["model"].description == "The <code>name</code> of a &lt;b&gt;model&lt;/b&gt;."
    assert (fields["messages"].type, fields["messages"].rule) == ("array of object", "items at least 1")
    assert fields["messages[].role"].rule == "one of system, user"
    assert fields["messages[].content"].type == "string or array of object"
    assert fields["messages[].content[].text"].rule == "length at most 10"
    assert (fields["top_p"].type, fields["top_p"].rule, fields["top_p"].is_required) == (
        "number",
        "at most 1",
        False,
    )
    assert fields["stream"].rule == "default false"


def test_it_ends_where_a_schema_contains_itself() -> None:
    found = operation(requestBody=body("Body")).body
    assert found is not None
    assert max(field.path.count(".") for field in found.fields) <= 8
    assert "again.model" in {field.path for field in found.fields}


def words(command: str) -> list[str]:
    """As a shell takes the command apart."""
    return shlex.split(command.replace("\\\n", " "))


def test_its_example_is_a_command_that_a_shell_understands() -> None:
    found = words(
        curl(
            requestBody=body("Body", example={"model": "it's", "messages": []}),
            security=[{"BearerKey": []}],
            parameters=[
                {"in": "path", "name": "id", "required": True, "example": "a b", "schema": {"type": "string"}},
                {"in": "query", "name": "page", "required": True, "schema": {"type": "integer", "default": 2}},
                {"in": "query", "name": "model", "example": "voice", "schema": {"type": "string"}},
                {"in": "query", "name": "other", "schema": {"type": "integer"}},
            ],
        )
    )
    assert found[:4] == ["curl", "-X", "POST", f"{ADDRESS}/a%20b/talk?page=2&model=voice"]
    assert found[found.index("-d") + 1].split() == ["{", '"model":', '"it\'s",', '"messages":', "[]", "}"]
    assert "Content-Type: application/json" in found
    assert "Authorization: Bearer ${API_KEY:?}" in found


def test_its_example_sends_the_headers_that_are_required() -> None:
    schema = {"type": "string", "examples": ["enable"]}
    found = words(
        curl(
            parameters=[
                {"in": "header", "name": "X-DashScope-Async", "required": True, "schema": schema},
                {"in": "header", "name": "X-DashScope-SSE", "schema": schema},
            ]
        )
    )
    assert "X-DashScope-Async: enable" in found
    assert "X-DashScope-SSE: enable" not in found


def test_its_example_has_variables_for_what_an_earlier_answer_gave_and_no_key_where_none_is_asked_for() -> None:
    parameters = [{"in": "path", "name": "id", "required": True, "schema": {"type": "string"}}]
    assert curl(parameters=parameters) == f'curl -X POST "{ADDRESS}/${{ID:?}}/talk"'


def test_its_example_of_head_waits_for_no_body() -> None:
    details = document()
    details["paths"][PATH] = {"head": details["paths"][PATH]["post"]}
    [page] = pages(details, "https://host")
    assert words(page.operations[0].examples[0].code)[:2] == ["curl", "--head"]


@pytest.mark.parametrize(
    ("content_type", "kept"),
    [("audio/mpeg", ["--output", "speech.mp3"]), ("application/octet-stream", ["--remote-name"]), ("text/plain", [])],
)
def test_its_example_keeps_what_a_terminal_cannot_show(content_type: str, kept: list[str]) -> None:
    answers = {"200": {"description": "OK", "content": {content_type: {"schema": {"type": "string"}}}}}
    assert words(curl(responses=answers))[4:] == kept


def test_its_example_sends_an_offer_from_a_file() -> None:
    offered = {"content": {"application/sdp": {"schema": {"type": "string"}}}}
    assert words(curl(requestBody=offered))[-2:] == ["--data-binary", "@offer.sdp"]


def test_its_example_fills_what_is_required() -> None:
    example = Schemas(document()).example({"$ref": "#/components/schemas/Body"})
    assert example == {"model": "text", "messages": [{"role": "system", "content": "text"}]}


def test_its_example_uploads_a_file() -> None:
    command = curl(requestBody=body("Upload", "multipart/form-data"))
    assert words(command)[-4:] == ["-F", "file=@recording.wav", "-F", "model=m"]
    assert "-d" not in words(command)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": {"type": "integer"}}, "array of integer"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"allOf": [{"$ref": "#/components/schemas/Part"}]}, "object"),
        ({"const": "list"}, "string"),
        ({}, "any"),
    ],
)
def test_it_says_types_in_words(schema: dict[str, Any], said: str) -> None:
    assert Schemas(document()).type_of(schema) == said
