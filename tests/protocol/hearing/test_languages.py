"""The language of a conversation, as recognition detects it turn by turn."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.conversations import Conversation
from voiceapp.protocol.work import Respond

COMPLETED = "conversation.item.input_audio_transcription.completed"
ENGLISH_ONLY = "Ich kann nur auf Englisch antworten."
TOOLS = ({"type": "function", "name": "weather"},)


def asked(talk: Conversation, words: str, detected: str, ms: int = 1200) -> Respond:
    """What the model is asked for after a turn; its reply ends at once."""
    talk.say(ms)
    talk.hush(960)
    talk.recognize(words, detected)
    work = talk.take(Respond)
    talk.end(work.response_id)
    return work


def test_the_language_of_a_turn_is_kept() -> None:
    talk = Conversation()
    assert asked(talk, "Hallo.", "de", ms=640).config.transcription_language is None  # too short to tell
    work = asked(talk, "Wie spät ist es?", "de")
    assert (work.config.transcription_language, work.instead) == ("de", "")
    talk.assert_event(COMPLETED, transcript="Hallo.", language="en")
    talk.assert_event(COMPLETED, language="de")
    talk.say(1200)
    talk.hush(960)
    assert talk.recognize("Und morgen?").language == "de"


def test_a_caller_who_changes_the_language_is_followed_unless_the_client_has_set_one() -> None:
    talk = Conversation(languages=("de", "en"))
    asked(talk, "Wie spät ist es?", "de")
    talk.say(1200)
    talk.hush(960)
    reading = talk.recognize("What time is it?", "en")
    assert (reading.language, reading.among) == ("de", ("de", "en"))
    talk.end(talk.take(Respond).response_id)
    assert talk.session.config.transcription_language == "en"
    talk.update(input_audio_transcription={"language": "de"})
    talk.say(1200)
    talk.hush(960)
    reading = talk.recognize("What time is it?", "en")
    assert (reading.language, reading.among) == ("de", None)
    assert talk.session.config.transcription_language == "de"


def test_the_first_words_are_judged_in_the_language_that_they_were_read_in() -> None:
    talk = Conversation()
    talk.say(640)
    talk.hush(192)
    talk.recognize("Mach bitte das Licht an.", "de")  # no English sentence ends so
    talk.judge(0.95)
    talk.assert_event("input_audio_buffer.committed")


def test_an_outdated_reading_does_not_decide_the_language() -> None:
    talk = Conversation(interruptions="cut")
    talk.say(1200)
    talk.hush(960)
    work = talk.take_final()
    talk.tell("conversation.item.delete", item_id=work.item_id)
    talk.late(work, "Wie spät ist es?", "de")
    assert asked(talk, "What time is it?", "").config.transcription_language is None


def test_a_caller_who_goes_on_in_english_is_replied_to() -> None:
    talk = Conversation(replies_in_english=True)
    for _ in range(2):
        told = asked(talk, "Wie spät ist es?", "de")
        assert told.instead.startswith(ENGLISH_ONLY)
        assert told.config.transcription_language == "de"
    assert asked(talk, "What time is it?", "en").instead == ""
    assert talk.session.config.transcription_language == "en"


@pytest.mark.parametrize("settings", [{}, {"transcription_language": "de"}])
def test_speech_is_told_of_english_unless_programs_want_functions_called(settings: dict[str, Any]) -> None:
    german = ("Wie spät ist es?", "" if settings else "de")
    assert asked(Conversation(replies_in_english=True, **settings), *german).instead.startswith(ENGLISH_ONLY)
    assert asked(Conversation(replies_in_english=True, tools=TOOLS, **settings), *german).instead == ""
    assert asked(Conversation(**settings), *german).instead == ""


def test_a_word_does_not_show_the_language() -> None:
    talk = Conversation(replies_in_english=True)
    assert asked(talk, "Okay.", "de", ms=640).instead == ""
    assert asked(talk, "Wie spät ist es?", "de").instead


@pytest.mark.parametrize("language", ["zh", None])
def test_typed_text_is_replied_to_whatever_was_said_before(language: str | None) -> None:
    talk = Conversation(replies_in_english=True, transcription_language=language)
    talk.update(turn_detection={"type": "server_vad", "create_response": False})
    talk.say(1200)
    talk.hush(960)
    talk.recognize("Wie spät ist es?", "" if language else "de")
    content = [{"type": "input_text", "text": "What time is it?"}]
    talk.tell("conversation.item.create", item={"type": "message", "role": "user", "content": content})
    talk.tell("response.create")
    work = talk.take(Respond)
    assert (work.instead, work.config.transcription_language) == ("", language)
    talk.end(work.response_id)
    talk.tell("response.create", response={"conversation": "none"})
    assert talk.take(Respond).instead == ""
