"""Parts that every operation's description has in common, added to the document that ninja draws from the code."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from voiceapp.http import schemas
from voiceapp.http.error_responses import AGENT_ROOTS, COMPATIBLE_ROOT, FLAT_ROOT
from voiceapp.http.examples import put_examples
from voiceapp.http.operation_errors import error_codes

FAILURES = {
    400: "A value is missing, of the wrong type or out of range.",
    401: "The API key is missing, unknown, expired or revoked.",
    403: "The key may not do this.",
    404: "There is no such address, model or thing.",
    409: "What is asked for does not fit how things stand.",
    413: "The body is larger than the server takes.",
    415: "The body comes in a form that is not read here.",
    429: "A limit was reached; try again after `Retry-After` seconds.",
    500: "The server failed; its log says why.",
    502: "Another server, which this one had to call, failed.",
    503: "The model cannot serve now.",
    504: "The model took too long.",
}

FAMILIES: dict[str, type[schemas.Schema]] = {
    COMPATIBLE_ROOT: schemas.CompatibleFailure,
    FLAT_ROOT: schemas.FlatFailure,
    **dict.fromkeys(AGENT_ROOTS, schemas.AgentFailure),
    "/": schemas.Failure,
}
"""The shape in which failures are told, by the root an operation stands under; the first that fits."""

FIELDS = Path(__file__).with_name("fields.toml")
EVENT = {
    "type": "object",
    "description": "One server-sent event.",
    "required": ["data"],
    "properties": {
        "id": {"type": "string", "description": "Counts the events."},
        "event": {"type": "string", "description": "`error` when the answer broke off."},
        "data": {"type": "string", "description": "The next piece of the answer, as JSON."},
    },
}
"""Description of a stream by one of its events."""

REQUEST_ID = {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}}
RETRY_AFTER = {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}


def complete(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its failures, headers and examples declared, in place. Its server is named when it is sent."""
    document.pop("servers", None)
    components = document.setdefault("components", {})
    drawn = components.setdefault("schemas", {})
    families = dict.fromkeys(FAMILIES.values())
    models: list[type[schemas.Schema]] = [schemas.CompatibleError, schemas.AgentError, *families]
    for model in models:
        drawn[model.__name__] = _schema(model)
    components["headers"] = {
        "X-Request-ID": {"description": "Names this request in the server's log.", "schema": {"type": "string"}},
        "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}},
    }
    components["responses"] = {
        f"{model.__name__}{status}": _failure(model, status) for model in families for status in FAILURES
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation["x-error-codes"] = error_codes(method, path, operation)
            # A docstring goes on to say what the function raises; here that stands among the answers.
            operation["description"] = operation.get("description", "").partition("\n\nRaises:")[0]
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "header" and "enum" in parameter["schema"]:
                    # Another value is no error: like any field that is not known, it changes nothing.
                    parameter["schema"]["examples"] = parameter["schema"].pop("enum")
            for answer in operation["responses"].values():
                answer.setdefault("headers", {}).update(REQUEST_ID)
                if "text/event-stream" in answer.get("content", {}):
                    answer["content"]["text/event-stream"]["schema"] = EVENT
            operation["responses"] = dict(sorted({**operation["responses"], **failures_at(path)}.items()))
    put_examples(document)
    _describe_fields(document)
    return document


def _describe_fields(document: dict[str, Any]) -> None:
    """Give fields whose class says nothing about them the description that `fields.toml` has."""
    known = tomllib.loads(FIELDS.read_text(encoding="utf-8"))
    for place, name, field in described_fields(document):
        if not field.get("description") and (text := known.get(f"{place}{name}", known.get(name))):
            field["description"] = text


def described_fields(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every field and parameter of the document: its place, its name, and what describes it."""

    def within(place: str, schema: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for name, part in schema.get("properties", {}).items():
            yield place, name, part
        for key in ("items", "schema"):
            if isinstance(schema.get(key), dict):
                yield from within(place, schema[key])
        for part in [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]:
            yield from within(place, part)

    for name, schema in document["components"]["schemas"].items():
        yield from within(f"{name}.", schema)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            place = f"{method} {path} "
            for parameter in operation.get("parameters", ()):
                if not parameter["schema"].get("description"):
                    yield place, parameter["name"], parameter
            for holder in (operation.get("requestBody", {}), *operation["responses"].values()):
                for media in holder.get("content", {}).values():
                    yield from within(place, media.get("schema", {}))


def failures_at(path: str) -> dict[str, Any]:
    """The failures of an operation at `path`, each by reference to the one description of it."""
    family = next(model for root, model in FAMILIES.items() if path.startswith(root))
    return {str(status): {"$ref": f"#/components/responses/{family.__name__}{status}"} for status in FAILURES}


def _failure(model: type[schemas.Schema], status: int) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
    headers = REQUEST_ID | RETRY_AFTER if status in (429, 503) else REQUEST_ID
    return {"description": FAILURES[status], "headers": headers, "content": content}


def _schema(model: type[schemas.Schema]) -> dict[str, Any]:
    drawn = model.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    drawn.pop("$defs", None)
    return drawn
