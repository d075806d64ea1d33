"""What is looked at of a text that passes through."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.protocol.client_side import client_event_wire, server_event_of
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.forwarded.texts import (
    FORWARDING,
    ForwardedEvent,
    ForwardedMessage,
    appended_bytes,
    for_service,
    spoken_bytes,
)
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.events import parse_client_event

WHERE = {"event_id": "event_1", "response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}


@given(st.binary(max_size=200), st.sampled_from([None, (",", ":")]), st.sampled_from(["", "first", "last"]))
def test_the_length_of_audio_is_known_without_reading_it(
    audio: bytes, separators: tuple[str, str] | None, named: str
) -> None:
    encoded = base64.b64encode(audio).decode()
    append = {"type": "input_audio_buffer.append", "audio": encoded}
    if named == "first":
        append = {"event_id": "mine-1", **append}
    elif named == "last":
        append["event_id"] = "mine-1"
    delta = {**WHERE, "type": "response.audio.delta", "delta": encoded}

    assert appended_bytes(json.dumps(append, separators=separators)) == len(audio)
    assert spoken_bytes(json.dumps(delta, separators=separators)) == len(audio)
    assert spoken_bytes(json.dumps({"type": "response.audio.delta", **WHERE, "delta": encoded})) == len(audio)


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"input_audio_buffer.append","audio":"AAAA","type":"session.update"}',
        '{"type":"input_audio_buffer.append","audio":"AAAA","session":{}}',
        '{"type":"input_audio_buffer.append","session":{"type":"x"},"audio":"AAAA"}',
        '{"type":"input_audio_buffer.append","audio":"AA\\"AA"}',
        '{"type":"input_audio_buffer.append","audio":"AAAA"',
        '{"type":"input_audio_buffer.append","audio":"AAAA"}}',
        '{"type":"input_audio_buffer.append","audio":["AAAA"]}',
        '{"session":{"type":"input_audio_buffer.append","audio":"AAAA"},"type":"session.update"}',
        '[{"type":"input_audio_buffer.append","audio":"AAAA"}]',
        "",
    ],
)
def test_a_text_that_may_mean_something_else_is_read(text: str) -> None:
    assert appended_bytes(text) is None


def test_audio_goes_on_as_it_came() -> None:
    text = '{ "type" : "input_audio_buffer.append", "audio" : "AAAA" }'
    assert FORWARDING.read(text) == ForwardedMessage(text=text, audio_bytes=3)


def test_an_event_that_is_known_here_goes_on() -> None:
    found = FORWARDING.read('{"event_id":"mine","type":"conversation.item.create","item":{"id":"a\\u0000b"}}')
    assert isinstance(found, ForwardedMessage)
    expected = {"event_id": "mine", "type": "conversation.item.create", "item": {"id": "ab"}}
    assert (found.wire, found.event_id) == (expected, "mine")
    assert json.loads(found.text) == expected


FUNCTION = {"type": "function", "function": {"name": "look_up"}}
MCP = {"type": "mcp", "server_url": "http://10.0.0.1"}


@pytest.mark.parametrize(("kind", "name"), [("session.update", "session"), ("response.create", "response")])
def test_a_service_learns_no_setting_that_is_not_known_here(kind: str, name: str) -> None:
    known = {"instructions": "Be brief.", "enable_search": True, "tools": [FUNCTION]}
    unknown = {"prompt": {"id": "pmpt_1"}, "tracing": "auto", "include": ["all"]}
    assert for_service({"type": kind, name: known | unknown}) == {"type": kind, name: known}
    with pytest.raises(ev.EventError) as refused:
        for_service({"type": kind, name: {"tools": [FUNCTION, MCP]}, "event_id": "mine"})
    assert (refused.value.param, refused.value.event_id) == (f"{name}.tools[1].type", "mine")


def test_a_service_is_given_no_address_to_call() -> None:
    turns = {"type": "smart_turn", "threshold": 0.4}
    given = {**turns, "voiceprint_audio_urls": ["http://10.0.0.1/a.wav"]}
    source = {"format": {"type": "pcm"}}
    session = {"turn_detection": given, "audio": {"input": {**source, "turn_detection": given}}}
    assert for_service({"type": "session.update", "session": session})["session"] == {
        "turn_detection": turns,
        "audio": {"input": {**source, "turn_detection": turns}},
    }
    off = {"type": "session.update", "session": {"turn_detection": None, "audio": {"input": None}}}
    assert for_service(off) == off


@pytest.mark.parametrize("is_object", [False, True])
@pytest.mark.parametrize("address", ["http://10.0.0.1/a.png", "file:///etc/passwd", 7])
def test_a_service_is_given_images_as_data_only(address: object, is_object: bool) -> None:
    def asking(url: object) -> list[dict[str, object]]:
        part = {"type": "input_image", "image_url": {"url": url} if is_object else url}
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "See:"}, part]}
        create: dict[str, object] = {"type": "conversation.item.create", "item": item, "event_id": "mine"}
        return [create, {"type": "response.create", "response": {"input": [item]}, "event_id": "mine"}]

    for wire, at in zip(asking(address), ("item", "response.input[0]"), strict=True):
        with pytest.raises(ev.EventError) as refused:
            for_service(wire)
        assert (refused.value.param, refused.value.event_id) == (f"{at}.content[1].image_url", "mine")
    for wire in asking("data:image/png;base64,AAAA"):
        assert for_service(wire) == wire


def test_the_end_of_a_session_is_understood() -> None:
    assert isinstance(FORWARDING.read('{"type":"session.finish"}'), ev.SessionFinish)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"type":7}',
        '{"type":"admin.delete_everything"}',
        '{"type":"input_audio_buffer.append","audio":7}',
    ],
)
def test_what_is_no_event_is_refused(text: str) -> None:
    with pytest.raises(ev.EventError):
        FORWARDING.read(text)


def test_an_event_of_the_service_is_written_as_it_came() -> None:
    event = ForwardedEvent(kind="response.done", text='{"type":"response.done","more":1}')
    assert FORWARDING.write(event) == [{"type": "response.done", "more": 1}]


SERVER_EVENTS = [
    ev.SessionCreated(event_id="event_1", session={"id": "sess_1", **SessionConfig(model="m", voice="v").to_wire()}),
    ev.SpeechStarted(event_id="event_2", audio_start_ms=120, item_id="item_1"),
    ev.SpeechStopped(event_id="event_2", audio_end_ms=120, item_id="item_1", reason="turn_invalid"),
    ev.AudioCommitted(event_id="event_2", item_id="item_1"),
    ev.TranscriptionDelta(event_id="event_3", item_id="item_1", text="What", stash=" is"),
    ev.AudioDelta(event_id="event_4", response_id="resp_1", item_id="item_1", output_index=0, audio=b"\1\2\3\4"),
    ev.ErrorEvent(event_id="event_5", code="invalid_value", message="No.", param="session.voice", about="mine"),
    ev.RemindersUpdated(event_id="event_6", reminders=[{"id": "rem_1"}]),
    ev.SessionResumable(event_id="event_7", token="t", grace_s=20.0),
]


@pytest.mark.parametrize("event", SERVER_EVENTS, ids=lambda event: event.type)
def test_a_client_reads_what_a_server_writes(event: ev.ServerEvent) -> None:
    assert server_event_of(json.loads(json.dumps(event.to_wire()))) == event


@pytest.mark.parametrize("cls", ev.SERVER_EVENTS.values(), ids=lambda cls: cls.type)
def test_every_event_of_a_server_can_be_read(cls: type[ev.ServerEvent]) -> None:
    error = {"code": "invalid_value", "message": "No."}
    given = {"response": {"id": "resp_1"}, "item": {"id": "item_1", "type": "message"}, "error": error, "delta": ""}
    found = server_event_of({"type": cls.type, "event_id": "event_1", **given})
    assert isinstance(found, cls)


def test_what_a_server_leaves_out_is_empty() -> None:
    found = server_event_of({"type": "conversation.item.truncated", "item_id": "item_1", "audio_end_ms": 5})
    assert found == ev.ItemTruncated(item_id="item_1", content_index=0, audio_end_ms=5, transcript="", unheard="")


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {"type": 7},
        {"type": "session.imagined"},
        {"type": "session.created", "session": "mine"},
        {"type": "response.done", "response": {}},
        {"type": "error", "error": "no"},
        {"type": "error"},
        {"type": "response.audio.delta", "delta": "?"},
        {"type": "response.audio.delta"},
        {"type": "input_audio_buffer.speech_started", "audio_start_ms": True},
    ],
)
def test_what_is_no_event_of_a_server_is_none(wire: dict[str, object]) -> None:
    assert server_event_of(wire) is None


@pytest.mark.parametrize(
    "event",
    [
        ev.AudioAppend(audio=b"\1\2\3"),
        ev.SessionUpdate(session={"voice": "anna"}, event_id="mine"),
        ev.ItemTruncate(item_id="item_1", audio_end_ms=70),
        ev.ResponseCreate(),
    ],
    ids=lambda event: event.type,
)
def test_a_server_reads_what_a_client_writes(event: ev.ClientEvent) -> None:
    assert parse_client_event(json.dumps(client_event_wire(event))) == event
