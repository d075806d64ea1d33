"""What every operation's description has in common, added to the document that ninja draws from the code."""

from __future__ import annotations

from typing import Any

from voiceapp import schemas
from voiceapp.failures import COMPATIBLE_ROOT, FLAT_ROOT

FAILURES = {
    400: "A value is missing, of the wrong type or out of range.",
    401: "The API key is missing, unknown, expired or revoked.",
    403: "The key may not do this.",
    404: "There is no such address, model or thing.",
    413: "The body is larger than the server takes.",
    415: "The body comes in a form that is not read here.",
    429: "A limit was reached; try again after `Retry-After` seconds.",
    500: "The server failed; its log says why.",
    503: "The model cannot serve now.",
    504: "The model took too long.",
}
"""What may come instead of an answer, for every operation."""

_FAILURE_SCHEMAS = (schemas.Failure, schemas.CompatibleError, schemas.CompatibleFailure, schemas.FlatFailure)


def complete(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its failures, its headers and its key declared, in place."""
    components = document.setdefault("components", {})
    components.setdefault("schemas", {}).update({model.__name__: _schema(model) for model in _FAILURE_SCHEMAS})
    components["headers"] = {
        "X-Request-ID": {"description": "Names this request in the server's log.", "schema": {"type": "string"}},
        "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}},
    }
    document.pop("servers", None)  # the one that serves the document
    for path, operations in document["paths"].items():
        for operation in operations.values():
            answers = {**operation["responses"], **failure_answers(path, taken=set(operation["responses"]))}
            for answer in answers.values():
                answer.setdefault("headers", {})["X-Request-ID"] = {"$ref": "#/components/headers/X-Request-ID"}
            operation["responses"] = dict(sorted(answers.items()))
    return document


def failure_answers(path: str, *, taken: set[str]) -> dict[str, Any]:
    """The failures of an operation at `path`, except for those that it declares itself."""
    name = "Failure"
    if path.startswith(COMPATIBLE_ROOT):
        name = "CompatibleFailure"
    elif path.startswith(FLAT_ROOT):
        name = "FlatFailure"
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    answers: dict[str, Any] = {}
    for status, description in FAILURES.items():
        if str(status) not in taken:
            answers[str(status)] = {"description": description, "content": content}
            if status in (429, 503):
                answers[str(status)]["headers"] = {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}
    return answers


def _schema(model: type[schemas.Schema]) -> dict[str, Any]:
    drawn = model.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    drawn.pop("$defs", None)
    return drawn
