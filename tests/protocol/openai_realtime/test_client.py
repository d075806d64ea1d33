"""OpenAI's dialect towards a service: what it is sent fits the types of OpenAI's library, and what it says is ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai import BaseModel
from openai.types.realtime import RealtimeClientEvent
from pydantic import TypeAdapter

from voiceapp.protocol.client_side import server_event_of
from voiceapp.protocol.openai_realtime.asking import call_there
from voiceapp.protocol.openai_realtime.client import OpenAIService
from voiceapp.protocol.openai_realtime.dialect import OpenAIRealtimeDialect
from voiceapp.protocol.wire.events import SERVER_EVENTS

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}, "strict": True}}
WHERE = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}
SETTINGS = {
    "modalities": ["text"],
    "instructions": "Be kind.",
    "voice": "marin",
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "weather"}},
    "max_tokens": 100,
    "temperature": 0.7,
    "input_audio_transcription": {"model": "ours", "language": "de"},
    "turn_detection": {"type": "server_vad", "threshold": -0.5, "silence_duration_ms": 400},
    "input_audio_format": {"type": "pcm", "sample_rate": 16_000},
}


def service(*, listens_only: bool = False) -> OpenAIService:
    return OpenAIService(listens_only=listens_only, transcription_model="whisper-1")


def sent(to: OpenAIService, type_: str, **fields: Any) -> dict[str, Any]:
    """The one message for an event of ours; it has nothing in it that OpenAI's library does not know."""
    (message,) = to.say({"type": type_, **fields})
    assert_known(TypeAdapter(RealtimeClientEvent).validate_python(message), message)
    return message


def assert_known(model: Any, message: Any) -> None:
    if isinstance(model, BaseModel):
        assert not model.model_extra, message
        for name in model.model_fields_set:
            assert_known(getattr(model, name), message)
    elif isinstance(model, list):
        for each in model:
            assert_known(each, message)


def heard(of: OpenAIService, type_: str, **fields: Any) -> dict[str, Any]:
    """Our one event for one of the service's; it can be read as ours."""
    (event,) = of.hear({"type": type_, "event_id": "event_1", **fields})
    assert server_event_of(event) is not None, event
    return event


def test_settings_are_nested_there_and_audio_has_their_one_rate() -> None:
    session = sent(service(), "session.update", session=SETTINGS)["session"]
    assert session == {
        "type": "realtime",
        "output_modalities": ["text"],
        "instructions": "Be kind.",
        "tools": [{"type": "function", "name": "weather", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "function", "name": "weather"},
        "max_output_tokens": 100,
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24_000},
                "transcription": {"model": "whisper-1", "language": "de"},
                "turn_detection": {
                    "type": "server_vad",
                    "threshold": 0.0,
                    "prefix_padding_ms": 300,
                    "silence_duration_ms": 400,
                    "create_response": True,
                    "interrupt_response": True,
                },
            },
            "output": {"format": {"type": "audio/pcm", "rate": 24_000}, "voice": "marin"},
        },
    }


def test_only_what_changes_is_sent() -> None:
    to = service()
    sent(to, "session.update", session=SETTINGS)
    session = sent(to, "session.update", session={"turn_detection": None, "input_audio_format": "g711_ulaw"})["session"]
    assert session == {
        "type": "realtime",
        "audio": {
            "input": {"format": {"type": "audio/pcmu"}, "turn_detection": None},
            "output": {"format": {"type": "audio/pcm", "rate": 24_000}},
        },
    }
    session = sent(to, "session.update", session={"turn_detection": {"type": "semantic_vad", "threshold": 0.1}})[
        "session"
    ]
    assert session["audio"]["input"]["turn_detection"] == {
        "type": "semantic_vad",
        "eagerness": "auto",
        "create_response": True,
        "interrupt_response": True,
    }


def test_a_session_that_only_transcribes_has_settings_of_its_own() -> None:
    session = sent(service(listens_only=True), "session.update", session={**SETTINGS, "instructions": "No."})["session"]
    assert (session["type"], list(session), list(session["audio"])) == ("transcription", ["type", "audio"], ["input"])


def test_items_and_responses_fit() -> None:
    to = service()
    said = {"id": "item_1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hello."}]}
    message = sent(to, "conversation.item.create", item=said, previous_item_id="root")
    assert message["item"]["content"] == [{"type": "output_text", "text": "Hello."}]
    response = {"modalities": ["text"], "conversation": "none", "input": [said], "tools": [TOOL], "temperature": 0.5}
    message = sent(to, "response.create", response={**response, "metadata": {"a": "b"}})["response"]
    assert (message["output_modalities"], message["conversation"]) == (["text"], "none")
    assert message["input"][0]["content"][0]["type"] == "output_text"
    assert set(sent(to, "response.create", response={})) == {"type", "event_id"}
    for type_, about in (("truncate", {"content_index": 0, "audio_end_ms": 5}), ("delete", {}), ("retrieve", {})):
        sent(to, f"conversation.item.{type_}", item_id="item_1", **about)


def test_what_the_service_shows_of_its_session_is_shown_as_ours() -> None:
    of = service()
    sent(of, "session.update", session={"input_audio_format": {"type": "pcm", "sample_rate": 16_000}})
    audio = {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24_000},
            "turn_detection": {"type": "semantic_vad", "eagerness": "low", "create_response": False},
        },
        "output": {"format": {"type": "audio/pcm", "rate": 24_000}, "voice": "cedar", "speed": 1.0},
    }
    session = {
        "type": "realtime",
        "id": "sess_1",
        "output_modalities": ["audio"],
        "instructions": "Hm.",
        "audio": audio,
    }
    shown = heard(of, "session.updated", session={**session, "tools": [{"type": "mcp", "server_label": "x"}]})[
        "session"
    ]
    assert (shown["voice"], shown["instructions"], shown["modalities"]) == ("cedar", "Hm.", ["text", "audio"])
    assert shown["turn_detection"]["type"] == "semantic_vad"
    assert shown["turn_detection"]["create_response"] is False
    assert shown["audio"]["input"]["format"] == {"type": "pcm", "sample_rate": 16_000}
    assert (of.source.sample_rate_hz, of.sink.sample_rate_hz) == (24_000, 24_000)


def test_a_refused_change_is_taken_back_and_said_under_the_callers_id() -> None:
    of = service()
    update = sent(
        of, "session.update", session={"voice": "nobody", "output_audio_format": "g711_alaw"}, event_id="mine"
    )
    error = {"type": "invalid_request_error", "code": "invalid_value", "message": "No such voice."}
    about = {"param": "session.audio.output.voice", "event_id": update["event_id"]}
    found = heard(of, "error", error={**error, **about})["error"]
    assert (found["event_id"], found["param"]) == ("mine", "session.voice")
    assert (of.config.voice, of.config.output_format.name) == ("", "pcm16")


def test_a_refusal_takes_no_later_change_back() -> None:
    of = service()
    first = sent(of, "session.update", session={"instructions": "Be kind.", "output_audio_format": "g711_alaw"})
    sent(of, "session.update", session={"voice": "marin", "input_audio_format": "g711_ulaw"})
    heard(of, "error", error={"code": "invalid_value", "message": "No.", "event_id": first["event_id"]})
    assert (of.config.instructions, of.config.voice) == ("", "marin")
    assert (of.source.name, of.sink.name) == ("g711_ulaw", "pcm16")


def test_what_is_shown_after_one_change_does_not_undo_the_next() -> None:
    of = service()
    sent(of, "session.update", session={"voice": "marin"})
    second = sent(of, "session.update", session={"voice": "cedar", "input_audio_format": "g711_ulaw"})
    audio = {"input": {"format": {"type": "audio/pcm", "rate": 24_000}}, "output": {"voice": "marin"}}
    shown = heard(of, "session.updated", session={"id": "x", "instructions": "Theirs.", "audio": audio})["session"]
    assert shown["voice"] == "marin"
    assert (of.config.voice, of.source.name) == ("cedar", "g711_ulaw")
    heard(of, "error", error={"code": "invalid_value", "message": "No.", "event_id": second["event_id"]})
    assert (of.config.voice, of.config.instructions, of.source.is_telephone) == ("marin", "Theirs.", False)


@pytest.mark.parametrize(
    "error",
    [{"code": "cannot_update_voice", "param": None}, {"code": "invalid_value", "param": "session.audio.output.voice"}],
)
def test_a_refusal_that_names_no_event_is_of_the_oldest_change(error: dict[str, Any]) -> None:
    of = service()
    sent(of, "session.update", session={"voice": "marin"}, event_id="mine")
    sent(of, "session.update", session={"instructions": "Be kind."})
    heard(of, "error", error={"code": "rate_limit_exceeded", "message": "Slower."})
    assert of.config.voice == "marin"
    found = heard(of, "error", error={**error, "message": "Not after it has spoken.", "event_id": None})["error"]
    assert (found["event_id"], found["param"].partition(".")[0]) == ("mine", "session")
    assert (of.config.voice, of.config.instructions) == ("", "Be kind.")


@pytest.mark.parametrize("patch", [{"voice": None}, {"audio": {"output": {"voice": None}}}])
def test_a_voice_that_is_null_is_not_asked_for(patch: dict[str, Any]) -> None:
    (message,) = service().say({"type": "session.update", "session": patch})
    assert "voice" not in json.dumps(message)
    (message,) = service().say({"type": "response.create", "response": {**patch, "instructions": None}})
    assert "response" not in message


def test_words_of_the_caller_are_told_whole() -> None:
    of = service()
    kind = "conversation.item.input_audio_transcription"
    assert heard(of, f"{kind}.delta", item_id="item_1", delta="Good ")["text"] == "Good "
    assert heard(of, f"{kind}.delta", item_id="item_1", delta="morning.")["text"] == "Good morning."
    assert heard(of, f"{kind}.completed", item_id="item_1", transcript="Good morning.")["language"] == "en"


def test_a_response_is_told_with_our_names() -> None:
    of = service()
    made = {"id": "resp_1", "object": "realtime.response", "status": "in_progress", "output_modalities": ["audio"]}
    assert heard(of, "response.created", response=made)["response"]["modalities"] == ["text", "audio"]
    item = {"id": "item_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    assert heard(of, "conversation.item.added", item=item)["type"] == "conversation.item.created"
    assert heard(of, "response.output_audio.delta", **WHERE, delta="AAAA")["type"] == "response.audio.delta"
    assert heard(of, "response.output_text.delta", **WHERE, delta="Hm.")["type"] == "response.text.delta"
    usage = {"total_tokens": 9, "input_tokens": 4, "output_tokens": 5, "output_token_details": {"text_tokens": 2}}
    content = [{"type": "output_audio", "transcript": "Hello."}]
    response = {**made, "status": "completed", "usage": usage, "output": [{**item, "content": content}]}
    done = heard(of, "response.done", response=response)["response"]
    assert done["output"][0]["content"] == [{"type": "audio", "transcript": "Hello."}]
    assert done["usage"] == {**usage, "input_token_details": {}}


def test_what_was_heard_of_a_reply_is_estimated_where_the_service_does_not_say() -> None:
    of = service()
    heard(of, "response.output_audio_transcript.delta", **WHERE, delta="One two three four five six.")
    of.sounded("item_1", 48_000 * 4)
    found = heard(of, "conversation.item.truncated", item_id="item_1", content_index=0, audio_end_ms=2_000)
    assert (found["transcript"], found["unheard"]) == ("One two three", " four five six.")
    found = heard(of, "conversation.item.truncated", item_id="item_1", content_index=0, audio_end_ms=9_000)
    assert (found["transcript"], found["unheard"]) == ("One two three four five six.", "")


def test_a_function_has_its_name_when_its_arguments_are_done() -> None:
    of = service()
    item = {"id": "item_1", "type": "function_call", "call_id": "call_1", "name": "weather", "arguments": ""}
    heard(of, "response.output_item.added", response_id="resp_1", output_index=0, item=item)
    done = {**WHERE, "call_id": "call_1", "arguments": "{}"}
    assert heard(of, "response.function_call_arguments.done", **done)["name"] == "weather"


def test_a_session_that_is_over_there_is_not_over_here() -> None:
    error = {"type": "invalid_request_error", "code": "session_expired", "message": "Your session hit its limit."}
    assert heard(service(), "error", error=error)["type"] == "session.closing"


def is_finished(of: OpenAIService) -> bool:
    return [event["type"] for event in of.own] == ["session.finished"]


def test_a_session_finishes_when_every_response_is_done() -> None:
    of = service()
    sent(of, "response.create")
    second = sent(of, "response.create")
    assert of.say({"type": "session.finish"}) == []
    heard(of, "response.created", response={"id": "resp_1"})
    heard(of, "response.done", response={"id": "resp_1"})
    heard(of, "error", error={"code": "invalid_value", "message": "Of an item.", "param": "item.id"})
    assert not of.own
    refusal = {"code": "conversation_already_has_active_response", "message": "No.", "event_id": second["event_id"]}
    assert heard(of, "error", error=refusal)["error"]["event_id"] is None
    assert is_finished(of)


def test_what_is_being_said_when_the_session_finishes_is_committed_and_transcribed() -> None:
    of = service()
    of.say({"type": "input_audio_buffer.append", "audio": "AAAA"})
    heard(of, "input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=0)
    sent(of, "session.finish")
    heard(of, "input_audio_buffer.committed", item_id="item_1")
    assert not of.own
    heard(of, "conversation.item.input_audio_transcription.completed", item_id="item_1", transcript="Good night.")
    assert is_finished(of)


def test_nothing_is_committed_that_was_so_already() -> None:
    of = service()
    of.say({"type": "input_audio_buffer.append", "audio": "AAAA"})
    heard(of, "input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=0)
    sent(of, "input_audio_buffer.commit")
    assert of.say({"type": "session.finish"}) == []
    assert not of.own
    heard(of, "input_audio_buffer.committed", item_id="item_1")
    heard(of, "conversation.item.input_audio_transcription.completed", item_id="item_1", transcript="")
    assert is_finished(of)


@pytest.mark.parametrize("names_event", [True, False])
def test_a_commit_of_ours_that_is_refused_is_not_the_callers_fault(names_event: bool) -> None:
    of = service(listens_only=True)
    sent(of, "session.update", session={"turn_detection": None})
    of.say({"type": "input_audio_buffer.append", "audio": "AAAA"})
    commit = sent(of, "session.finish")
    assert commit["type"] == "input_audio_buffer.commit"
    error = {"code": "input_audio_buffer_commit_empty", "message": "Too short."}
    about = {"event_id": commit["event_id"]} if names_event else {}
    assert of.hear({"type": "error", "error": {**error, **about}}) == []
    assert is_finished(of)


def test_a_session_ends_without_what_takes_too_long() -> None:
    of = service()
    sent(of, "response.create")
    of.give_up()
    assert not of.own
    sent(of, "response.create")
    of.say({"type": "session.finish"})
    of.give_up()
    heard(of, "response.done", response={"id": "resp_1"})
    assert is_finished(of)


HUGE = 10**400
"""More than a `float` holds."""


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"session": 0, "item": 0, "response": 0, "part": 0, "error": 0, "delta": 0, "item_id": 0},
        {"session": {"audio": 0, "tools": 0}, "item": {"id": 0}, "response": {"id": "x", "output": [0]}, "error": {}},
        {"session": {"audio": {"input": 0}, "modalities": 0}, "item": {"id": "x", "type": "message", "content": 0}},
        {"item": {"id": "x", "type": "function_call", "role": "assistant"}, "error": {"code": ["x"], "message": {}}},
        {
            "item": {"id": "x", "type": "message", "role": "assistant", "content": [{"type": ["audio"]}, {}]},
            "part": {"type": {"audio": 1}},
            "response": {"id": "x", "output": [{"id": "y", "type": "mcp_call", "role": "assistant", "content": 0}]},
        },
        {"item_id": "item_1", "audio_end_ms": -HUGE, "response": {"id": "x", "usage": {"input_token_details": {}}}},
        {"item_id": "item_1", "audio_end_ms": HUGE, "item": {"id": "x", "type": "message", "status": ["in_progress"]}},
    ],
)
def test_nonsense_is_no_fault(fields: dict[str, Any]) -> None:
    """Nor where it is written for a caller in OpenAI's dialect."""
    of, shown = service(), OpenAIRealtimeDialect()
    of.sounded("item_1", 48_000)
    kinds = [*SERVER_EVENTS, "conversation.item.added", "response.output_audio.delta", "vendor.own"]
    for kind in kinds:
        for wire in of.hear({"type": kind, **fields}):
            if (event := server_event_of(wire)) is not None:
                json.dumps(shown.write(event), allow_nan=False)


def test_settings_that_the_service_does_not_have_are_not_confirmed() -> None:
    to = service()
    strange = {"temperature": 0.2, "top_p": 0.5, "seed": 7, "max_history_turns": 3, "echo_cancellation": "on"}
    (asked,) = to.say({"type": "session.update", "session": {**strange, "instructions": "Be kind."}})
    shown = heard(to, "session.updated", session=asked["session"])["session"]
    assert shown["instructions"] == "Be kind."
    assert not strange.keys() & shown.keys()


def test_a_session_that_only_transcribes_confirms_nothing_about_replies() -> None:
    to = service(listens_only=True)
    asked = sent(to, "session.update", session=SETTINGS)
    shown = heard(to, "session.updated", session=asked["session"])["session"]
    assert shown["input_audio_transcription"]["language"] == "de"
    assert not {"instructions", "tools", "voice", "temperature"} & set(shown)


def test_a_call_begins_with_settings_that_fit() -> None:
    session = call_there({"voice": "marin", "turn_detection": None, "temperature": 0.3}, "whisper-1")
    assert session == {
        "type": "realtime",
        "audio": {"input": {"turn_detection": None}, "output": {"voice": "marin"}},
    }
    asked = {"input_audio_transcription": {"language": "de"}}
    transcription = call_there(asked, "whisper-1")["audio"]["input"]["transcription"]
    assert transcription == {"model": "whisper-1", "language": "de"}
    assert call_there({}, "whisper-1") == {"type": "realtime"}
