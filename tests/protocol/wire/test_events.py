"""Reading every client event, writing every server event."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.conversations import Conversation
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import MAX_JSON_DEPTH

PCM = base64.b64encode(b"\x01\x00\x02\x00").decode()
ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}


def read(**message: Any) -> ev.ClientEvent:
    return ev.parse_client_event(json.dumps(message))


def refusal(**message: Any) -> ev.EventError:
    with pytest.raises(ev.EventError) as refused:
        read(event_id="mine", **message)
    assert refused.value.event_id == "mine"
    return refused.value


# ── Client events ────────────────────────────────────────────────────────────────────────────────────────────────────

VALID: dict[str, list[dict[str, Any]]] = {
    "session.update": [{"session": {}}, {"session": {"voice": "Tina", "turn_detection": None}}],
    "input_audio_buffer.append": [{"audio": PCM}, {"audio": ""}],
    "input_audio_buffer.commit": [{}],
    "input_audio_buffer.clear": [{}],
    "input_image_buffer.append": [{"image": "AAAA"}],
    "conversation.item.create": [{"item": ITEM}, {"item": {"type": "function_call"}, "previous_item_id": "root"}],
    "conversation.item.retrieve": [{"item_id": "item_1"}],
    "conversation.item.delete": [{"item_id": "item_1"}],
    "conversation.item.truncate": [{"item_id": "item_1", "content_index": 0, "audio_end_ms": 500}],
    "response.create": [{}, {"response": None}, {"response": {"instructions": None, "modalities": ["text"]}}],
    "response.cancel": [{}, {"response_id": "resp_1"}],
    "session.reminders.restore": [{"reminders": []}, {"reminders": [{"id": "a", "name": "b", "text": "c"}]}],
    "session.finish": [{}],
}


def test_every_client_event_is_tried_here() -> None:
    assert set(VALID) == set(ev.CLIENT_EVENTS)


@pytest.mark.parametrize(("kind", "message"), [(kind, body) for kind, bodies in VALID.items() for body in bodies])
def test_it_reads_every_client_event(kind: str, message: dict[str, Any]) -> None:
    event = read(type=kind, **message)
    assert type(event) is ev.CLIENT_EVENTS[kind]
    assert event.event_id is None
    assert read(type=kind, event_id="mine", **message).event_id == "mine"


def test_it_decodes_audio() -> None:
    assert read(type="input_audio_buffer.append", audio=PCM) == ev.AudioAppend(audio=b"\x01\x00\x02\x00")


def test_it_reads_every_field() -> None:
    assert read(type="session.update", session={"voice": "A"}) == ev.SessionUpdate(session={"voice": "A"})
    assert read(type="conversation.item.create", item=ITEM, previous_item_id="x") == ev.ItemCreate(
        item=ITEM, previous_item_id="x"
    )
    assert read(type="conversation.item.truncate", item_id="x", audio_end_ms=7) == ev.ItemTruncate(
        item_id="x", content_index=0, audio_end_ms=7
    )
    assert read(type="response.create", response={"voice": "A"}) == ev.ResponseCreate(response={"voice": "A"})
    assert read(type="response.cancel", response_id="x") == ev.ResponseCancel(response_id="x")
    assert read(type="input_image_buffer.append", image="x") == ev.ImageAppend(image="x")


def test_it_cuts_the_fraction_that_javascript_clocks_give() -> None:
    event = read(type="conversation.item.truncate", item_id="x", audio_end_ms=1234.56)
    assert event == ev.ItemTruncate(item_id="x", audio_end_ms=1234)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("session.update", "session"),
        ("session.reminders.restore", "reminders"),
        ("input_audio_buffer.append", "audio"),
        ("input_image_buffer.append", "image"),
        ("conversation.item.create", "item"),
        ("conversation.item.retrieve", "item_id"),
        ("conversation.item.delete", "item_id"),
        ("conversation.item.truncate", "item_id"),
    ],
)
def test_it_names_the_field_that_is_missing(kind: str, name: str) -> None:
    for message in ({}, {name: None}):
        refused = refusal(type=kind, **message)
        assert (refused.code, refused.param) == ("missing_required_parameter", name)


def test_truncation_needs_its_position() -> None:
    refused = refusal(type="conversation.item.truncate", item_id="x")
    assert (refused.code, refused.param) == ("missing_required_parameter", "audio_end_ms")


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("session.update", "session", []),
        ("session.reminders.restore", "reminders", {}),
        ("session.reminders.restore", "reminders", [None]),
        ("input_audio_buffer.append", "audio", 5),
        ("input_image_buffer.append", "image", {}),
        ("conversation.item.create", "item", "hello"),
        ("conversation.item.retrieve", "item_id", 7),
        ("conversation.item.delete", "item_id", True),
        ("response.create", "response", "now"),
        ("response.cancel", "response_id", 7),
    ],
)
def test_it_names_the_field_of_a_wrong_type(kind: str, name: str, value: object) -> None:
    refused = refusal(type=kind, **{name: value})
    assert (refused.code, refused.param) == ("invalid_type", name)


@pytest.mark.parametrize(
    ("value", "code"),
    [(-1, "invalid_value"), (-0.5, "invalid_value"), (2**60, "invalid_value"), (True, "invalid_type"),
     ("5", "invalid_type"), ([], "invalid_type")],
)  # fmt: skip
def test_it_refuses_a_position_that_is_none(value: object, code: str) -> None:
    refused = refusal(type="conversation.item.truncate", item_id="x", audio_end_ms=value)
    assert (refused.code, refused.param) == (code, "audio_end_ms")


@pytest.mark.parametrize("audio", ["not base64!", "AAA", "ÄÄÄÄ", "AA AA"])
def test_it_refuses_audio_that_is_not_base64(audio: str) -> None:
    refused = refusal(type="input_audio_buffer.append", audio=audio)
    assert (refused.code, refused.param) == ("invalid_value", "audio")


@pytest.mark.parametrize("kind", ["session.updated", "", "response.audio.delta", None, 5, ["session.update"], {}])
def test_it_refuses_an_unknown_type(kind: object) -> None:
    refused = refusal(type=kind)
    assert (refused.code, refused.param) == ("unknown_event_type", "type")


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "null", '"hello"', "{'a': 1}", "[" * 100_000, '{"type": NaN}'])
def test_it_refuses_what_is_not_a_json_object(text: str) -> None:
    with pytest.raises(ev.EventError) as refused:
        ev.parse_client_event(text)
    assert refused.value.code == "invalid_json"


def test_it_refuses_numbers_that_json_cannot_say_back() -> None:
    text = '{"type": "session.update", "event_id": "mine", "session": {"tools": [{"x": 1e999}]}}'
    with pytest.raises(ev.EventError) as refused:
        ev.parse_client_event(text)
    assert refused.value.event_id == "mine"


def test_it_refuses_deep_nesting() -> None:
    deep: Any = 1
    for _ in range(MAX_JSON_DEPTH + 1):
        deep = [deep]
    assert "nested" in refusal(type="session.update", session={"tools": deep}).message


def test_it_cleans_strings_wherever_they_stand() -> None:
    event = read(type="session.update", session={"instructions": "a\x00b\ud800c", "tools": [{"n\x00": "\udfff"}]})
    assert event == ev.SessionUpdate(session={"instructions": "ab?c", "tools": [{"n": "?"}]})


def test_an_event_id_that_is_not_a_string_is_ignored() -> None:
    assert read(type="response.create", event_id=5).event_id is None


# ── Server events ────────────────────────────────────────────────────────────────────────────────────────────────────

OF_CONTENT = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}
OF_TOOL = {"item_id": "mcp_1", "output_index": 0}
OF_CALL = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "call_id": "call_1"}
ANY = {"id": "x"}
TRANSCRIPTION = "conversation.item.input_audio_transcription"

SERVER: dict[str, dict[str, Any]] = {
    "session.created": {"session": ANY},
    "session.updated": {"session": ANY},
    "session.resumable": {"token": "abc", "grace_s": 20.0},
    "session.resumed": {"received": 7},
    "session.finished": {},
    "session.reminders.updated": {"reminders": [ANY]},
    "session.closing": {"code": 4000, "reason": "time is up"},
    "input_audio_buffer.speech_started": {"audio_start_ms": 320, "item_id": "item_1"},
    "input_audio_buffer.speech_stopped": {
        "audio_end_ms": 960, "item_id": "item_1", "reason": "turn_invalid", "echo": True,
    },
    "input_audio_buffer.timeout_triggered": {"audio_start_ms": 0, "audio_end_ms": 5000, "item_id": "item_1"},
    "input_audio_buffer.committed": {"item_id": "item_1", "previous_item_id": "item_0"},
    "input_audio_buffer.cleared": {},
    "conversation.item.created": {"item": ANY, "previous_item_id": "item_0"},
    "conversation.item.retrieved": {"item": ANY},
    "conversation.item.deleted": {"item_id": "item_1"},
    "conversation.item.truncated": {
        "item_id": "item_1", "content_index": 0, "audio_end_ms": 700, "transcript": "It is", "unheard": " noon.",
    },
    f"{TRANSCRIPTION}.delta": {
        "item_id": "item_1", "content_index": 0, "text": "What", "stash": "time", "language": "en",
        "emotion": "neutral",
    },
    f"{TRANSCRIPTION}.completed": {
        "item_id": "item_1", "content_index": 0, "transcript": "What time is it?", "language": "en",
    },
    f"{TRANSCRIPTION}.failed": {"item_id": "item_1", "content_index": 0, "error": ANY},
    "response.created": {"response": ANY},
    "response.output_item.added": {"response_id": "resp_1", "output_index": 0, "item": ANY},
    "response.output_item.done": {"response_id": "resp_1", "output_index": 0, "item": ANY},
    "response.content_part.added": {**OF_CONTENT, "part": {"type": "audio", "transcript": ""}},
    "response.content_part.done": {**OF_CONTENT, "part": {"type": "audio", "transcript": "It is noon."}},
    "response.text.delta": {**OF_CONTENT, "delta": "It"},
    "response.text.done": {**OF_CONTENT, "text": "It is noon."},
    "response.audio_transcript.delta": {**OF_CONTENT, "delta": "It"},
    "response.audio_transcript.done": {**OF_CONTENT, "transcript": "It is noon."},
    "response.audio.words": {**OF_CONTENT, "words": [{"text": "It", "start_ms": 30, "end_ms": 180}]},
    "response.audio.done": OF_CONTENT,
    "response.audio.ducked": {"response_id": "resp_1"},
    "response.audio.restored": {"response_id": "resp_1", "item_id": "item_1", "audio_start_ms": 1480},
    "response.function_call_arguments.delta": {**OF_CALL, "delta": "{"},
    "response.function_call_arguments.done": {**OF_CALL, "name": "weather", "arguments": "{}"},
    **{f"mcp_list_tools.{state}": {"item_id": "mcpl_1"} for state in ("in_progress", "completed", "failed")},
    "response.mcp_call_arguments.done": {
        "response_id": "resp_1", "item_id": "mcp_1", "output_index": 0, "arguments": "{}"
    },
    **{f"response.mcp_call.{state}": OF_TOOL for state in ("in_progress", "completed", "failed")},
    "response.source.added": {"response_id": "resp_1", "title": "Interrupting", "text": "Speak.", "page": ""},
    "response.done": {"response": ANY},
}  # fmt: skip


def test_every_server_event_is_tried_here() -> None:
    assert {*SERVER, "error", "response.audio.delta"} == set(ev.SERVER_EVENTS)


@pytest.mark.parametrize(("kind", "body"), SERVER.items())
def test_it_writes_every_server_event(kind: str, body: dict[str, Any]) -> None:
    cls: Callable[..., ev.ServerEvent] = ev.SERVER_EVENTS[kind]
    event = cls(event_id="event_1", **body)
    assert event.to_wire() == {"type": kind, "event_id": "event_1", **body}
    assert {field.name for field in fields(event)} == {"event_id", *body}


def test_audio_goes_out_as_base64() -> None:
    event = ev.AudioDelta(event_id="event_1", response_id="resp_1", item_id="item_1", output_index=0, audio=b"\x01\x00")
    assert event.to_wire() == {"type": "response.audio.delta", "event_id": "event_1", **OF_CONTENT, "delta": "AQA="}


def test_an_error_says_whose_fault_and_about_what() -> None:
    event = ev.ErrorEvent(event_id="event_1", code="invalid_value", message="No.", param="session.voice", about="mine")
    assert event.to_wire() == {
        "type": "error",
        "event_id": "event_1",
        "error": {
            "type": "invalid_request_error",
            "code": "invalid_value",
            "message": "No.",
            "param": "session.voice",
            "event_id": "mine",
        },
    }


def test_fields_that_are_unknown_are_left_out() -> None:
    assert "reason" not in ev.SpeechStopped(audio_end_ms=1, item_id="x").to_wire()
    assert "previous_item_id" not in ev.ItemCreated(item=ANY).to_wire()


# ── Anything a client may send ───────────────────────────────────────────────────────────────────────────────────────

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
WORDS = st.sampled_from(
    ["session", "item", "response", "type", "audio", "item_id", "content", "role", "modalities", "turn_detection",
     "tools", "input", "output", "format", "threshold", "previous_item_id", "audio_end_ms", "content_index", "text",
     "message", "user", "assistant", "input_text", "input_audio", "server_vad", "function", "name", "root", "voice"]
)  # fmt: skip
SETTINGS = st.dictionaries(WORDS, st.recursive(SCALARS | WORDS, lambda i: st.lists(i) | st.dictionaries(WORDS, i)))
MESSAGES = st.builds(
    lambda kind, body, extra: {"type": kind, **body, **extra},
    st.sampled_from(sorted(ev.CLIENT_EVENTS)),
    st.sampled_from([body for bodies in VALID.values() for body in bodies]),
    st.dictionaries(WORDS, VALUES | SETTINGS, max_size=3),
)


@given(st.text() | (VALUES | MESSAGES).map(json.dumps))
@settings(max_examples=300, deadline=None)
def test_whatever_comes_is_read_or_refused(text: str) -> None:
    try:
        event = ev.parse_client_event(text)
    except ev.EventError:
        return
    assert ev.CLIENT_EVENTS[event.type] is type(event)


@given(st.lists(MESSAGES, max_size=6))
@settings(max_examples=75, deadline=None)
def test_whatever_is_read_a_session_lives_on(messages: list[dict[str, Any]]) -> None:
    talk = Conversation()
    for message in messages:
        if message["type"] not in ("input_audio_buffer.append", "session.finish"):
            talk.tell_text(json.dumps(message))
    talk.tell("session.update", session={})
    talk.assert_event("session.updated")
