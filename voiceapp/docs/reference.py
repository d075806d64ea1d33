"""The reference: every operation of the OpenAPI document once, on the page of its family, with examples to copy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from mimetypes import guess_extension
from typing import Any
from urllib.parse import quote, urlencode

from django.utils.safestring import SafeString

from voiceapp.http.roots import ALIASES, COMPATIBLE_ROOT

from .codes import Code, codes_at
from .colouring import coloured
from .examples import FILE, LANGUAGES, ExampleCall
from .families import FAMILIES, Family, family_of
from .fields import Field, Json, Schemas
from .writing import to_html

SHOWN_ROOT, SAME_ROOT = "/api/v1/agentstudio/", "/api/v1/agentsvc/"
"""Two roots of the same operations; the first is shown, the second mentioned."""


@dataclass(frozen=True, slots=True)
class Body:
    content_type: str
    fields: list[Field]
    type: str
    """For what is no object: `string`, `array of …`."""
    example: SafeString
    """JSON of an actual body; empty for one of another kind."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    description: str
    bodies: list[Body]


@dataclass(frozen=True, slots=True)
class Example:
    language: str
    code: str

    @property
    def html(self) -> SafeString:
        return coloured(self.code, self.language)


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    """Its place on the page."""
    method: str
    path: str
    also: list[str]
    """Further paths of the same operation."""
    summary: str
    description: SafeString
    parameters: list[Field]
    body: Body | None
    answers: list[Answer]
    errors: list[Code]
    examples: list[Example]
    """In each language."""


@dataclass(frozen=True, slots=True)
class Page:
    family: Family
    operations: list[Operation] = field(default_factory=list)


def pages(document: Json, origin: str) -> list[Page]:
    """The operations of each family, in the order of the document; `origin` is this server, `https://host`."""
    found = {family.slug: Page(family) for family in FAMILIES}
    paths: Json = document["paths"]
    for path, operations in paths.items():
        if path.startswith(SAME_ROOT) and path.replace(SAME_ROOT, SHOWN_ROOT) in paths:
            continue
        for method, details in operations.items():
            operation = _operation(Schemas(document), method, path, details, origin)
            found[family_of(path).slug].operations.append(operation)
    return [page for page in found.values() if page.operations]


def also(path: str) -> list[str]:
    """Further paths under which an operation is served."""
    if path.startswith(COMPATIBLE_ROOT):
        aliases = [alias for alias, meant in ALIASES.items() if meant == path and not alias.endswith("/")]
        return ["/" + path.removeprefix(COMPATIBLE_ROOT), *aliases]
    return [path.replace(SHOWN_ROOT, SAME_ROOT)] if path.startswith(SHOWN_ROOT) else []


def _operation(schemas: Schemas, method: str, path: str, details: Json, origin: str) -> Operation:
    body = next(map(_as_asked, _bodies(schemas, details.get("requestBody", {}))), None)
    answers = [
        Answer(status, answer.get("description", ""), list(_bodies(schemas, answer)))
        for status, answer in details["responses"].items()
        if status < "400"
    ]
    call = call_of(schemas, method, path, details, origin)
    return Operation(
        id=details["operationId"],
        method=method.upper(),
        path=path,
        also=also(path),
        summary=details["summary"],
        description=to_html(details.get("description", ""), has_links=False),
        parameters=[_parameter(schemas, parameter) for parameter in details.get("parameters", ())],
        body=body,
        answers=answers,
        errors=codes_at(path, details.get("x-error-codes", ())),
        examples=[Example(language, written(call)) for language, written in LANGUAGES.items()],
    )


def _bodies(schemas: Schemas, holder: Json) -> Iterator[Body]:
    for content_type, media in holder.get("content", {}).items():
        schema = media.get("schema", {})
        shown = json.dumps(media["example"], indent=2, ensure_ascii=False) if "example" in media else ""
        yield Body(content_type, list(schemas.fields(schema)), schemas.type_of(schema), coloured(shown, "json"))


def _as_asked(body: Body) -> Body:
    """Null in a request is the same as nothing: the reference says so once, and not at every field."""
    return replace(body, fields=[replace(asked, type=asked.type.removesuffix(" or null")) for asked in body.fields])


def _parameter(schemas: Schemas, parameter: Json) -> Field:
    about = {"description": parameter["description"]} if "description" in parameter else {}
    [described] = schemas.fields({"properties": {parameter["name"]: parameter["schema"] | about}})
    return Field(
        path=described.path,
        type=f"{described.type}, in the {parameter['in']}",
        is_required=parameter.get("required", False),
        description=described.description,
        rule=described.rule,
    )


def call_of(schemas: Schemas, method: str, path: str, details: Json, origin: str) -> ExampleCall:
    """The call that the examples of an operation make."""
    values: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
    for parameter in details.get("parameters", ()):
        if example := parameter.get("example", parameter.get("x-shown-value")):  # x-: needs what not every server has
            values[parameter["in"]][parameter["name"]] = example
        elif parameter.get("required") and parameter["in"] != "path":
            values[parameter["in"]][parameter["name"]] = schemas.example(parameter["schema"])

    def part(name: re.Match[str]) -> str:
        return quote(str(values["path"][name[1]])) if name[1] in values["path"] else name[0]

    address = origin + re.sub(r"\{(\w+)\}", part, path)
    address += f"?{urlencode(values['query'])}" if values["query"] else ""
    asked = details.get("requestBody", {}).get("content", {})
    content_type = next(iter(asked), "")
    answered = details["responses"].get("200", {}).get("content", {})
    return ExampleCall(
        method=method,
        address=address,
        needs_key=bool(details.get("security")),
        headers=values["header"],
        content_type=content_type,
        body=_example_of(schemas, asked[content_type]) if content_type else None,
        saved_as=_saved_as(answered),
        is_json="application/json" in answered,
    )


def _saved_as(answered: Json) -> str:
    sounds = [content_type for content_type in answered if content_type.startswith("audio/")]
    if sounds:
        return f"speech{guess_extension(sounds[0])}"
    return "*" if "application/octet-stream" in answered else ""


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
