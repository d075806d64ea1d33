"""One answer: the order of its events, its audio on time, and exactly one end."""

from __future__ import annotations

import base64
import io
import wave
from typing import Any

import pytest

from tests.protocol.conversations import Conversation, Wire
from voiceapp.protocol.audio import split_wav_header
from voiceapp.protocol.configuration import TurnDetection
from voiceapp.protocol.items import FunctionCall, FunctionOutput, Message
from voiceapp.protocol.speaking.playout import LEAD_MS, QUEUE_LIMIT_MS
from voiceapp.protocol.work import Abandon, ReplyAside, ReplyServedBy, ReplyUsed, Respond

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
END_OF_SPEECH = [
    "response.audio_transcript.done",
    "response.audio.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.done",
]


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


def done(talk: Conversation) -> Wire:
    response: Wire = talk.assert_event("response.done")["response"]
    return response


def test_a_written_answer_says_what_it_is(talk: Conversation) -> None:
    talk.update(modalities=["text"])
    talk.answer(talk.ask_in_writing(), "It is noon.", ms=0)
    talk.assert_event("response.content_part.added", part={"type": "text", "text": ""})
    talk.assert_event("response.text.done", text="It is noon.")
    talk.assert_event("response.content_part.done", part={"type": "text", "text": "It is noon."})
    response = done(talk)
    assert response["modalities"] == ["text"]
    assert response["output"][0]["content"] == [{"type": "text", "text": "It is noon."}]


def test_a_spoken_answer_says_what_it_is(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.answer(response_id, "It is noon.", ms=200)
    created = talk.assert_event("response.created")["response"]
    assert created == {
        "id": response_id,
        "object": "realtime.response",
        "conversation_id": created["conversation_id"],
        "status": "in_progress",
        "status_details": None,
        "modalities": ["text", "audio"],
        "voice": "Tina",
        "output_audio_format": "pcm",
        "output": [],
        "usage": None,
    }
    item = talk.assert_event("response.output_item.added", response_id=response_id, output_index=0)["item"]
    assert (item["type"], item["role"], item["status"], item["content"]) == ("message", "assistant", "in_progress", [])
    of_part = {"response_id": response_id, "item_id": item["id"], "output_index": 0, "content_index": 0}
    talk.assert_event("conversation.item.created", item=item)
    talk.assert_event("response.content_part.added", **of_part, part={"type": "audio", "transcript": ""})
    talk.assert_event("response.audio_transcript.delta", **of_part, delta="It is noon.")
    talk.assert_event("response.audio.delta", **of_part)
    talk.assert_event("response.audio_transcript.done", **of_part, transcript="It is noon.")
    talk.assert_event("response.audio.done", **of_part)
    talk.assert_event("response.content_part.done", **of_part, part={"type": "audio", "transcript": "It is noon."})
    finished = {**item, "status": "completed", "content": [{"type": "audio", "transcript": "It is noon."}]}
    talk.assert_event("response.output_item.done", response_id=response_id, output_index=0, item=finished)
    response = done(talk)
    assert response["status"] == "completed"
    assert response["status_details"] is None
    assert response["output"] == [finished]
    assert response["conversation_id"] == created["conversation_id"]


def test_an_answer_without_words_is_complete_too(talk: Conversation) -> None:
    talk.end(talk.ask())
    talk.assert_event("response.created")
    talk.assert_event("response.done")
    assert talk.of("response.done")[0]["response"]["output"] == []


def test_audio_goes_out_ahead_of_time_by_a_little_and_the_end_after_it(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.answer(response_id, ms=2000)
    assert talk.audio_ms(response_id) == pytest.approx(300, abs=1)
    talk.wait(1000)
    assert talk.audio_ms(response_id) == pytest.approx(1300, abs=101)
    talk.assert_no_event("response.done")
    talk.wait(800)
    assert talk.audio_ms(response_id) == 2000
    assert done(talk)["status"] == "completed"
    assert not talk.session.next_timer()


def test_synthesis_waits_when_it_is_far_ahead(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.write(response_id, "A long story.")
    assert talk.session.has_room_for_audio
    talk.speak(response_id, LEAD_MS + QUEUE_LIMIT_MS + 1000)
    assert not talk.session.has_room_for_audio
    talk.wait(2000)
    assert talk.session.has_room_for_audio


def test_a_wav_answer_opens_as_a_wav_file(talk: Conversation) -> None:
    talk.update(output_audio_format="wav")
    response_id = talk.ask()
    talk.answer(response_id, ms=200)
    audio = b"".join(base64.b64decode(event["delta"]) for event in talk.of("response.audio.delta"))
    with wave.open(io.BytesIO(audio)) as sound:
        assert sound.getframerate() == 24_000
    rate, samples = split_wav_header(audio)
    assert (rate, len(samples)) == (24_000, 9600)


def test_usage_counts_words_as_the_model_did_and_audio_by_its_length(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.write(response_id, "It is noon.")
    talk.speak(response_id, 220, 11)
    talk.session.done(ReplyUsed(response_id, 50, 4), talk.now)
    talk.end(response_id)
    # 640 ms of speech and the 800 ms of silence that ended it, at 25 tokens a second.
    assert done(talk)["usage"] == {
        "total_tokens": 50 + 36 + 4 + 6,
        "input_tokens": 86,
        "output_tokens": 10,
        "input_tokens_details": {"text_tokens": 50, "audio_tokens": 36, "image_tokens": 0},
        "output_tokens_details": {"text_tokens": 4, "audio_tokens": 6},
        "input_token_details": {"text_tokens": 50, "audio_tokens": 36, "image_tokens": 0},
        "output_token_details": {"text_tokens": 4, "audio_tokens": 6},
    }


def test_metrics_count_from_the_last_sound_of_the_caller(talk: Conversation) -> None:
    talk.say(640)
    talk.hush(384)
    talk.judge(0.9)
    talk.wait(50)
    talk.recognize("What time is it?")
    talk.wait(20)
    response_id = talk.take(Respond).response_id
    talk.write(response_id, "It is noon.")
    talk.wait(30)
    talk.speak(response_id, 200, 11)
    talk.end(response_id)
    assert done(talk)["metrics"] == {
        "end_of_turn_ms": 384,
        "recognition_ms": 434,
        "first_token_ms": 454,
        "first_audio_ms": 484,
    }


def test_metrics_of_a_typed_question_count_from_the_request(talk: Conversation) -> None:
    response_id = talk.ask_in_writing()
    talk.wait(70)
    talk.answer(response_id, ms=100)
    assert done(talk)["metrics"] == {
        "end_of_turn_ms": None,
        "recognition_ms": None,
        "first_token_ms": 70,
        "first_audio_ms": 70,
    }


def test_a_response_says_which_of_several_models_replied(talk: Conversation) -> None:
    response_id = talk.ask_in_writing()
    talk.session.done(ReplyServedBy(response_id, "acme/large"), talk.now)
    talk.answer(response_id, ms=100)
    assert done(talk)["metrics"]["served_by"] == "acme/large"
    assert [record.served_by for record in talk.records] == ["acme/large"]


def test_the_record_of_a_turn_says_whether_it_was_spoken(talk: Conversation) -> None:
    talk.answer(talk.ask(), ms=100)
    talk.answer(talk.ask_in_writing(), ms=100)
    talk.tell("response.create")
    talk.answer(talk.take(Respond).response_id, ms=100)
    assert [record.is_spoken for record in talk.records] == [True, False, False]


def test_a_prompt_after_silence_is_not_a_spoken_turn() -> None:
    talk = Conversation(turn_detection=TurnDetection(idle_timeout_ms=5000))
    talk.answer(talk.ask(), ms=100)
    talk.wait(6000)
    talk.answer(talk.take(Respond).response_id, ms=100)
    assert [(record.is_spoken, record.end_of_turn_ms) for record in talk.records[1:]] == [(False, None)]


def test_a_silent_question_long_ago_does_not_count_for_a_typed_one(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(960)
    talk.recognize("")
    talk.wait(60_000)
    response_id = talk.ask_in_writing()
    talk.answer(response_id, ms=100)
    assert done(talk)["metrics"]["first_token_ms"] == 0
    assert talk.records[0].user_text == "What time is it?"


@pytest.mark.parametrize(
    ("finish_reason", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_an_answer_that_was_cut_short_is_incomplete(talk: Conversation, finish_reason: str, reason: str) -> None:
    response_id = talk.ask()
    talk.write(response_id, "It is")
    talk.end(response_id, finish_reason)
    response = done(talk)
    assert response["status"] == "incomplete"
    assert response["status_details"] == {"type": "incomplete", "reason": reason}
    assert response["output"][0]["status"] == "incomplete"


def test_a_failed_answer_ends_when_what_there_is_of_it_was_sent(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.write(response_id, "It is")
    talk.speak(response_id, 2000)
    talk.fail(response_id)
    talk.assert_no_event("response.done")
    talk.wait(2000)
    assert talk.audio_ms(response_id) == 2000
    assert not talk.cuts
    response = talk.events[-1]["response"]
    assert [event["type"] for event in talk.events[-5:]] == END_OF_SPEECH
    assert response["status"] == "failed"
    assert response["status_details"]["error"] == {
        "type": "server_error",
        "code": "ModelUnavailable",
        "message": "The engine is away.",
    }
    talk.ask()


def test_a_failed_answer_without_sound_ends_at_once(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.write(response_id, "It is")
    talk.skip()
    talk.fail(response_id)
    talk.assert_types(*END_OF_SPEECH)


def test_nothing_of_an_answer_follows_its_end(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.answer(response_id, ms=100)
    talk.assert_event("response.done")
    talk.write(response_id, "More.")
    talk.speak(response_id, 500, 5)
    talk.call(response_id, 0, "call_1", "weather", "{}")
    talk.session.done(ReplyUsed(response_id, 1, 1), talk.now)
    talk.end(response_id)
    talk.fail(response_id)
    talk.wait(5000)
    talk.assert_no_event()


def test_nothing_can_be_added_while_the_last_audio_goes_out(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.answer(response_id, "It is noon. ", ms=2000)
    talk.skip()
    talk.write(response_id, "More.")
    talk.end(response_id)
    talk.fail(response_id)
    talk.assert_no_event()
    talk.wait(3000)
    talk.assert_event("response.audio_transcript.done", transcript="It is noon. ")
    assert done(talk)["status"] == "completed"


def test_results_for_another_answer_are_ignored(talk: Conversation) -> None:
    talk.ask()
    talk.skip()
    talk.write("resp_other", "Hello")
    talk.end("resp_other")
    talk.assert_no_event()


# ── Function tools ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_function_call_has_its_events_in_order(talk: Conversation) -> None:
    talk.update(tools=[TOOL])
    response_id = talk.ask()
    talk.assert_event("response.created")
    talk.call(response_id, 0, "call_1", "weather", '{"city":')
    talk.call(response_id, 0, "", "", ' "Oslo"}')
    talk.end(response_id, "tool_calls")
    added = talk.assert_event("response.output_item.added", output_index=0)["item"]
    assert (added["type"], added["name"], added["call_id"], added["status"]) == (
        "function_call", "weather", "call_1", "in_progress",
    )  # fmt: skip
    talk.assert_event("conversation.item.created", item=added)
    of_call: dict[str, Any] = {
        "response_id": response_id,
        "item_id": added["id"],
        "output_index": 0,
        "call_id": "call_1",
    }
    talk.assert_event("response.function_call_arguments.delta", **of_call, delta='{"city":')
    talk.assert_event("response.function_call_arguments.delta", **of_call, delta=' "Oslo"}')
    arguments = '{"city": "Oslo"}'
    talk.assert_event("response.function_call_arguments.done", **of_call, name="weather", arguments=arguments)
    finished = talk.assert_event("response.output_item.done", output_index=0)["item"]
    assert finished == {**added, "status": "completed", "arguments": arguments}
    assert done(talk)["output"] == [finished]


def test_the_answer_of_a_function_reaches_the_model_behind_its_call(talk: Conversation) -> None:
    talk.update(tools=[TOOL])
    response_id = talk.ask()
    talk.call(response_id, 0, "call_1", "weather", "{}")
    talk.end(response_id, "tool_calls")
    talk.tell("conversation.item.create", item={"type": "function_call_output", "call_id": "call_1", "output": "Rain"})
    talk.tell("response.create")
    work = talk.take(Respond)
    assert work.config.tools == (TOOL,)
    _, call, output = work.history
    assert isinstance(call, FunctionCall)
    assert isinstance(output, FunctionOutput)
    assert (call.call_id, output.call_id, output.output) == ("call_1", "call_1", "Rain")


def test_calls_are_closed_after_the_speech_before_them_was_sent(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.write(response_id, "Let me look. ")
    talk.speak(response_id, 1500, 13)
    talk.call(response_id, 0, "call_1", "weather", "{}")
    talk.call(response_id, 1, "", "time", "{}")
    talk.end(response_id, "tool_calls")
    talk.assert_no_event("response.function_call_arguments.done")
    talk.wait(1500)
    talk.assert_event("response.audio.done", output_index=0)
    talk.assert_event("response.output_item.done", output_index=0)
    talk.assert_event("response.function_call_arguments.done", output_index=1, name="weather")
    talk.assert_event("response.output_item.done", output_index=1)
    talk.assert_event("response.function_call_arguments.done", output_index=2, name="time")
    talk.assert_event("response.output_item.done", output_index=2)
    talk.assert_types("response.done")
    calls = [item for item in talk.of("response.done")[0]["response"]["output"] if item["type"] == "function_call"]
    assert calls[0]["call_id"] == "call_1"
    assert calls[1]["call_id"]


def test_a_name_that_the_model_repeats_counts_once(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.call(response_id, 0, "call_1", "", "")
    talk.call(response_id, 0, "call_1", "weather", "{")
    talk.call(response_id, 0, "call_1", "weather", "}")
    talk.end(response_id)
    talk.assert_event("response.function_call_arguments.done", name="weather", arguments="{}")


def test_a_call_that_was_interrupted_is_incomplete_and_hidden_from_the_model(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.call(response_id, 0, "call_1", "weather", '{"ci')
    talk.tell("response.cancel")
    talk.assert_event("response.function_call_arguments.done", arguments='{"ci')
    assert talk.assert_event("response.output_item.done")["item"]["status"] == "incomplete"
    assert done(talk)["status"] == "cancelled"
    talk.tell("response.create")
    assert [type(item) for item in talk.take(Respond).history] == [Message]


# ── Cancelling ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_client_can_cancel(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.answer(response_id, "It is noon. The sun shines. ", ms=4000)
    talk.wait(1000)
    talk.skip()
    talk.work.clear()
    talk.tell("response.cancel", response_id=response_id)
    talk.assert_types(*END_OF_SPEECH, "conversation.item.truncated")
    response = talk.of("response.done")[0]["response"]
    assert response["status"] == "cancelled"
    assert response["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    assert talk.take(Abandon).response_id == response_id
    talk.wait(5000)
    talk.assert_no_event()


def test_an_answer_that_waits_can_be_cancelled(talk: Conversation) -> None:
    talk.update(turn_detection=None)
    talk.say(640)
    talk.tell("input_audio_buffer.commit")
    talk.tell("response.create")
    talk.tell("response.cancel")
    assert done(talk)["status"] == "cancelled"
    talk.recognize("Hello")
    assert not talk.asks(Respond)


def test_there_must_be_an_answer_to_cancel(talk: Conversation) -> None:
    talk.tell("response.cancel")
    talk.assert_error("response_cancel_not_active")
    response_id = talk.ask()
    talk.tell("response.cancel", response_id="resp_other")
    talk.assert_error("response_cancel_not_active")
    talk.answer(response_id, ms=100)
    talk.tell("response.cancel")
    talk.assert_error("response_cancel_not_active")


def test_answers_one_upon_the_other_get_no_more_ahead_than_one(talk: Conversation) -> None:
    begun, sent_ms = talk.now, 0.0
    for count in range(1, 11):
        response_id = talk.ask_in_writing()
        talk.answer(response_id, ms=1000)
        while len(talk.of("response.done")) < count:
            talk.wait(10)
        sent_ms += talk.audio_ms(response_id)
        assert sent_ms - (talk.now - begun) * 1000 <= LEAD_MS + 1


def test_what_was_heard_counts_from_the_end_of_the_answer_before(talk: Conversation) -> None:
    talk.answer(talk.ask_in_writing(), ms=1000)
    talk.wait(1000 - LEAD_MS)
    done(talk)
    response_id = talk.ask_in_writing()
    talk.answer(response_id, ms=2000)
    talk.wait(LEAD_MS + 500)
    talk.tell("response.cancel")
    assert talk.assert_event("conversation.item.truncated")["audio_end_ms"] == pytest.approx(500, abs=5)


def test_an_answer_need_not_wait_for_one_that_was_stopped(talk: Conversation) -> None:
    talk.answer(talk.ask_in_writing(), ms=2000)
    talk.wait(100)
    talk.tell("response.cancel")
    response_id = talk.ask_in_writing()
    talk.answer(response_id, ms=2000)
    assert talk.audio_ms(response_id) == pytest.approx(LEAD_MS, abs=1)


def test_an_aside_takes_nothing_from_what_was_heard_before_it(talk: Conversation) -> None:
    response_id = talk.ask_in_writing()
    talk.write(response_id, "It is noon. The sun shines.")
    talk.speak(response_id, 1000, 12)
    assert talk.session.response is not None
    size = talk.session.response.config.output_format.size(1000)
    talk.session.done(ReplyAside(response_id, bytes(size), "Let me see."), talk.now)
    talk.wait(1500)
    talk.tell("response.cancel")
    assert talk.assert_event("conversation.item.truncated")["transcript"].strip() == "It is noon."
