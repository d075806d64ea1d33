"""The WebSockets of realtime sessions as an AsyncAPI document, from which programs generate clients and checks."""

from __future__ import annotations

import json

from .events import EventDescription, EventReference, event_pages
from .fields import Field, Json
from .search import plain

KEY = {"type": "http", "scheme": "bearer"}
TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}


def asyncapi(origin: str) -> Json:
    """An AsyncAPI 3.0 document with a channel for each dialect; `origin` is this server, `https://host`."""
    scheme, _, host = origin.partition("://")
    pages = event_pages().values()
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Voiceapp realtime", "version": "1", "description": "Spoken conversations over a WebSocket."},
        "defaultContentType": "application/json",
        "servers": {"here": {"host": host, "protocol": scheme.replace("http", "ws"), "security": [KEY]}},
        "channels": {page.slug: _channel(page) for page in pages},
        "operations": {
            f"{page.slug}.{action}": {
                "action": action,
                "channel": {"$ref": f"#/channels/{page.slug}"},
                "messages": [{"$ref": f"#/channels/{page.slug}/messages/{event.name}"} for event in _used(events)],
            }
            for page in pages
            for action, events in (("receive", page.client), ("send", page.server))
        },
    }


def _used(events: list[EventDescription]) -> list[EventDescription]:
    return [event for event in events if event.fields]


def _channel(page: EventReference) -> Json:
    kind = "header.{}" if page.slug == "run-task" else "type"
    messages = {
        event.name: _message(event, kind.format(side))
        for side, events in (("action", page.client), ("event", page.server))
        for event in _used(events)
    }
    return {"address": page.path, "title": page.title, "messages": messages}


def _message(event: EventDescription, kind: str) -> Json:
    payload: Json = {"type": "object", "properties": {}, "required": []}
    for field in event.fields:
        _put(payload, field.path, _schema(field), is_required=field.is_required)
    _put(payload, kind, {"const": event.name}, is_required=True)
    message = {"name": event.name, "summary": plain(event.meaning), "payload": payload}
    return message | ({"examples": [{"payload": json.loads(event.example)}]} if event.example else {})


def _put(schema: Json, path: str, part: Json, *, is_required: bool) -> None:
    """Place a field, making the objects on its way."""
    *outer, name = path.split(".")
    for each in outer:
        schema = schema.setdefault("properties", {}).setdefault(each, {"type": "object"})
        schema.pop("items", None)
    properties = schema.setdefault("properties", {})
    properties[name] = part | {key: value for key, value in properties.get(name, {}).items() if key == "properties"}
    if is_required:
        schema["required"] = [*dict.fromkeys((*schema.get("required", ()), name))]


def _schema(field: Field) -> Json:
    words = [each.partition(",")[0].split()[0].replace("list", "array") for each in field.type.split(" or ")]
    kinds = {word if word in TYPES else "string" for word in words}
    kinds |= set() if field.is_required else {"null"}
    schema: Json = {"type": sorted(kinds) if len(kinds) > 1 else kinds.pop()}
    if field.type.endswith("Base64"):
        schema["contentEncoding"] = "base64"
    return schema | ({"description": plain(field.description)} if field.description else {})
