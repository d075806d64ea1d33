"""The WebSocket of realtime sessions as an AsyncAPI document, for programs that generate clients or checks from one."""

from __future__ import annotations

import json

from .events import CLASSES, EventDescription, event_pages
from .fields import Field, Json

KEY = {"type": "http", "scheme": "bearer"}


def asyncapi(origin: str) -> Json:
    """The WebSocket of our own dialect as an AsyncAPI 3.0 document; `origin` is this server, `https://host`."""
    scheme, _, host = origin.partition("://")
    page = event_pages()["own"]
    messages = {event.name: _message(event) for event in (*page.client, *page.server)}
    channel = {"$ref": "#/channels/realtime"}
    operations = {
        action: {
            "action": action,
            "channel": channel,
            "messages": [{"$ref": f"#/channels/realtime/messages/{event.name}"} for event in events],
        }
        for action, events in (("receive", page.client), ("send", page.server))
    }
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Voiceapp realtime", "version": "1", "description": "Spoken conversations over a WebSocket."},
        "defaultContentType": "application/json",
        "servers": {"here": {"host": host, "protocol": scheme.replace("http", "ws"), "security": [KEY]}},
        "channels": {"realtime": {"address": page.path, "messages": messages}},
        "operations": operations,
    }


def _message(event: EventDescription) -> Json:
    payload: Json = {"type": "object", "properties": {"type": {"const": event.name}}, "required": ["type"]}
    for field in event.fields:
        holder = payload
        *outer, name = field.path.split(".")
        for part in outer:
            holder = holder["properties"].setdefault(part, {"type": "object", "properties": {}, "required": []})
        holder["properties"][name] = _schema(field)
        if field.is_required:
            holder["required"].append(name)
    summary = CLASSES[event.name].__doc__ or ""
    return {"name": event.name, "summary": " ".join(summary.split()), "payload": payload} | (
        {"examples": [{"payload": json.loads(event.example)}]} if event.example else {}
    )


def _schema(field: Field) -> Json:
    kind, _, maybe = field.type.partition(" or ")
    schema: Json = {"array of object": {"type": "array", "items": {"type": "object"}}}.get(kind) or {
        "type": kind.partition(",")[0]
    }
    if kind.endswith("Base64"):
        schema["contentEncoding"] = "base64"
    if maybe:
        schema["type"] = [schema["type"], "null"]
    return schema
