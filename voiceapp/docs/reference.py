"""The reference: every operation of the OpenAPI document, grouped, with an example that can be pasted into a shell."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from mimetypes import guess_extension
from typing import Any
from urllib.parse import quote, urlencode

from django.utils.safestring import SafeString

from .fields import Field, Json, Schemas
from .writing import anchor, to_html

FILE = "recording.wav"
"""What examples upload."""
OFFER = "offer.sdp"
"""What they send that is neither JSON nor a form."""

_FIRST = {"get": "curl", "head": "curl --head"}
"""How a command begins; told HEAD by -X, curl waits for a body that never comes."""


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
    """A command that calls it. What only the caller knows is left to variables: `$API_KEY`, `$TASK_ID`, …"""


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
    values: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
    for parameter in details.get("parameters", ()):
        if "example" in parameter:
            values[parameter["in"]][parameter["name"]] = parameter["example"]
        elif parameter.get("required") and parameter["in"] != "path":
            values[parameter["in"]][parameter["name"]] = schemas.example(parameter["schema"])

    def part(name: re.Match[str]) -> str:
        return quote(str(values["path"][name[1]])) if name[1] in values["path"] else f"${name[1].upper()}"

    address = origin + re.sub(r"\{(\w+)\}", part, path)
    address += f"?{urlencode(values['query'])}" if values["query"] else ""
    lines = [f'{_FIRST.get(method, f"curl -X {method.upper()}")} "{address}"']
    if details.get("security"):
        lines.append('-H "Authorization: Bearer $API_KEY"')
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in values["header"].items()]
    for content_type, media in details.get("requestBody", {}).get("content", {}).items():
        lines += _sent(content_type, _example_of(schemas, media))
        break
    return " \\\n  ".join(lines + _kept(details))


def _kept(details: Json) -> list[str]:
    """Into which file an answer goes that a terminal cannot show."""
    content = details["responses"].get("200", {}).get("content", {})
    sounds = [content_type for content_type in content if content_type.startswith("audio/")]
    if sounds:
        return [f"--output answer{guess_extension(sounds[0])}"]
    return ["--remote-name"] if "application/octet-stream" in content else []


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
    header = f"-H {shlex.quote(f'Content-Type: {content_type}')}"
    if content_type != "application/json":
        return [header, f"--data-binary @{OFFER}"]
    return [header, f"-d {shlex.quote(json.dumps(example, ensure_ascii=False, indent=2))}"]
