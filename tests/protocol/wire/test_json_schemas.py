"""The bounds of callers' JSON schemas, and what stays inside them."""

from __future__ import annotations

import contextlib
import time
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from voiceapp.protocol.wire.json_schemas import check_schema, check_tools

TEXT = {"type": "string"}
ZOD_EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
ZOD_TIME = (
    r"^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])"
    r"-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))T(?:(?:[01]\d|2[0-3])"
    r":[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z))$"
)


class Branch(BaseModel):
    name: str
    revenue: Decimal | None = None
    branches: list[Branch] = []


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = TEXT
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def pattern(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "pattern": text, **more}


def both(make: Any, most: int) -> tuple[dict[str, Any], dict[str, Any]]:
    return make(most), make(most + 1)


BOUNDS = {
    "enum members": both(lambda most: {"enum": [f"v{number}" for number in range(most)]}, 200),
    "alternatives": both(lambda most: {"anyOf": [TEXT] * most}, 200),
    "properties": both(lambda most: {"properties": {f"p{number}": TEXT for number in range(most)}}, 100),
    "subschemas": both(lambda most: {"prefixItems": [TEXT] * (most - 1)}, 500),
    "subschemas and members": both(lambda most: {"x": [{"enum": [*range(99)]}] * 4 + [TEXT] * (most - 401)}, 500),
    "levels": both(nested, 12),
    "least length": both(lambda most: {"minLength": most}, 1000),
    "least items": both(lambda most: {"type": "array", "items": {"minItems": most}}, 1000),
    "reference": both(lambda most: {"$ref": "#/$defs/" + "a" * (most - 8), "$defs": {"a" * (most - 8): TEXT}}, 1000),
    "pattern": both(lambda most: pattern("a" * most), 200),
    "patterns": both(lambda most: {"x": [pattern("a" * 200)] * (most // 200) + [pattern("a" * (most % 200))]}, 40_000),
    "pattern of a format": both(lambda most: pattern("a" * most, format="uuid"), 500),
    "repetitions": both(lambda most: pattern("a?" * most), 32),
    "count in a pattern": both(lambda most: pattern(f"(a{{1,{most}}}b)*"), 1000),
}
PASS = {
    "recursive": Branch.model_json_schema(),
    "zod email": pattern(ZOD_EMAIL, format="email"),
    "zod time": pattern(ZOD_TIME, format="date-time"),
    "slug": pattern("^[a-z0-9]+(-[a-z0-9]+)*$"),
    "count of counts": pattern("(a{100}b){10}"),
    "lazy": pattern("(a+?b)+"),
    "properties called like keywords": {"properties": {name: TEXT for name in ("$ref", "enum", "pattern", "default")}},
    "data that looks like a schema": {"default": {"$ref": "http://a.example/", "maxLength": 5000}},
    "reference to a place": {"properties": {"a": TEXT, "b": {"$ref": "#/properties/a"}}},
    "reference into a list": {"anyOf": [TEXT, {"$ref": "#/anyOf/0"}]},
    "length": {"type": "string", "maxLength": 4000},
    "reference to a boolean": {"$ref": "#/$defs/Any", "$defs": {"Any": True}},
    "reference of a generic model": {"$ref": "#/$defs/A%5Bint%5D", "$defs": {"A[int]": TEXT}},
    "escaped reference": {"$ref": "#/$defs/a~1b", "$defs": {"a/b": TEXT}},
}
REFUSED = {
    "outward": {"$ref": "https://example.com/schema.json"},
    "outward, further in": {"items": {"anyOf": [{"$ref": "file:///etc/passwd"}]}},
    "nowhere": {"$ref": "#/$defs/a"},
    "into data": {"$ref": "#/default", "default": {"enum": [*range(30_000)]}},
    "hidden": {"$ref": "#/x", "x": {"enum": [*range(30_000)]}},
    "to itself": {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}},
    "in a circle": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "nested repetition": pattern("^(a+)+$"),
    "nested deeper": pattern(r"^(?:x|(?:(\w*\s?)))*$"),
    "nested count": pattern("(a{100}b){11}"),
}  # fmt: skip


@pytest.mark.parametrize("schema", [*PASS.values(), *(most for most, _ in BOUNDS.values())], ids=[*PASS, *BOUNDS])
def test_what_client_libraries_write_passes(schema: dict[str, Any]) -> None:
    check_schema(schema)


@pytest.mark.parametrize("schema", [*REFUSED.values(), *(more for _, more in BOUNDS.values())], ids=[*REFUSED, *BOUNDS])
def test_what_takes_an_engine_long_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"the schema has more than|\$ref '|a pattern repeats"):
        check_schema(schema)


def test_tools_are_bounded_together() -> None:
    for most, more in (
        ([{"enum": [*range(200)]}] * 5, {"enum": [1]}),
        ([{"x": [TEXT] * 499}] * 10, TEXT),
        ([{"x": [pattern("a" * 200)] * 40}] * 5, pattern("a")),
    ):
        check_tools(most)
        with pytest.raises(ValueError, match="all tools together"):
            check_tools([*most, more])


def test_many_large_tools_are_read_in_a_moment() -> None:
    chain = {f"k{number}": {"$ref": f"#/$defs/k{number + 1}"} for number in range(498)} | {"k498": TEXT}
    patterns = {"x": [pattern("(a{2}[bc]|d)" * 16)] * 499}
    for schema in ({"$defs": chain}, patterns):
        began = time.thread_time()
        with contextlib.suppress(ValueError):
            check_tools([schema] * 20)
        assert time.thread_time() - began < 1
