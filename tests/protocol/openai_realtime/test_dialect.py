"""OpenAI's current dialect: every event that a client of it gets fits the types of OpenAI's own library."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from openai.types.beta import realtime as beta
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from tests.protocol.conversations import Conversation
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.client_side import server_event_of
from voiceapp.protocol.openai_realtime.dialect import OpenAIRealtimeDialect, usage_to
from voiceapp.protocol.openai_realtime.older import OlderDialect
from voiceapp.protocol.openai_realtime.settings import TRANSCRIPTION
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import PlayoutCut, Respond


def names_of(events: Any) -> dict[str, Any]:
    return {kind.model_fields["type"].annotation.__args__[0]: kind for kind in events.__origin__.__args__}


NAMES = names_of(RealtimeServerEvent)
ASKED_FOR = {f"response.output_audio.{name}" for name in ("ducked", "restored", "words")}
"""Events of our own that a session gets whose client chose `interruptions` "duck"."""
TOOL = {"type": "function", "name": "weather", "description": "Of a city.", "parameters": {"type": "object"}}


class Call(Conversation):
    """A conversation in OpenAI's dialect. What the client gets is checked against the library's types."""

    dialect_class: type[OpenAIRealtimeDialect] = OpenAIRealtimeDialect
    names = NAMES

    def __init__(self, kind: str = "realtime", *, has_track: bool = False, **settings: Any) -> None:
        self.dialect = self.dialect_class(kind=kind, has_track=has_track)
        super().__init__(listens_only=kind == TRANSCRIPTION, input_format=AudioFormat("pcm16", 24_000), **settings)

    def tell_text(self, text: str) -> None:
        try:
            event = self.dialect.read(text)
            if event is not None:
                self.session.receive(event, self.now)
        except ev.EventError as refused:
            self.session.refuse(refused, refused.event_id)
        self.collect()

    def collect(self) -> None:
        for event in self.session.events_to_send():
            if not isinstance(event, PlayoutCut):
                for wire in self.dialect.write(event):
                    message = json.loads(json.dumps(wire, allow_nan=False))
                    assert message["event_id"]
                    if message["type"] not in ASKED_FOR:
                        self.check(message)
                    self.events.append(message)
        self.work.extend(self.session.work_to_start())
        self.records.extend(self.session.records())

    @classmethod
    def check(cls, message: dict[str, Any]) -> None:
        """Check an event against the library's types."""
        TypeAdapter(cls.names[message["type"]]).validate_python(message, strict=True)


class OlderCall(Call):
    dialect_class = OlderDialect
    names = names_of(beta.RealtimeServerEvent)

    @classmethod
    def check(cls, message: dict[str, Any]) -> None:
        """Check an event; that library lists the models of its day, and knows no choice of a function."""
        if session := message.get("session"):
            message = {**message, "session": {**session, "model": "gpt-realtime", "tool_choice": "auto"}}
        super().check(message)


@pytest.fixture
def call() -> Call:
    return Call()


def test_the_session_is_shown_as_openais_clients_read_it(call: Call) -> None:
    session = call.assert_event("session.created")["session"]

    assert session["type"] == "realtime"
    assert session["object"] == "realtime.session"
    assert session["output_modalities"] == ["audio"]
    assert session["audio"]["input"]["turn_detection"]["type"] == "server_vad"
    assert session["audio"]["output"]["voice"] == "Tina"
    assert not {"modalities", "input_audio_format", "turn_detection", "temperature"} & session.keys()


def test_settings_are_read_and_shown_again(call: Call) -> None:
    audio = {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24000},
            "transcription": {"model": "gpt-4o-transcribe", "language": "en"},
            "noise_reduction": {"type": "near_field"},
            "turn_detection": {"type": "semantic_vad", "eagerness": "high", "create_response": False},
        },
        "output": {"format": {"type": "audio/pcm"}, "voice": {"id": "marin"}, "speed": 1.1},
    }
    call.update(
        type="realtime",
        audio=audio,
        tools=[TOOL],
        tool_choice={"type": "function", "name": "weather"},
        max_output_tokens=200,
        instructions="Be brief.",
        tracing="auto",
    )
    session = call.assert_event("session.updated")["session"]

    assert session["audio"]["input"]["format"] == session["audio"]["output"]["format"]
    assert session["audio"]["input"]["format"] == {"type": "audio/pcm", "rate": 24000}
    assert session["audio"]["input"]["transcription"] == {"model": "gpt-4o-transcribe", "language": "en"}
    assert session["audio"]["input"]["turn_detection"]["create_response"] is False
    assert session["audio"]["output"]["voice"] == "marin"
    assert session["tools"] == [TOOL]
    assert session["tool_choice"] == {"type": "function", "name": "weather"}
    assert session["max_output_tokens"] == 200
    assert call.session.config.tools[0]["function"]["name"] == "weather"


@pytest.mark.parametrize(("theirs", "ours"), [("audio/pcmu", "g711_ulaw"), ("audio/pcma", "g711_alaw")])
def test_telephone_audio_goes_both_ways(call: Call, theirs: str, ours: str) -> None:
    sides = {"input": {"format": {"type": theirs}, "turn_detection": None}, "output": {"format": {"type": theirs}}}
    call.update(type="realtime", audio=sides)
    session = call.assert_event("session.updated")["session"]
    audio = base64.b64encode(bytes(8000)).decode()
    call.dialect.read(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
    call.say(1000)
    call.tell("input_audio_buffer.commit")
    call.recognize("What time is it?")
    call.tell("response.create")
    created = call.assert_event("response.created")["response"]
    call.answer(created["id"], "It is noon.", ms=1000)
    call.wait(1500)

    config = call.session.config
    assert config.input_format == config.output_format == AudioFormat(ours, 8_000)
    assert session["audio"]["input"]["format"] == session["audio"]["output"]["format"] == {"type": theirs}
    assert created["audio"]["output"]["format"] == {"type": theirs}
    assert sum(len(base64.b64decode(event["delta"])) for event in call.of("response.output_audio.delta")) == 8000
    (words,) = call.of("conversation.item.input_audio_transcription.completed")
    assert words["usage"]["seconds"] == 1


def test_the_older_dialect_shows_tools_flat_and_counts_what_was_heard() -> None:
    call = OlderCall()
    chosen = {"type": "function", "name": "weather"}
    call.update(tools=[TOOL], tool_choice=chosen, max_response_output_tokens=200)
    session = call.assert_event("session.updated")["session"]
    assert (session["tools"], session["tool_choice"]) == ([TOOL], chosen)
    assert (session["input_audio_format"], session["max_response_output_tokens"]) == ("pcm16", 200)
    assert call.session.config.tool_choice == {"type": "function", "function": {"name": "weather"}}

    response_id = call.ask("What time is it?")
    call.answer(response_id, "It is noon.", ms=200)
    call.wait(500)
    (words,) = call.of("conversation.item.input_audio_transcription.completed")
    assert words["usage"] == {"type": "duration", "seconds": pytest.approx(1, abs=0.9)}
    assert call.of("response.audio.delta")
    assert call.assert_event("response.done")["response"]["status"] == "completed"


GREETING = {
    "id": "sess_1",
    "object": "realtime.session",
    "model": "qwen3-omni-flash-realtime",
    "modalities": ["text", "audio"],
    "voice": "Cherry",
    "input_audio_format": "pcm24",
    "output_audio_format": "pcm24",
    "input_audio_transcription": {"model": "qwen3-asr-flash-realtime"},
    "turn_detection": {"type": "semantic_vad", "threshold": 0.5, "silence_duration_ms": 800},
    "tools": [{"type": "function", "function": {"name": "weather"}}],
    "temperature": 2.0,
}
RESPONSE = {"id": "resp_1", "status": "in_progress", "modalities": ["text", "audio"], "voice": "Cherry", "output": []}
USAGE = {"total_tokens": 3, "input_tokens": 1, "output_tokens": 2, "input_tokens_details": {"text_tokens": 1}}


@pytest.mark.parametrize("kind", [Call, OlderCall])
@pytest.mark.parametrize(
    "wire",
    [
        {"type": "session.created", "session": GREETING},
        {"type": "session.updated", "session": {**GREETING, "turn_detection": None, "audio": "none"}},
        {"type": "conversation.item.created", "item": {"id": "item_1", "type": "message", "role": "assistant"}},
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.done", "response": {**RESPONSE, "status": "completed", "usage": USAGE}},
    ],
    ids=lambda wire: wire["type"],
)
def test_what_a_service_leaves_out_fails_no_caller(kind: type[Call], wire: dict[str, Any]) -> None:
    event = server_event_of({"event_id": "event_1", **wire})
    assert event is not None
    for told in kind.dialect_class().write(event):
        kind.check(told)


def test_a_spoken_turn_has_its_events_in_order(call: Call) -> None:
    call.skip()
    response_id = call.ask("What time is it?")
    call.answer(response_id, "It is noon. ", ms=200)
    call.wait(500)

    call.assert_types(
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio_transcript.done",
        "response.output_audio.done",
        "response.content_part.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    )
    (words,) = call.of("conversation.item.input_audio_transcription.completed")
    assert words["usage"]["type"] == "duration"
    assert words["usage"]["seconds"] > 0.6
    question_id = words["item_id"]
    for kind in ("conversation.item.added", "conversation.item.done"):
        assert [event["previous_item_id"] for event in call.of(kind)] == [None, question_id]
    assert call.of("input_audio_buffer.committed")[0]["previous_item_id"] is None
    (done,) = call.of("response.done")
    assert done["response"]["output"][0]["content"] == [{"type": "output_audio", "transcript": "It is noon. "}]
    assert done["response"]["output_modalities"] == ["audio"]


def test_words_come_as_what_is_new_of_them(call: Call) -> None:
    for text in ("What", "What time", "Another"):
        event = ev.TranscriptionDelta(event_id="event_1", item_id="item_1", text=text, stash="is")
        call.events.extend(call.dialect.write(event))
    whole = ev.TranscriptionCompleted(event_id="event_2", item_id="item_1", transcript="What time is it?")
    call.events.extend(call.dialect.write(whole))

    deltas = call.of("conversation.item.input_audio_transcription.delta")
    assert [delta["delta"] for delta in deltas] == ["What", " time", " is it?"]


def test_a_written_response_brings_text_and_its_metadata_and_no_audio(call: Call) -> None:
    content = [{"type": "input_text", "text": "What time is it?"}]
    call.tell("conversation.item.create", item={"type": "message", "role": "user", "content": content})
    call.tell("response.create", response={"output_modalities": ["text"], "metadata": {"topic": "time"}})
    created = call.assert_event("response.created")["response"]
    call.answer(created["id"], "Noon.", ms=0)

    assert created["metadata"] == {"topic": "time"}
    assert call.assert_event("response.output_text.done")["text"] == "Noon."
    done = call.assert_event("response.done")["response"]
    assert done["metadata"] == {"topic": "time"}
    assert done["output"][0]["content"] == [{"type": "output_text", "text": "Noon."}]
    assert call.of("response.output_audio.delta") == []


def test_function_calls_keep_their_shape(call: Call) -> None:
    call.update(type="realtime", tools=[TOOL])
    response_id = call.ask_in_writing()
    call.call(response_id, 0, "call_1", "weather", '{"city": "Oslo"}')
    call.end(response_id, "tool_calls")

    assert call.assert_event("response.function_call_arguments.done")["arguments"] == '{"city": "Oslo"}'
    assert call.assert_event("conversation.item.done")["item"]["type"] == "function_call"


def test_a_transcription_session_gives_no_responses() -> None:
    call = Call(TRANSCRIPTION)
    session = call.assert_event("session.created")["session"]
    assert session["type"] == "transcription"
    assert session["audio"].keys() == {"input"}
    call.update(type="transcription", audio={"input": {"turn_detection": {"type": "server_vad"}}})

    call.say(640)
    call.hush(960)
    call.recognize("What time is it?")
    call.tell("response.create")

    call.assert_error("invalid_event", message="This session only transcribes: it gives no responses.")
    assert call.of("response.created") == []
    assert [(record.user_text, record.is_spoken) for record in call.records] == [("What time is it?", True)]
    assert call.records[0].input_audio_ms > 600


def test_a_session_does_not_change_its_kind(call: Call) -> None:
    call.update(type="transcription")
    call.assert_error("invalid_value", param="session.type")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "rate of G.711": (
        {"audio": {"output": {"format": {"type": "audio/pcmu", "rate": 16_000}}}},
        "session.audio.output.format.sample_rate",
    ),
    "no name": ({"audio": {"output": {"format": {"type": ["audio/pcm"]}}}}, "session.audio.output.format.type"),
    "format": ({"audio": {"input": {"format": {"type": "audio/opus"}}}}, "session.audio.input.format.type"),
    "rate": (
        {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 11025}}}},
        "session.audio.input.format.sample_rate",
    ),
    "modalities": ({"output_modalities": ["video"]}, "session.output_modalities"),
    "audio": ({"audio": "loud"}, "session.audio"),
    "threshold": (
        {"audio": {"input": {"turn_detection": {"threshold": 7}}}},
        "session.audio.input.turn_detection.threshold",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_exist_is_refused_with_the_name_of_the_field(call: Call, name: str) -> None:
    settings, param = REFUSED[name]
    call.update(type="realtime", **settings)
    call.assert_error("invalid_value" if name != "audio" else "invalid_type", param=param)


ABOUT_ITEMS = [
    ("conversation.item.retrieve", {"item_id": "item_x"}, "item_retrieve_invalid_item_id"),
    ("conversation.item.delete", {"item_id": "item_x"}, "item_delete_invalid_item_id"),
    (
        "conversation.item.truncate",
        {"item_id": "item_x", "content_index": 0, "audio_end_ms": 5},
        "item_truncate_invalid_item_id",
    ),
]


@pytest.mark.parametrize(("kind", "fields", "code"), ABOUT_ITEMS)
def test_an_unknown_item_is_refused_with_the_code_that_clients_look_for(
    call: Call, kind: str, fields: dict[str, Any], code: str
) -> None:
    call.tell(kind, **fields)
    call.assert_error(code)


def test_an_item_that_is_there_already_is_refused_with_its_code(call: Call) -> None:
    item = {"id": "item_a", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}
    call.tell("conversation.item.create", item=item)
    call.tell("conversation.item.create", item=item)
    call.assert_error("item_create_duplicate_item_id")


def test_clients_do_not_mind_that_there_is_nothing_to_cancel(call: Call) -> None:
    call.tell("response.cancel")
    call.assert_error("response_cancel_not_active", message="Cancellation failed: no active response found")


def test_an_out_of_band_response_has_no_items_in_the_conversation(call: Call) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Is this spam?"}]}
    request = {"conversation": "none", "input": [item], "output_modalities": ["text"], "metadata": {"topic": "spam"}}
    call.tell("response.create", response=request)
    call.skip()
    call.answer(call.take(Respond).response_id, "No.", ms=0)

    call.assert_types(
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    )
    response = call.of("response.done")[-1]["response"]
    assert (response["conversation_id"], response["metadata"]) == (None, {"topic": "spam"})
    call.answer(call.ask(), "It is noon.")
    call.wait(3000)
    call.assert_event("conversation.item.done", previous_item_id=None)
    assert call.assert_event("conversation.item.done")["item"]["role"] == "assistant"


def test_a_response_belongs_to_the_conversation_or_to_none(call: Call) -> None:
    call.tell("response.create", response={"conversation": "other"})
    call.assert_error("invalid_value", param="response.conversation")


def test_on_a_track_the_client_is_told_when_it_sounds() -> None:
    call = Call(has_track=True)
    response_id = call.ask()
    call.answer(response_id, ms=4000)
    call.wait(1000)
    call.tell("output_audio_buffer.clear")

    call.assert_event("output_audio_buffer.started", response_id=response_id)
    call.assert_event("response.done")
    call.assert_event("output_audio_buffer.cleared", response_id=response_id)
    assert call.of("response.output_audio.delta") == []
    call.tell("output_audio_buffer.clear")
    assert call.of("error") == []


def test_echo_and_interruptions_are_chosen_as_in_our_dialect(call: Call) -> None:
    assert call.assert_event("session.created")["session"]["echo_cancellation"] == "auto"
    call.update(type="realtime", echo_cancellation="off", interruptions="duck")
    session = call.assert_event("session.updated")["session"]
    assert (session["echo_cancellation"], session["interruptions"]) == ("off", "duck")
    call.update(type="realtime", interruptions="never")
    call.assert_error("invalid_value", param="session.interruptions")


def test_who_asks_for_ducking_is_told_of_it(call: Call) -> None:
    call.update(type="realtime", interruptions="duck")
    response_id = call.ask()
    call.answer(response_id, ms=4000)
    call.wait(1000)
    call.say(448)
    call.assert_event("response.output_audio.ducked", response_id=response_id)
    call.hush(192)
    call.recognize("Okay.")
    call.assert_event("response.output_audio.restored", response_id=response_id)


def test_events_that_the_dialect_does_not_have_stay_here(call: Call) -> None:
    for event in (ev.SessionFinished(), ev.SessionClosing(code=4012, reason="The server is stopping.")):
        assert call.dialect.write(event) == []
    (expired,) = call.dialect.write(ev.SessionClosing(event_id="e", code=4000, reason="Time is up."))
    assert expired["error"]["code"] == "session_expired"


def test_every_event_of_ours_has_a_place_in_the_dialect(call: Call) -> None:
    """A new event has to be written so that the library knows it, or to be left out."""
    told = {name for name in ev.SERVER_EVENTS if name not in HELD_BACK}
    named = {CHANGED.get(name, name) for name in told} - ASKED_FOR
    assert named <= NAMES.keys(), named - NAMES.keys()


HELD_BACK = {
    *("session.finished", "session.closing", "session.resumable", "session.resumed"),
    *("session.reminders.updated", "response.source.added"),
}
CHANGED = {
    "conversation.item.created": "conversation.item.added",
    **{
        name: name.replace("response.", "response.output_", 1)
        for name in ev.SERVER_EVENTS
        if ".audio" in name or ".text" in name
        if name.startswith("response.")
    },
}


def test_what_was_read_from_a_cache_elsewhere_is_told() -> None:
    details = {"text_tokens": 9, "cached_tokens": 5}
    usage = {"total_tokens": 12, "input_tokens": 9, "output_tokens": 3, "output_token_details": {}}
    shown = usage_to({**usage, "input_token_details": details})
    assert shown is not None
    assert shown["input_token_details"]["cached_tokens"] == 5
    own = usage_to({**usage, "input_token_details": {"text_tokens": 9}})
    assert own is not None
    assert own["input_token_details"]["cached_tokens"] == 0
