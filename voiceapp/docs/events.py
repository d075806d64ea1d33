"""The realtime events of each dialect as the reference shows them: meaning, fields, an example, and sequences.

Meanings and fields of our own dialect are those of the classes in `protocol/wire/events.py`; fields of OpenAI's are the
contract's, which is drawn from its library. Examples and sequences are recorded from the protocol core.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Container, Iterator
from dataclasses import MISSING, dataclass
from dataclasses import fields as dataclass_fields
from functools import cache

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString

from voiceapp.protocol.openai_realtime.dialect import RENAMED
from voiceapp.protocol.wire import events as ev

from .fields import Field, Json
from .writing import to_inline_html

DIALECTS = {
    "own": ("Realtime events", "/api-ws/v1/realtime", "the dialect of the hosted service and of OpenAI's beta"),
    "openai": ("Realtime events of OpenAI's dialect", "/v1/realtime", "OpenAI's current dialect"),
}
"""Title, path of the WebSocket and name of each dialect."""
CLASSES: dict[str, type[ev.ClientEvent | ev.ServerEvent]] = {**ev.CLIENT_EVENTS, **ev.SERVER_EVENTS}
TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "bytes": "string, Base64",
    "JsonObject": "object",
    "list[JsonObject]": "array of object",
}
ON_THE_WIRE: dict[tuple[type, str], str] = {
    **{(ev.ErrorEvent, name): f"error.{name}" for name in ("code", "message", "param")},
    (ev.ErrorEvent, "error_type"): "error.type",
    (ev.ErrorEvent, "about"): "error.event_id",
    (ev.AudioDelta, "audio"): "delta",
    (ev.AudioDelta, "heard_from"): "",
}
"""Names of fields that are written otherwise; empty for what is not sent."""
SAME = {**{theirs: ours for ours, theirs in RENAMED.items()}, "conversation.item.added": "conversation.item.created"}
"""Events of our own dialect that say the same as those of OpenAI's."""
ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| (?P<fields>.*?) \| (?P<here>[^|]*) \|$", re.MULTILINE)
FIELD = re.compile(r"`(?P<name>\w+)(?P<maybe>\??)`: (?P<type>.*?)(?=, `|$)")


@dataclass(frozen=True, slots=True)
class EventDescription:
    name: str
    meaning: SafeString
    fields: list[Field]
    example: str
    """JSON; empty for one that is not sent here."""


@dataclass(frozen=True, slots=True)
class SequenceStep:
    by: str
    """`client` or `server`."""
    name: str
    href: str


@dataclass(frozen=True, slots=True)
class EventReference:
    slug: str
    title: str
    path: str
    dialect: str
    client: list[EventDescription]
    server: list[EventDescription]
    sequences: dict[str, list[SequenceStep]]


@cache
def event_pages() -> dict[str, EventReference]:
    """The page of each dialect; read once in a process."""
    recorded = json.loads((settings.BASE_DIR / "docs" / "examples" / "events.json").read_text(encoding="utf-8"))
    return {slug: _page(slug, recorded[slug]) for slug in DIALECTS}


def _page(slug: str, recorded: Json) -> EventReference:
    examples = recorded["examples"]
    sides = _contract() if slug == "openai" else _own()
    client, server = (
        [_event(name, fields, examples[by].get(name)) for name, fields in side.items()]
        for by, side in zip(("client", "server"), sides, strict=True)
    )
    here = {event.name for event in (*client, *server)}
    sequences = {
        title: [SequenceStep(by, name, _href(name, here)) for by, name in map(str.split, steps)]
        for title, steps in recorded["sequences"].items()
    }
    return EventReference(slug, *DIALECTS[slug], client, server, sequences)


def _href(name: str, here: Container[str]) -> str:
    """The place of an event; additions of ours to a dialect have theirs on the page of our own."""
    return f"#{name}" if name in here else f"{reverse('docs-events')}#{SAME.get(name, name)}"


def _event(name: str, fields: list[Field] | str, example: Json | None) -> EventDescription:
    if isinstance(fields, str):
        return EventDescription(name, to_inline_html(f"Not used: {fields}."), [], "")
    shown = "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
    return EventDescription(name, to_inline_html(_meaning(CLASSES.get(SAME.get(name, name)))), fields, shown)


def _meaning(cls: type | None) -> str:
    return " ".join((cls.__doc__ or "").split()) if cls else ""


def _own() -> list[dict[str, list[Field] | str]]:
    """The client's events and the server's of our own dialect, with their fields."""
    return [
        {name: _own_fields(CLASSES[name]) for name in ev.CLIENT_EVENTS},
        {name: _own_fields(CLASSES[name]) for name in ev.SERVER_EVENTS},
    ]


def _own_fields(cls: type[ev.ClientEvent | ev.ServerEvent]) -> list[Field]:
    found = []
    for each in sorted(dataclass_fields(cls), key=lambda each: each.name == "event_id"):
        name = ON_THE_WIRE.get((cls, each.name), each.name)
        has_default = each.default is not MISSING or each.default_factory is not MISSING
        kind, _, maybe = str(each.type).partition(" | ")
        description = to_inline_html(_descriptions()[cls.__name__].get(each.name, ""))
        rule = f"default {each.default}" if each.default not in (MISSING, None, "") else ""
        if name:
            found.append(Field(name, TYPES[kind] + (" or null" if maybe else ""), not has_default, description, rule))
    return found


@cache
def _descriptions() -> dict[str, dict[str, str]]:
    """What stands under each field of the classes of events, by class and field; classes have those of their bases."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(ev)).body:
        if isinstance(node, ast.ClassDef):
            inherited = [found.get(base.id, {}) for base in node.bases if isinstance(base, ast.Name)]
            found[node.name] = {name: text for each in inherited for name, text in each.items()}
            for before, line in zip(node.body, node.body[1:], strict=False):
                if isinstance(before, ast.AnnAssign) and isinstance(line, ast.Expr):
                    found[node.name][ast.unparse(before.target)] = " ".join(ast.literal_eval(line.value).split())
    return found


def _contract() -> list[dict[str, list[Field] | str]]:
    """The client's events and the server's of OpenAI's contract: fields, or why one is not used here."""
    text = (settings.BASE_DIR / "docs" / "contracts" / "openai-realtime.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    return [
        {
            row["name"]: row["here"].partition(": ")[2]
            if ": " in row["here"]
            else list(_contract_fields(row["fields"]))
            for section in sections
            if section.startswith(f"Events of the {by}")
            for row in ROW.finditer(section)
        }
        for by in ("client", "server")
    ]


def _contract_fields(text: str) -> Iterator[Field]:
    for each in FIELD.finditer(text):
        kinds = {kind if kind[0].islower() else "object" for kind in each["type"].split(" or ")}
        yield Field(each["name"], " or ".join(sorted(kinds)), not each["maybe"], SafeString(""), "")
