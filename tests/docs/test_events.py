"""The realtime events of the site: complete, as the protocol core says them, found by search, and as AsyncAPI."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.test import Client

from tests.docs.recorded_events import FILE, recorded
from voiceapp.docs.codes import EVENT_CODES
from voiceapp.docs.events import DETAILS, DIALECTS, EventReference, event_pages
from voiceapp.protocol.configuration import SETTINGS
from voiceapp.protocol.wire import events as ev

pytestmark = pytest.mark.django_db


@pytest.fixture(params=DIALECTS)
def page(request: pytest.FixtureRequest) -> EventReference:
    return event_pages()[request.param]


def test_examples_and_sequences_are_those_of_the_core() -> None:
    assert FILE.read_text() == recorded(), "run `python -m tests.docs.recorded_events` and read the difference"


def test_every_event_of_our_dialect_has_a_meaning_fields_and_an_example() -> None:
    page = event_pages()["own"]
    assert [event.name for event in page.client] == list(ev.CLIENT_EVENTS)
    assert [event.name for event in page.server] == list(ev.SERVER_EVENTS)
    for event in (*page.client, *page.server):
        assert event.meaning
        example = json.loads(event.example)
        names = {field.path.partition(".")[0] for field in event.fields} | {"type"}
        assert set(example) <= names
        for field in event.fields:
            value: Any = example
            for part in field.path.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            missing_may_be = not field.is_required or field.path == "event_id"
            assert value is not None or missing_may_be, f"{event.name}.{field.path}"


def test_sequences_lead_to_events(page: EventReference) -> None:
    steps = {step.href for steps in page.sequences.values() for step in steps}
    names = {f"#{event.name}" for event in (*page.client, *page.server)}
    own = {f"/docs/reference/events#{name}" for name in (*ev.CLIENT_EVENTS, *ev.SERVER_EVENTS)}
    assert steps - {""} <= (names | own if page.slug == "openai" else names)
    assert len(steps & names) == len(
        names & {f"#{event.name}" for event in (*page.client, *page.server) if event.example}
    )


def test_every_field_has_a_description(page: EventReference) -> None:
    for event in (*page.client, *page.server):
        assert [field.path for field in event.fields if not field.description] == [], event.name


def test_every_setting_of_a_session_is_listed() -> None:
    listed = {name.partition(".")[0] for name in DETAILS["settings"]}
    assert SETTINGS - listed == {"max_response_output_tokens", "max_output_tokens"}, "other names of max_tokens"


def test_every_code_of_an_error_event_is_explained() -> None:
    sources = [path.read_text() for room in ("protocol", "realtime") for path in Path("voiceapp", room).rglob("*.py")]
    codes = {code for text in sources for code in re.findall(r"\bcode=\"([a-z]+_[a-z_]+)\"", text)}
    explained = {code for group in EVENT_CODES for code in group.code.split(", ")}
    assert len(codes) > 15
    assert codes - explained == set()


def test_an_event_names_its_limits_and_errors(client: Client) -> None:
    text = client.get("/docs/reference/events").content.decode()
    append = text.partition('<h3 id="input_audio_buffer.append">')[2].partition("</article>")[0]
    assert "120 seconds" in append
    assert "audio_too_fast" in append
    assert "response_cancel_not_active" not in append
    assert "session.turn_detection.silence_duration_ms" in text


@pytest.mark.parametrize(
    ("query", "place"), [("session.created", "#session.created"), ("barge-in", "#an-interruption")]
)
def test_search_finds_them(client: Client, query: str, place: str) -> None:
    assert f'href="/docs/reference/events{place}"' in client.get("/docs/search", {"q": query}).content.decode()


def test_the_asyncapi_document_describes_each_event(client: Client) -> None:
    document = client.get("/asyncapi.json", headers={"host": "localhost:8000"}).json()
    assert (document["asyncapi"], document["servers"]["here"]["host"]) == ("3.0.0", "localhost:8000")
    assert set(document["channels"]) == set(DIALECTS)
    messages = document["channels"]["own"]["messages"]
    assert set(messages) == {*ev.CLIENT_EVENTS, *ev.SERVER_EVENTS}
    error = messages["error"]["payload"]["properties"]["error"]
    assert error["required"] == ["code", "message"]
    assert error["properties"]["param"]["type"] == ["null", "string"]
    for channel in document["channels"].values():
        for message in channel["messages"].values():
            for example in message.get("examples", ()):
                jsonschema_rs.validate(message["payload"], example["payload"])
                other = {**example["payload"], "type": "other", "header": {"action": "other", "event": "other"}}
                with pytest.raises(jsonschema_rs.ValidationError):
                    jsonschema_rs.validate(message["payload"], other)


def test_language_models_read_every_page_as_text(client: Client) -> None:
    listed = client.get("/llms.txt").content.decode()
    addresses = [
        line.partition("](http://testserver")[2].partition(")")[0] for line in listed.splitlines() if "](" in line
    ]
    assert len(addresses) > 35
    for address in addresses:
        response = client.get(address)
        assert response.status_code == 200, address
    assert client.get("/docs/manual/voices-and-settings.md").content.startswith(b"# ")
    assert client.get("/docs/manual/nothing-there.md").status_code == 404
