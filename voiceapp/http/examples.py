"""Requests and responses of each operation, from `docs/examples`; the reference and OpenAPI show them."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings

_FOLDER = settings.BASE_DIR / "docs" / "examples"
RESPONSES = _FOLDER / "responses.json"
"""JSON responses by method and path, as this server gave them."""
_REQUESTS = json.loads((_FOLDER / "requests.json").read_text(encoding="utf-8"))
BODIES: dict[str, dict[str, Any]] = {
    **_REQUESTS["bodies"],
    **{path.replace("agentstudio", "agentsvc"): body for path, body in _REQUESTS["bodies"].items()},
}
FORMS: dict[str, dict[str, Any]] = _REQUESTS["forms"]
"""By path, for those that take files; of a file, its name."""
PARAMETERS: dict[str, str] = _REQUESTS["parameters"]
"""By name, what stands in an address."""


def put_examples(document: dict[str, Any]) -> None:
    """Add them to the document, in place, where an operation brings no example of its own."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path" and parameter["name"] in PARAMETERS:
                    parameter.setdefault("example", PARAMETERS[parameter["name"]])
    for operation_name, example in json.loads(RESPONSES.read_text(encoding="utf-8")).items():
        method, _, path = operation_name.partition(" ")
        document["paths"][path][method.lower()]["responses"]["200"]["content"]["application/json"]["example"] = example
    for content_type, examples in (("application/json", BODIES), ("multipart/form-data", FORMS)):
        for path, example in examples.items():
            for operation in document["paths"][path].values():
                media = operation.get("requestBody", {}).get("content", {}).get(content_type)
                if media is not None and not {"example", "examples"} & media.keys():
                    media["example"] = example
