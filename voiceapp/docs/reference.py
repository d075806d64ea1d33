"""The reference: every operation of the OpenAPI document, grouped, with an example that can be pasted into a shell."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from .fields import Field, Json, Schemas
from .writing import anchor, to_html

FILE = "recording.wav"
"""What examples upload."""


@dataclass(frozen=True, slots=True)
class Body:
    content_type: str
    fields: list[Field]
    type: str
    """For what is no object: `string`, `array of …`."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    description: str
    bodies: list[Body]


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    """Its place on the page."""
    method: str
    path: str
    summary: str
    description: SafeString
    parameters: list[Field]
    body: Body | None
    answers: list[Answer]
    failures: list[Answer]
    curl: str
    """A command that calls it; what differs between installations stands in $API_KEY."""


@dataclass(frozen=True, slots=True)
class Group:
    id: str
    title: str
    operations: list[Operation] = field(default_factory=list)


def groups(document: Json, origin: str) -> list[Group]:
    """The operations under their tags, in the order of the document; `origin` is this server, `https://host`."""
    found: dict[str, Group] = {}
    for path, operations in document["paths"].items():
        for method, details in operations.items():
            title = (details.get("tags") or ["Other"])[0]
            group = found.setdefault(title, Group(anchor(title), title))
            group.operations.append(_operation(Schemas(document), method, path, details, origin))
    return list(found.values())


def _operation(schemas: Schemas, method: str, path: str, details: Json, origin: str) -> Operation:
    body = next(map(_as_asked, _bodies(schemas, details.get("requestBody", {}))), None)
    answers = [
        Answer(status, answer.get("description", ""), list(_bodies(schemas, answer)))
        for status, answer in ((status, schemas.resolve(answer)) for status, answer in details["responses"].items())
    ]
    return Operation(
        id=details["operationId"],
        method=method.upper(),
        path=path,
        summary=details["summary"],
        description=to_html(details.get("description", "")),
        parameters=[_parameter(schemas, parameter) for parameter in details.get("parameters", ())],
        body=body,
        answers=[answer for answer in answers if answer.status < "400"],
        failures=[answer for answer in answers if answer.status >= "400"],
        curl=_curl(schemas, method, path, details, origin),
    )


def _bodies(schemas: Schemas, holder: Json) -> Iterator[Body]:
    for content_type, media in holder.get("content", {}).items():
        schema = media.get("schema", {})
        yield Body(content_type, list(schemas.fields(schema)), schemas.type_of(schema))


def _as_asked(body: Body) -> Body:
    """Null in a request is the same as nothing: the reference says so once, and not at every field."""
    return replace(body, fields=[replace(asked, type=asked.type.removesuffix(" or null")) for asked in body.fields])


def _parameter(schemas: Schemas, parameter: Json) -> Field:
    [described] = schemas.fields({"properties": {parameter["name"]: parameter["schema"]}})
    return Field(
        path=described.path,
        type=f"{described.type}, in the {parameter['in']}",
        is_required=parameter.get("required", False),
        description=described.description,
        rule=described.rule,
    )


def _curl(schemas: Schemas, method: str, path: str, details: Json, origin: str) -> str:
    """A command for a POSIX shell, one option to a line."""
    samples = {
        parameter["name"]: parameter.get("example", schemas.example(parameter["schema"]))
        for parameter in details.get("parameters", ())
    }
    query = {
        parameter["name"]: samples[parameter["name"]]
        for parameter in details.get("parameters", ())
        if parameter["in"] == "query" and parameter.get("required")
    }
    address = origin + re.sub(r"\{(\w+)\}", lambda name: str(samples.get(name[1], name[1])), path)
    address += f"?{urlencode(query)}" if query else ""
    first = "curl" if method == "get" else f"curl -X {method.upper()}"
    lines = [f"{first} {shlex.quote(address)}", '-H "Authorization: Bearer $API_KEY"']
    for content_type, media in details.get("requestBody", {}).get("content", {}).items():
        lines += _sent(content_type, _example_of(schemas, media))
        break
    return " \\\n  ".join(lines)


def _example_of(schemas: Schemas, media: Json) -> Any:
    schema = media.get("schema", {})
    if "example" in media:
        example = media["example"]
    elif media.get("examples"):
        example = next(iter(media["examples"].values()))["value"]
    else:
        example = schemas.example(schema)
    parts = schemas.resolve(schema).get("properties", {})
    files = {name: f"@{FILE}" for name, part in parts.items() if schemas.type_of(part) == "file"}
    return {**example, **files} if files else example


def _sent(content_type: str, example: Any) -> list[str]:
    if content_type.startswith("multipart/"):
        return [f"-F {shlex.quote(f'{name}={value}')}" for name, value in dict(example).items()]
    text = json.dumps(example, ensure_ascii=False, indent=2) if content_type == "application/json" else str(example)
    return [f"-H {shlex.quote(f'Content-Type: {content_type}')}", f"-d {shlex.quote(text)}"]
