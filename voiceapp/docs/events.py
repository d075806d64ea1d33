"""The realtime events of each dialect as the reference shows them: meaning, fields, limits, errors, an example.

Meanings and fields are those of the classes of events; fields of OpenAI's dialect are the contract's, which is drawn
from its library, and those of run-task the examples'. Examples and sequences are recorded from the protocol core.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import cache
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString

from voiceapp.protocol import run_task
from voiceapp.protocol.openai_realtime.dialect import RENAMED
from voiceapp.protocol.wire import events as ev

from .codes import Code, codes_of_event
from .colouring import coloured
from .fields import Field, Json
from .writing import to_inline_html

DIALECTS = {
    "own": ("Realtime events", "/api-ws/v1/realtime", "the dialect of the hosted service"),
    "openai": ("Realtime events, OpenAI", "/v1/realtime", "OpenAI's current dialect"),
    "beta": (
        "Realtime events, OpenAI beta",
        "/v1/realtime",
        "OpenAI's older dialect, which clients ask for with the header <code>OpenAI-Beta: realtime=v1</code>",
    ),
    "run-task": (
        "Recognition and synthesis as tasks",
        "/api-ws/v1/inference",
        "the run-task dialect: sound travels in binary frames",
    ),
}
"""Title, path of the WebSocket and name of each dialect."""
COMMANDS = (run_task.RunTask, run_task.ContinueTask, run_task.FinishTask)
MEANINGS: dict[str, object] = {
    **ev.CLIENT_EVENTS,
    **ev.SERVER_EVENTS,
    **{command.action: command for command in COMMANDS},
    "task-started": run_task.task_started,
    "result-generated": run_task.result_generated,
    "task-finished": run_task.task_finished,
    "task-failed": run_task.task_failed,
}
"""Classes and functions whose docstrings say what an event means."""
DETAILS: Json = tomllib.loads(Path(__file__).with_name("event_fields.toml").read_text(encoding="utf-8"))
JSON_TYPES: dict[type, str] = {
    **{str: "string", int: "integer", float: "number", bool: "boolean"},
    **{list: "array", dict: "object", type(None): "null"},
}
REQUIRED = {"header.action", "header.task_id", "payload.task", "payload.model"}
"""Fields that a command of run-task must have."""
HEARD = "conversation.item.input_audio_transcription"
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
    example: str = ""
    """JSON; empty for one that is not sent here."""
    limits: str = ""
    errors: Sequence[Code] = ()

    @property
    def example_html(self) -> SafeString:
        return coloured(self.example, "json")


@dataclass(frozen=True, slots=True)
class SequenceStep:
    by: str
    """`client` or `server`."""
    name: str
    href: str
    """Place of the event; empty for a binary frame."""


@dataclass(frozen=True, slots=True)
class EventReference:
    slug: str
    title: str
    path: str
    dialect: str
    client: list[EventDescription]
    server: list[EventDescription]
    sequences: dict[str, list[SequenceStep]]

    @property
    def url(self) -> str:
        return address(self.slug)


def address(slug: str) -> str:
    """The address of a dialect's page."""
    return str(reverse("docs-events") if slug == "own" else reverse("docs-events-of", args=[slug]))


@cache
def event_pages() -> dict[str, EventReference]:
    """The page of each dialect; read once in a process."""
    recorded = json.loads((settings.BASE_DIR / "docs" / "examples" / "events.json").read_text(encoding="utf-8"))
    return {slug: _page(slug, recorded[slug]) for slug in DIALECTS}


def _page(slug: str, recorded: Json) -> EventReference:
    examples = recorded["examples"]
    sides = SIDES[slug](examples)
    client, server = (
        [_event(name, fields, examples[by].get(name), by) for name, fields in side.items()]
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
    if name == "binary":
        return ""
    return f"#{name}" if name in here else f"{address('own')}#{SAME.get(name, name)}"


def _event(name: str, fields: list[Field] | str, example: Json | None, by: str) -> EventDescription:
    if isinstance(fields, str):
        return EventDescription(name, to_inline_html(f"Not used: {fields}."), [])
    shown = "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
    meaning = to_inline_html(" ".join((inspect.getdoc(MEANINGS.get(SAME.get(name, name))) or "").split()))
    errors = codes_of_event(name) if by == "client" else ()
    return EventDescription(name, meaning, [*map(_described, fields)], shown, DETAILS["limits"].get(name, ""), errors)


def _described(field: Field) -> Field:
    text = DETAILS["fields"].get(field.path, "")
    return field if field.description else replace(field, description=to_inline_html(text))


def _own(_: Json) -> list[dict[str, list[Field] | str]]:
    """The client's events and the server's of our own dialect, with their fields."""
    client: dict[str, list[Field] | str] = {name: _own_fields(cls) for name, cls in ev.CLIENT_EVENTS.items()}
    server: dict[str, list[Field] | str] = {name: _own_fields(cls) for name, cls in ev.SERVER_EVENTS.items()}
    client["session.update"] = [
        *_own_fields(ev.SessionUpdate),
        *(
            Field(f"session.{name}", kind, False, to_inline_html(text), rule[0] if rule else "")
            for name, (kind, text, *rule) in DETAILS["settings"].items()
        ),
    ]
    return [client, server]


def _beta(examples: Json) -> list[dict[str, list[Field] | str]]:
    """The same, but for the words of callers, which are told as in OpenAI's current dialect."""
    client, server = _own(examples)
    return [
        client,
        {
            **server,
            **{
                name: each for name, each in _contract(examples)[1].items() if name.startswith(HEARD) and name in server
            },
        },
    ]


def _run_task(examples: Json) -> list[dict[str, list[Field] | str]]:
    return [{name: list(_of_example(event)) for name, event in examples[by].items()} for by in ("client", "server")]


def _of_example(event: Mapping[str, object], at: str = "") -> Iterator[Field]:
    """The fields of an event that has no class of its own."""
    for name, value in event.items():
        path = f"{at}{name}"
        if isinstance(value, dict) and path not in DETAILS["fields"]:
            yield from _of_example(value, f"{path}.")
        else:
            yield Field(path, JSON_TYPES[type(value)], path in REQUIRED, SafeString(""), "")


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
    """Return what stands under each field of events, by class and field; classes have those of their bases."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(ev)).body:
        if isinstance(node, ast.ClassDef):
            inherited = [found.get(base.id, {}) for base in node.bases if isinstance(base, ast.Name)]
            found[node.name] = {name: text for each in inherited for name, text in each.items()}
            for before, line in zip(node.body, node.body[1:], strict=False):
                if isinstance(before, ast.AnnAssign) and isinstance(line, ast.Expr):
                    found[node.name][ast.unparse(before.target)] = " ".join(ast.literal_eval(line.value).split())
    return found


def _contract(_: Json) -> list[dict[str, list[Field] | str]]:
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
        kinds = {kind if kind[0].islower() and "__" not in kind else "object" for kind in each["type"].split(" or ")}
        yield Field(each["name"], " or ".join(sorted(kinds)), not each["maybe"], SafeString(""), "")


SIDES: dict[str, Callable[[Json], list[dict[str, list[Field] | str]]]] = {
    "own": _own,
    "openai": _contract,
    "beta": _beta,
    "run-task": _run_task,
}
"""Events of the client and of the server with their fields, or why one is not used; given the recorded examples."""
