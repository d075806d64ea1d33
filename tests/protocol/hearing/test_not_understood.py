"""A turn in which somebody spoke ends in something they hear: a reply to stable words, else a sentence that says so."""

from __future__ import annotations

import pytest

from tests.protocol.conversations import SILENCE, Conversation, counted_ids, words_in
from voiceapp.protocol.configuration import SessionConfig, TurnDetection
from voiceapp.protocol.hearing.turns import CLEAR_SPEECH_MS
from voiceapp.protocol.session import Session
from voiceapp.protocol.work import Respond

COMPLETED = "conversation.item.input_audio_transcription.completed"
FAILED = "conversation.item.input_audio_transcription.failed"
SENTENCE = "I did not catch that."


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


def mumble(talk: Conversation, ms: float = CLEAR_SPEECH_MS + 64) -> None:
    """A turn of which no word is understood."""
    talk.say(ms)
    talk.hush(960)
    talk.recognize("")


def test_the_caller_hears_that_nothing_was_understood(talk: Conversation) -> None:
    mumble(talk)
    talk.assert_event(COMPLETED, transcript="")
    talk.assert_event("response.created")
    work = talk.take(Respond)
    assert work.instead == SENTENCE
    talk.answer(work.response_id, work.instead, ms=500)
    talk.wait(1000)
    assert talk.assert_event("response.done")["response"]["status"] == "completed"
    assert talk.records[-1].assistant_text == SENTENCE


def test_it_is_said_in_the_language_of_the_session(talk: Conversation) -> None:
    talk.update(input_audio_transcription={"language": "de-AT"})
    mumble(talk)
    assert talk.take(Respond).instead == "Das habe ich nicht verstanden."


def test_a_language_without_a_sentence_gets_the_english_one(talk: Conversation) -> None:
    talk.update(input_audio_transcription={"language": "tlh"})
    mumble(talk)
    assert talk.take(Respond).instead == SENTENCE


def test_a_cough_is_not_replied_to(talk: Conversation) -> None:
    mumble(talk, CLEAR_SPEECH_MS - 64)
    talk.assert_event(COMPLETED, transcript="")
    talk.assert_no_event()


def test_an_operator_may_have_it_stay_silent() -> None:
    talk = Conversation()
    config = SessionConfig(model="voice", voice="Tina")
    talk.session = Session(session_id="s", config=config, new_id=counted_ids(), says_not_understood=False)
    mumble(talk)
    talk.assert_event(COMPLETED, transcript="")
    talk.assert_no_event()


def test_a_client_that_begins_responses_itself_gets_none(talk: Conversation) -> None:
    talk.update(turn_detection={"type": "server_vad", "create_response": False})
    mumble(talk)
    talk.assert_event(COMPLETED, transcript="")
    talk.assert_no_event()


def test_a_response_to_a_committed_turn_says_it(talk: Conversation) -> None:
    talk.update(turn_detection=None)
    talk.say(CLEAR_SPEECH_MS + 64)
    talk.tell("input_audio_buffer.commit")
    talk.tell("response.create")
    talk.recognize("")
    assert talk.take(Respond).instead == SENTENCE


def test_words_typed_since_are_replied_to(talk: Conversation) -> None:
    talk.update(turn_detection=None)
    talk.say(CLEAR_SPEECH_MS + 64)
    talk.tell("input_audio_buffer.commit")
    talk.recognize("")
    talk.ask_in_writing("What time is it?")
    assert talk.session.response is not None
    talk.tell("response.cancel")
    talk.tell("response.create")
    assert talk.take(Respond).instead == ""


def test_who_begins_again_is_not_told_about_the_turn_before(talk: Conversation) -> None:
    talk.say(CLEAR_SPEECH_MS + 64)
    talk.hush(960)
    talk.say(320)  # the words of the turn before are not known yet
    talk.recognize("")
    assert not talk.asks(Respond)
    talk.hush(960)
    talk.recognize("What time is it?")
    assert talk.take(Respond).instead == ""
    assert not talk.asks(Respond)


def test_words_that_wait_for_a_reply_come_before_it(talk: Conversation) -> None:
    talk.say(640)
    talk.hush(960)
    talk.say(640)  # too soon for a response to the first turn
    talk.recognize("What time is it?")
    talk.hush(960)
    talk.recognize("")
    assert talk.take(Respond).instead == ""


def test_words_that_two_readings_agreed_on_stand_for_final_ones(talk: Conversation) -> None:
    talk.say(600)
    talk.recognize_partly("What time is it?")
    talk.say(600)
    talk.recognize_partly("What time is it?")
    talk.hush(960)
    talk.recognize("")
    talk.assert_event(COMPLETED, transcript="What time is it?")
    assert words_in(talk.take(Respond)) == ["What time is it?"]


def test_words_that_were_still_changing_do_not(talk: Conversation) -> None:
    talk.say(600)
    talk.recognize_partly("What time")
    talk.say(600)
    talk.recognize_partly("What dime is")
    talk.hush(960)
    talk.recognize("")
    talk.assert_event(COMPLETED, transcript="")
    assert talk.take(Respond).instead == SENTENCE


def test_a_recognition_that_failed_is_said_too(talk: Conversation) -> None:
    talk.say(CLEAR_SPEECH_MS + 64)
    talk.hush(960)
    talk.fail_recognition()
    talk.assert_event(FAILED)
    assert talk.take(Respond).instead == SENTENCE


def test_a_recognition_that_failed_keeps_words_that_were_stable(talk: Conversation) -> None:
    for _ in range(2):
        talk.say(600)
        talk.recognize_partly("What time is it?")
    talk.hush(960)
    talk.fail_recognition()
    talk.assert_event(COMPLETED, transcript="What time is it?")
    assert talk.take(Respond).instead == ""


def test_nothing_is_said_about_a_turn_that_the_client_deleted(talk: Conversation) -> None:
    talk.say(CLEAR_SPEECH_MS + 64)
    talk.hush(960)
    talk.tell("conversation.item.delete", item_id=talk.of("conversation.item.created")[0]["item"]["id"])
    talk.fail_recognition()
    talk.hear(640, SILENCE)
    assert not talk.asks(Respond)


@pytest.mark.parametrize("settings", [TurnDetection(), TurnDetection(interrupt_response=False)])
def test_a_turn_into_a_reply_is_told_when_the_reply_is_over(settings: TurnDetection) -> None:
    talk = Conversation(turn_detection=settings)
    talk.answer(talk.ask(), ms=6000)
    mumble(talk)
    talk.wait(8000)
    assert talk.take(Respond).instead == SENTENCE
