"""The contract of OpenAI's realtime dialect as a table, drawn from the types of OpenAI's own library.

`make contracts` shows what a new release of the library changed, `python -m tests.contracts --write` writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent
from pydantic import TypeAdapter

from voiceapp.protocol.wire import events as ev

Json = dict[str, Any]

TABLE = Path(__file__).resolve().parents[3] / "docs" / "contracts" / "openai-realtime.md"
HEAD = """# OpenAI's realtime dialect

The events of OpenAI's current realtime dialect with their fields and types, as the `openai` library for Python has
them, and what this server does with each. Fields with a question mark may be left out.

"""
RENAMED_HERE = {"conversation.item.added", "conversation.item.done"} | {
    f"response.output_{what}.{when}" for what in ("audio", "audio_transcript", "text") for when in ("delta", "done")
}
ON_A_TRACK = {"output_audio_buffer.started", "output_audio_buffer.stopped", "output_audio_buffer.cleared"}
NOT_SENT = {
    "conversation.created": "not sent: OpenAI sends it to clients of the beta",
    "conversation.item.created": "not sent: the beta's name of `conversation.item.added`",
    "conversation.item.input_audio_transcription.segment": "not sent: speakers are not told apart",
    "input_audio_buffer.dtmf_event_received": "not sent: calls by SIP do not exist here",
    "response.mcp_call_arguments.delta": "not sent: arguments are told whole",
    "rate_limits.updated": "not sent: the limits here are not of tokens a minute",
}


def table() -> str:
    """The whole file."""
    server, client = _schema(RealtimeServerEvent), _schema(RealtimeClientEvent)
    parts = [
        HEAD,
        *_section("Events of the server", server, _sent),
        *_section("Events of the client", client, _read),
        "## Objects in them\n\n| Object | Fields |\n|---|---|\n",
        *_objects({**server["$defs"], **client["$defs"]}, {*_events(server), *_events(client)}),
    ]
    return "".join(parts)


def _schema(union: Any) -> Json:
    return TypeAdapter(union).json_schema()


def _events(schema: Json) -> dict[str, Json]:
    """The definitions of events by the names that Python has for them."""
    choices = schema.get("oneOf") or schema["anyOf"]
    names = [choice["$ref"].rpartition("/")[2] for choice in choices]
    return {name: schema["$defs"][name] for name in names}


def _section(title: str, schema: Json, here: Any) -> Iterator[str]:
    yield f"## {title}\n\n| Event | Fields | Here |\n|---|---|---|\n"
    for definition in sorted(_events(schema).values(), key=_kind):
        kind = _kind(definition)
        yield f"| `{kind}` | {_fields(definition)} | {here(kind)} |\n"
    yield "\n"


def _kind(definition: Json) -> str:
    return str(definition["properties"]["type"]["const"])


def _sent(kind: str) -> str:
    if kind in NOT_SENT:
        return NOT_SENT[kind]
    if kind in ON_A_TRACK:
        return "sent over WebRTC"
    return "sent" if kind in RENAMED_HERE or kind in ev.SERVER_EVENTS else "unknown"


def _read(kind: str) -> str:
    return "read" if kind in ev.CLIENT_EVENTS or kind == "output_audio_buffer.clear" else "unknown"


def _objects(definitions: Json, events: set[str]) -> Iterator[str]:
    for name, definition in sorted(definitions.items()):
        if name not in events:
            yield f"| {name} | {_fields(definition) if 'properties' in definition else _type(definition)} |\n"


def _fields(definition: Json) -> str:
    required = definition.get("required", ())
    named = (
        f"`{name}{'' if name in required else '?'}`: {_type(field)}"
        for name, field in sorted(definition.get("properties", {}).items())
        if name != "type" or "const" not in field
    )
    return ", ".join(named) or "none"


def _type(field: Json) -> str:
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if alternatives := field.get("anyOf") or field.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(each) for each in alternatives if each.get("type") != "null"))
    if choices := field.get("enum") or ([field["const"]] if "const" in field else None):
        return " or ".join(f'"{choice}"' for choice in choices)
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("type", "any"))
