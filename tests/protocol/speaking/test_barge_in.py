"""The caller speaks while the assistant does."""

from __future__ import annotations

import pytest

from tests.protocol.conversations import Conversation, words_in
from voiceapp.protocol.configuration import TurnDetection
from voiceapp.protocol.work import Abandon, Respond

TEXT = "It is noon. The sun shines. "


@pytest.fixture
def talk() -> Conversation:
    """The assistant has been speaking for one of its four seconds."""
    talk = Conversation()
    talk.answer(talk.ask(), TEXT, ms=4000)
    talk.wait(1000)
    talk.skip()
    talk.work.clear()
    return talk


def test_speech_cancels_the_answer(talk: Conversation) -> None:
    assert talk.session.response is not None
    response_id = talk.session.response.id
    talk.say(96)
    talk.assert_event("input_audio_buffer.speech_started")
    response = talk.assert_event("response.done")["response"]
    assert response["status"] == "cancelled"
    assert response["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    assert talk.take(Abandon).response_id == response_id


def test_no_audio_goes_out_after_the_cut(talk: Conversation) -> None:
    talk.say(96)
    talk.skip()
    talk.hush(5000)
    talk.assert_no_event("response.audio.delta")


def test_the_history_keeps_what_was_heard(talk: Conversation) -> None:
    talk.hush(1000)
    talk.say(96)
    truncated = talk.assert_event("conversation.item.truncated", content_index=0)
    assert 2000 <= truncated["audio_end_ms"] <= 2200
    assert (truncated["transcript"], truncated["unheard"]) == ("It is noon.", " The sun shines. ")
    talk.say(640)
    talk.hush(960)
    talk.recognize("And tomorrow?")
    assert words_in(talk.take(Respond)) == ["What time is it?", "It is noon.", "And tomorrow?"]


def test_the_transcript_that_was_sent_is_not_taken_back(talk: Conversation) -> None:
    talk.say(96)
    talk.assert_event("response.audio_transcript.done", transcript=TEXT)
    talk.assert_event("response.content_part.done", part={"type": "audio", "transcript": TEXT})
    item = talk.assert_event("response.output_item.done")["item"]
    assert (item["status"], item["content"][0]["transcript"]) == ("incomplete", TEXT)


def test_the_client_corrects_what_was_heard(talk: Conversation) -> None:
    talk.say(96)
    item_id = talk.assert_event("conversation.item.truncated")["item_id"]
    talk.tell("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=3400)
    talk.assert_event("conversation.item.truncated", transcript="It is noon. The sun", unheard=" shines. ")
    first, second = talk.records
    assert first.ordinal == second.ordinal == 1
    assert first.is_interrupted
    assert second.is_interrupted
    assert (first.assistant_text, second.assistant_text) == (TEXT, TEXT)
    assert (first.heard_text, second.heard_text) == ("It is", "It is noon. The sun")


def test_words_that_were_not_spoken_yet_were_not_heard(talk: Conversation) -> None:
    talk.wait(5000)
    talk.write(talk.ask("And tomorrow?"), "Rain.")
    talk.say(96)
    talk.assert_event("conversation.item.truncated", audio_end_ms=0, transcript="", unheard="Rain.")


def test_a_written_answer_is_cancelled_and_kept() -> None:
    talk = Conversation(modalities=("text",))
    talk.write(talk.ask(), "It is noon.")
    talk.say(96)
    item = talk.assert_event("response.done")["response"]["output"][0]
    talk.assert_no_event("conversation.item.truncated")
    assert talk.item(item["id"])["content"] == [{"type": "text", "text": "It is noon."}]


def test_speech_in_the_same_breath_cancels_an_answer_that_has_not_begun() -> None:
    talk = Conversation()
    talk.ask("What time")
    talk.say(640)
    assert talk.assert_event("response.done")["response"]["output"] == []
    talk.hush(1280)
    talk.recognize("is it?")
    assert words_in(talk.take(Respond)) == ["What time", "is it?"]


def test_an_answer_that_may_not_be_interrupted_goes_on() -> None:
    talk = Conversation(turn_detection=TurnDetection(interrupt_response=False))
    talk.answer(talk.ask(), TEXT, ms=4000)
    talk.wait(500)
    talk.say(640)
    talk.hush(960)
    talk.recognize("And tomorrow?")
    talk.assert_no_event("response.done")
    talk.wait(3000)
    assert talk.assert_event("response.done")["response"]["status"] == "completed"
    talk.assert_event("response.created")
    assert words_in(talk.take(Respond)) == ["What time is it?", TEXT, "And tomorrow?"]


def test_the_next_answer_waits_until_the_caller_has_finished() -> None:
    talk = Conversation(turn_detection=TurnDetection(interrupt_response=False))
    talk.answer(talk.ask(), TEXT, ms=3000)
    talk.wait(500)
    talk.say(640)
    talk.hush(960)
    talk.recognize("And tomorrow?")
    talk.say(1600)
    talk.assert_event("response.done")
    talk.assert_no_event("response.created")
    talk.hush(1280)
    talk.recognize("In Oslo?")
    talk.assert_event("response.created")
    assert words_in(talk.take(Respond))[2:] == ["And tomorrow?", "In Oslo?"]


@pytest.mark.parametrize("noise_ms", [160, 640])
def test_a_turn_is_taken_turn_though_a_noise_came_before_its_words(noise_ms: int) -> None:
    talk = Conversation()
    talk.say(640)
    talk.hush(960)
    talk.say(noise_ms)
    talk.recognize("What time is it?")
    talk.assert_no_event("response.created")
    talk.hush(960)
    if noise_ms > 250:
        talk.recognize("")
    talk.assert_event("response.created")
    assert words_in(talk.take(Respond))[0] == "What time is it?"


def test_in_manual_mode_speech_interrupts_nothing() -> None:
    talk = Conversation(turn_detection=None)
    talk.answer(talk.ask_in_writing(), TEXT, ms=1000)
    talk.say(2000)
    assert talk.assert_event("response.done")["response"]["status"] == "completed"


def test_cancelling_forgets_the_answer_that_was_owed() -> None:
    talk = Conversation(turn_detection=TurnDetection(interrupt_response=False))
    talk.answer(talk.ask(), TEXT, ms=9000)
    talk.say(640)
    talk.hush(960)
    talk.recognize("And tomorrow?")
    talk.tell("response.cancel")
    talk.assert_event("response.done")
    talk.wait(1000)
    talk.assert_no_event("response.created")


def test_playout_is_cut_behind_the_end_of_the_answer(talk: Conversation) -> None:
    talk.say(96)
    [position] = talk.cuts
    assert "response.done" in [event["type"] for event in talk.events[:position]]


def test_playout_is_cut_when_the_caller_speaks_into_the_last_words() -> None:
    talk = Conversation()
    talk.answer(talk.ask(), TEXT, ms=1000)
    talk.hush(2000)
    assert talk.of("response.done")
    assert not talk.cuts
    talk.say(96)
    [position] = talk.cuts
    assert talk.events[position - 1]["type"] == "input_audio_buffer.speech_started"


def test_playout_goes_on_where_the_caller_may_not_interrupt() -> None:
    talk = Conversation(turn_detection=TurnDetection(interrupt_response=False))
    talk.answer(talk.ask(), TEXT, ms=4000)
    talk.say(640)
    assert talk.of("input_audio_buffer.speech_started")
    assert not talk.cuts


def test_an_answer_that_fails_can_be_interrupted(talk: Conversation) -> None:
    talk = Conversation()
    response_id = talk.ask()
    talk.speak(response_id, 4000)
    talk.fail(response_id)
    assert not talk.cuts
    talk.say(640)
    assert talk.assert_event("response.done")["response"]["status"] == "cancelled"
    [position] = talk.cuts
    assert talk.events[position - 1]["type"] == "conversation.item.truncated"


def test_an_answer_that_the_client_cancels_falls_silent(talk: Conversation) -> None:
    talk.tell("response.cancel")
    assert len(talk.cuts) == 1
