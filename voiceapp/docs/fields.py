"""JSON schemas as people read them: one line for each field, and an example of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from .writing import to_inline_html

Json = dict[str, Any]

MAX_DEPTH = 6
"""Deeper fields are not listed: a schema may contain itself."""

_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "length at least {}",
    "maxLength": "length at most {}",
    "minItems": "items at least {}",
    "maxItems": "items at most {}",
}
_HUGE = 2**62
"""A bound from here on is the machine's, and of no interest to people."""
_SAMPLES: Json = {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "null": None}


@dataclass(frozen=True, slots=True)
class Field:
    path: str
    """Dotted, with `[]` behind an array: `input.messages[].role`."""
    type: str
    """`string`, `integer or null`, `array of string`, …"""
    is_required: bool
    description: SafeString
    rule: str
    """Bounds, choices and default, in words; empty when there are none."""


class Schemas:
    """The schemas of one document."""

    def __init__(self, document: Json) -> None:
        self._components: Json = document.get("components", {})

    def resolve(self, schema: Json) -> Json:
        """The schema itself, or the component that it refers to with what it says on top of that."""
        while "$ref" in schema:
            kind, name = schema["$ref"].split("/")[-2:]
            schema = {**self._components[kind][name], **{key: schema[key] for key in schema if key != "$ref"}}
        if len(schema.get("allOf", ())) == 1:
            return self.resolve({**schema["allOf"][0], **{key: schema[key] for key in schema if key != "allOf"}})
        return schema

    def fields(self, schema: Json, prefix: str = "", depth: int = 0) -> Iterator[Field]:
        """Every field of an object, its parts after it; of alternatives, the fields of each."""
        for whole in self._objects(schema):
            required = whole.get("required", ())
            for name, details in whole.get("properties", {}).items():
                path = f"{prefix}{name}"
                part = self.resolve(details)
                description = to_inline_html(part.get("description", ""))
                yield Field(path, self.type_of(part), name in required, description, self._rule(part))
                if depth < MAX_DEPTH:
                    inner, brackets = self._inside(part)
                    yield from self.fields(inner, f"{path}{brackets}.", depth + 1)

    def type_of(self, schema: Json) -> str:
        """In words; alternatives are joined by "or"."""
        schema = self.resolve(schema)
        alternatives = self._alternatives(schema)
        if alternatives:
            return " or ".join(dict.fromkeys(self.type_of(alternative) for alternative in alternatives))
        if schema.get("format") == "binary":
            return "file"
        kind = schema.get("type")
        if kind is None:
            return "string" if "enum" in schema or "const" in schema else "any"
        if isinstance(kind, list):
            return " or ".join(kind)
        return f"array of {self.type_of(schema['items'])}" if kind == "array" and schema.get("items") else str(kind)

    def example(self, schema: Json, depth: int = 0) -> Any:
        """Something that fits: what the schema gives as an example, else its required fields filled with samples."""
        schema = self.resolve(schema)
        for given in (schema.get("examples"), [schema["example"]] if "example" in schema else None, schema.get("enum")):
            if given:
                return given[0]
        if "const" in schema or schema.get("default") is not None:
            return schema.get("const", schema.get("default"))
        if alternatives := self._alternatives(schema):
            return self.example(alternatives[0], depth)
        if schema.get("type") == "object":
            required = schema.get("required", ())
            properties = schema.get("properties", {})
            named = {name: properties[name] for name in required if name in properties}
            return {name: self.example(part, depth + 1) for name, part in named.items()} if depth < MAX_DEPTH else {}
        if schema.get("type") == "array":
            return [self.example(schema["items"], depth + 1)] if schema.get("items") and depth < MAX_DEPTH else []
        return _SAMPLES.get(str(schema.get("type")))

    def _alternatives(self, schema: Json) -> list[Json]:
        found: list[Json] = schema.get("anyOf") or schema.get("oneOf") or []
        return found

    def _objects(self, schema: Json) -> list[Json]:
        schema = self.resolve(schema)
        alternatives = self._alternatives(schema)
        if alternatives:
            return [found for alternative in alternatives for found in self._objects(alternative)]
        return [schema] if "properties" in schema else []

    def _inside(self, schema: Json) -> tuple[Json, str]:
        """Return the schema of a field's parts, and the brackets that lead to them in its path."""
        brackets = ""
        schema = self.resolve(schema)
        alternatives = [self.resolve(alternative) for alternative in self._alternatives(schema)]
        for alternative in alternatives:
            if alternative.get("type") in ("array", "object"):
                schema = alternative
                break
        while schema.get("type") == "array" and schema.get("items"):
            schema, brackets = self.resolve(schema["items"]), brackets + "[]"
        return schema, brackets

    def _rule(self, schema: Json) -> str:
        rules = []
        for alternative in [schema, *map(self.resolve, self._alternatives(schema))]:
            if choices := alternative.get("enum"):
                rules.append("one of " + ", ".join(map(shown, choices)))
            if "const" in alternative:
                rules.append(f"always {shown(alternative['const'])}")
            bounds = {name: alternative[name] for name in _BOUNDS if abs(alternative.get(name, _HUGE)) < _HUGE}
            rules += [_BOUNDS[name].format(bound) for name, bound in bounds.items()]
        if schema.get("default") is not None and "const" not in schema:
            rules.append(f"default {shown(schema['default'])}")
        return "; ".join(dict.fromkeys(rules))


def shown(value: Any) -> str:
    """A value as it stands in JSON, without the quotes of a string."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) or '""'
