"""Words that follow a turn at once belong to it; what follows a reply that was heard is another turn."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.conversations import Conversation, words_in
from voiceapp.protocol.work import Respond

STARTED = "input_audio_buffer.speech_started"
COMMITTED = "input_audio_buffer.committed"
CREATED = "conversation.item.created"
COMPLETED = "conversation.item.input_audio_transcription.completed"


def hello(talk: Conversation) -> str:
    """The caller calls, and a reply to that is written; returns the id of what was said."""
    talk.say(320)
    talk.hush(160)
    talk.recognize("Listen to this.")
    talk.judge(0.95)
    item_id: str = talk.assert_event(COMMITTED)["item_id"]
    return item_id


@pytest.mark.parametrize("is_written", [False, True])
def test_words_that_follow_at_once_continue_the_turn(is_written: bool) -> None:
    talk = Conversation(interruptions="duck")
    item_id = hello(talk)
    work = talk.take(Respond)
    if is_written:
        talk.write(work.response_id, "What is it?")
    talk.skip()
    talk.hush(320)
    talk.say(640)
    talk.assert_event(STARTED, item_id=item_id)
    talk.hush(960)
    talk.assert_event(COMMITTED, item_id=item_id)
    heard = talk.recognize("Listen to this. Are you there?")
    assert len(heard.audio) / 16 >= 320 + 160 + 640
    talk.assert_event(COMPLETED, item_id=item_id, transcript="Listen to this. Are you there?")
    assert words_in(talk.take(Respond)) == ["Listen to this. Are you there?"]
    assert [item.id for item in talk.session.conversation.items] == [item_id]
    (cancelled,) = talk.of("response.done")
    assert cancelled["response"]["status"] == "cancelled"
    assert len([event for event in talk.of(CREATED) if event["item"]["role"] == "user"]) == 1
    assert len(talk.of("conversation.item.deleted")) == is_written


def test_words_that_follow_before_the_first_ones_are_known_continue_the_turn() -> None:
    talk = Conversation(interruptions="duck")
    talk.say(320)
    talk.hush(384)
    talk.judge(0.95)
    item_id = talk.assert_event(COMMITTED)["item_id"]
    talk.say(640)
    talk.hush(960)
    talk.assert_event(COMMITTED, item_id=item_id)
    talk.work = [work for work in talk.work if getattr(work, "version", 1)]
    talk.recognize("Listen to this. Are you there?")
    assert words_in(talk.take(Respond)) == ["Listen to this. Are you there?"]


def test_after_the_reply_was_heard_they_are_another_turn() -> None:
    talk = Conversation(interruptions="duck")
    item_id = hello(talk)
    response_id = talk.take(Respond).response_id
    talk.answer(response_id, ms=2000)
    talk.hush(320)
    talk.say(960)
    assert talk.assert_event(STARTED)["item_id"] != item_id


@pytest.mark.parametrize(("silence_ms", "is_same"), [(480, True), (640, False)])
def test_they_must_follow_within_seven_tenths_of_a_second(silence_ms: int, is_same: bool) -> None:
    talk = Conversation(interruptions="duck")
    item_id = hello(talk)
    talk.hush(silence_ms)
    talk.say(320)
    assert (talk.assert_event(STARTED)["item_id"] == item_id) == is_same


def test_after_something_typed_they_are_another_turn() -> None:
    talk = Conversation(interruptions="duck")
    item_id = hello(talk)
    content = [{"type": "input_text", "text": "Never mind"}]
    talk.tell("conversation.item.create", item={"type": "message", "role": "user", "content": content})
    talk.say(320)
    assert talk.assert_event(STARTED)["item_id"] != item_id


@pytest.mark.parametrize("setting", [{"turn_detection": {"create_response": False}}, {"interruptions": "cut"}])
def test_clients_that_add_transcripts_up_get_an_item_for_each_turn(setting: dict[str, Any]) -> None:
    talk = Conversation(interruptions="duck")
    talk.update(**setting)
    item_id = hello(talk)
    talk.say(320)
    assert talk.assert_event(STARTED)["item_id"] != item_id


def test_what_is_cleared_of_a_turn_that_went_on_is_not_taken_up_again() -> None:
    talk = Conversation(interruptions="duck")
    item_id = hello(talk)
    talk.say(160)
    talk.tell("input_audio_buffer.clear")
    talk.say(320)
    assert [event["item_id"] == item_id for event in talk.of(STARTED)] == [True, True, False]


@pytest.mark.parametrize("is_known", [True, False])
def test_what_was_said_before_is_replied_to_when_the_rest_is_cleared(is_known: bool) -> None:
    talk = Conversation(interruptions="duck")
    if is_known:
        item_id = hello(talk)
        talk.take(Respond)
    else:
        talk.say(320)
        talk.hush(384)
        talk.judge(0.95)
        item_id = talk.assert_event(COMMITTED)["item_id"]
        early = talk.take_final()
    talk.say(320)
    talk.skip()
    talk.tell("input_audio_buffer.clear")
    talk.assert_event("input_audio_buffer.speech_stopped", item_id=item_id, reason=None)
    talk.assert_event(COMMITTED, item_id=item_id)
    if not is_known:
        talk.late(early, "Nothing.")  # abandoned
        assert len(talk.recognize("Listen to this.").audio) <= 16 * (320 + 192)
    talk.assert_event(COMPLETED, item_id=item_id, transcript="Listen to this.")
    assert words_in(talk.take(Respond)) == ["Listen to this."]


@pytest.mark.parametrize("finds_nothing", [True, False])
def test_words_that_were_known_stay_when_a_later_reading_finds_none(finds_nothing: bool) -> None:
    talk = Conversation(interruptions="duck")
    item_id = hello(talk)
    talk.take(Respond)
    talk.say(320)
    talk.hush(960)
    talk.assert_event(COMMITTED, item_id=item_id)
    if finds_nothing:
        talk.recognize("")
    else:
        talk.fail_recognition()
    talk.assert_event(COMPLETED, item_id=item_id, transcript="Listen to this.")
    assert words_in(talk.take(Respond)) == ["Listen to this."]


@pytest.mark.parametrize(("pause_ms", "is_patient"), [(960, True), (1600, False)])
def test_who_goes_on_soon_after_an_end_is_given_time(pause_ms: int, is_patient: bool) -> None:
    talk = Conversation()
    talk.say(640)
    talk.hush(pause_ms)
    talk.recognize("And so, my fellow Americans.")
    talk.say(640)
    talk.skip()
    talk.work.clear()
    talk.hush(384)
    talk.recognize("Ask not.")
    talk.judge(0.99)
    assert (COMMITTED in talk.unread_types()) != is_patient
    if is_patient:
        talk.hush(960)
        talk.assert_event(COMMITTED)
