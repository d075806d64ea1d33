"""A reply begun while the caller may still go on: ready when they do not, and without trace when they do."""

from __future__ import annotations

import pytest

from tests.protocol.conversations import Conversation, counted_ids, words_in
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.conversation import Conversation as Items
from voiceapp.protocol.hearing.speculation import MAX_SPEECH_MS, Speculation
from voiceapp.protocol.hearing.utterance import Utterance
from voiceapp.protocol.items import Message
from voiceapp.protocol.session import Session
from voiceapp.protocol.work import Abandon, Confirm, ReplyEnded, Respond, Work

WORDS = "What time is it?"


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    config = SessionConfig(model="voice", voice="Tina")
    talk.session = Session(session_id="sess_1", config=config, new_id=counted_ids(), speculates=True)
    return talk


def pause(talk: Conversation, words: str = WORDS) -> Respond:
    """The caller says something and pauses; the reply is begun."""
    talk.say(640)
    talk.hush(192)
    talk.recognize(words)
    return talk.take(Respond)


def test_the_reply_is_begun_in_the_pause_and_nobody_is_told(talk: Conversation) -> None:
    work = pause(talk)
    assert work.is_speculative
    assert words_in(work) == [WORDS]
    assert not talk.of("response.created")
    assert not talk.of("conversation.item.created")
    assert talk.session.conversation.items == []


def test_it_is_used_when_the_turn_ends_with_the_same_words(talk: Conversation) -> None:
    work = pause(talk)
    talk.judge(0.9)
    assert talk.assert_event("response.created")["response"]["id"] == work.response_id
    assert talk.take(Confirm).response_id == work.response_id
    assert not talk.asks(Respond)
    talk.answer(work.response_id, "It is noon.", ms=500)
    talk.wait(1000)
    assert talk.assert_event("response.done")["response"]["status"] == "completed"
    (record,) = talk.records
    assert (record.user_text, record.assistant_text, record.is_spoken) == (WORDS, "It is noon.", True)


def test_it_is_used_when_the_turn_shows_its_language(talk: Conversation) -> None:
    talk.say(1200)
    talk.hush(192)
    talk.recognize("Wie spät ist es?", "de")
    work = talk.take(Respond)
    assert work.config.transcription_language == "de"
    talk.judge(0.9)
    assert talk.take(Confirm).response_id == work.response_id
    assert not talk.asks(Respond)


def test_it_is_dropped_without_trace_when_the_caller_goes_on(talk: Conversation) -> None:
    work = pause(talk, "What time")
    talk.skip()
    talk.say(320)
    assert any(isinstance(each, Abandon) and each.response_id == work.response_id for each in talk.work)
    talk.write(work.response_id, "It is noon.")  # too late
    talk.session.done(ReplyEnded(work.response_id, "stop"), talk.now)
    talk.hush(960)
    talk.recognize(WORDS)
    assert not [event for event in talk.events if "noon" in str(event)]
    assert not talk.records
    assert [item.text for item in talk.session.conversation.items if isinstance(item, Message)] == [WORDS]


def test_words_that_change_get_a_reply_of_their_own(talk: Conversation) -> None:
    first = pause(talk, "What time")
    talk.say(320)
    talk.hush(960)
    talk.recognize(WORDS)
    second = talk.take(Respond)
    assert second.response_id != first.response_id
    assert words_in(second) == [WORDS]


def test_a_setting_that_changes_meanwhile_counts(talk: Conversation) -> None:
    work = pause(talk)
    talk.update(instructions="Be brief.")
    talk.judge(0.9)
    assert any(isinstance(each, Abandon) and each.response_id == work.response_id for each in talk.work)
    again = talk.take(Respond)
    assert (again.is_speculative, again.config.instructions) == (False, "Be brief.")


def test_an_item_added_meanwhile_counts(talk: Conversation) -> None:
    pause(talk)
    content = [{"type": "input_text", "text": "The clock is slow."}]
    talk.tell("conversation.item.create", item={"type": "message", "role": "system", "content": content})
    talk.judge(0.9)
    assert not talk.take(Respond).is_speculative


def test_a_turn_is_speculated_on_twice_at_most(talk: Conversation) -> None:
    for _ in range(2):
        assert pause(talk).is_speculative
    talk.say(640)
    talk.hush(192)
    talk.recognize(WORDS)
    assert not talk.asks(Respond)
    talk.hush(960)
    assert not talk.take(Respond).is_speculative


def test_a_long_speech_is_not_speculated_on(talk: Conversation) -> None:
    talk.say(MAX_SPEECH_MS + 64)
    talk.hush(192)
    talk.recognize(WORDS)
    assert not talk.asks(Respond)


def test_who_pauses_ten_times_hears_no_wrong_start(talk: Conversation) -> None:
    for number in range(10):
        talk.say(640)
        talk.hush(192)
        talk.recognize(f"{WORDS} {number}")
    assert not talk.of("response.created")
    talk.hush(960)
    assert len(talk.of("response.created")) == 1


def test_a_client_that_begins_responses_itself_gets_none(talk: Conversation) -> None:
    talk.update(turn_detection={"type": "server_vad", "create_response": False})
    talk.say(640)
    talk.hush(192)
    talk.recognize(WORDS)
    assert not talk.asks(Respond)


def test_a_cleared_buffer_drops_it(talk: Conversation) -> None:
    work = pause(talk)
    talk.tell("input_audio_buffer.clear")
    assert any(isinstance(each, Abandon) and each.response_id == work.response_id for each in talk.work)
    talk.wait(3000)
    assert not talk.of("response.created")


def test_barge_in_keeps_what_was_heard_of_it(talk: Conversation) -> None:
    work = pause(talk)
    talk.judge(0.9)
    talk.write(work.response_id, "It is noon. And more.")
    talk.speak(work.response_id, 2000, 12)
    talk.speak(work.response_id, 2000, 21)
    talk.wait(2100)
    talk.say(128)
    response = talk.assert_event("response.done")["response"]
    assert response["status"] == "cancelled"
    last = talk.session.conversation.items[-1]
    assert isinstance(last, Message)
    assert last.text == "It is noon. "


@pytest.mark.parametrize(("words", "is_kept"), [("What time is it?", True), ("What time was it?", False)])
def test_a_reply_is_kept_when_only_capitals_and_marks_differ(words: str, *, is_kept: bool) -> None:
    work: list[Work] = []
    items, config = Items(), SessionConfig(model="voice", voice="Tina")
    speculation = Speculation(items, start=work.append, new_id=counted_ids())
    turn = Utterance("item_1", 0)
    turn.keep_words("what time is it")
    speculation.begin(turn, config, ordinal=1)
    items.add(Message("item_1", spoken=True, text=words))
    assert (speculation.response_id(turn, config) is not None) == is_kept


@pytest.mark.parametrize(("sound", "is_begun"), [(0.2, True), (0.02, False)])
def test_it_waits_for_a_longer_pause_where_the_sound_goes_on(talk: Conversation, sound: float, is_begun: bool) -> None:
    talk.say(640)
    talk.hush(128)
    talk.judge(sound)
    talk.recognize(WORDS)
    assert talk.asks(Respond) == is_begun
    talk.hush(128)
    assert words_in(talk.take(Respond)) == [WORDS]
