"""Sound during a reply that may be its echo, a noise, or a word that only says "I listen"."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.conversations import SILENCE, SPEECH, Conversation, words_in
from voiceapp.protocol.configuration import TurnDetection
from voiceapp.protocol.states import EchoRisk
from voiceapp.protocol.work import Recognize, Respond

TEXT = "Paris is the capital of France. "
STARTED = "input_audio_buffer.speech_started"
STOPPED = "input_audio_buffer.speech_stopped"
DUCKED = "response.audio.ducked"
COMPLETED = "conversation.item.input_audio_transcription.completed"
RESTORED = "response.audio.restored"
COMMITTED = "input_audio_buffer.committed"
POSSIBLE, LIKELY = EchoRisk.POSSIBLE, EchoRisk.LIKELY


def talking(ms: float = 4000, text: str = TEXT, **settings: Any) -> Conversation:
    """The assistant has been speaking for one and a half seconds of so many milliseconds."""
    talk = Conversation(**settings)
    talk.answer(talk.ask(), text, ms=ms)
    talk.wait(1500)
    talk.skip()
    talk.work.clear()
    return talk


def utter(talk: Conversation, words: str, *, ms: float = 480, echo: EchoRisk = EchoRisk.NONE) -> None:
    """Speak for so long, pause, and be understood."""
    talk.hear(ms, SPEECH, echo)
    talk.hear(192, SILENCE, echo)
    talk.recognize(words)


def test_an_echo_changes_nothing() -> None:
    talk = talking()
    utter(talk, "capital of", ms=640, echo=LIKELY)
    talk.hush(6000)
    assert talk.assert_event("response.done")["response"]["status"] == "completed"
    assert not talk.cuts
    assert STARTED not in [event["type"] for event in talk.events[talk.events.index(talk.of("response.created")[0]) :]]
    assert len(talk.of("conversation.item.created")) == 2


def test_words_that_are_not_the_reply_s_interrupt_through_an_echo() -> None:
    talk = talking()
    talk.hear(512, SPEECH, LIKELY)
    talk.assert_no_event(STARTED)
    talk.recognize_partly("And what about Spain")
    talk.assert_event(STARTED)
    assert talk.assert_event("response.done")["response"]["status"] == "cancelled"
    talk.hush(960)
    talk.recognize("And what about Spain?")
    assert words_in(talk.take(Respond))[-1] == "And what about Spain?"


@pytest.mark.parametrize(("echo", "told"), [(LIKELY, True), (POSSIBLE, None), (EchoRisk.NONE, None)])
def test_it_tells_whether_the_reply_was_found_in_what_was_said(echo: EchoRisk, told: bool | None) -> None:
    talk = talking()
    utter(talk, "And what about Spain?", ms=640, echo=echo)
    talk.hush(960)
    assert talk.assert_event(STOPPED).get("echo") is told


@pytest.mark.parametrize("echo", [POSSIBLE, LIKELY])
def test_a_question_with_letters_of_the_reply_interrupts_it(echo: EchoRisk) -> None:
    talk = talking(text="I can tell you the time and the date, convert units, and set timers. ", interruptions="duck")
    utter(talk, "What time is it?", ms=640, echo=echo)
    talk.assert_event(STARTED)
    talk.hush(960)
    assert words_in(talk.take(Respond))[-1] == "What time is it?"


def test_a_question_about_the_reply_waits_for_its_end_while_an_echo_is_only_possible() -> None:
    talk = talking()
    talk.hear(512, SPEECH, POSSIBLE)
    talk.recognize_partly("What is the capital")
    talk.assert_no_event(STARTED)
    talk.hear(320, SPEECH, POSSIBLE)
    talk.hush(192)
    talk.recognize("What is the capital of Spain?")
    talk.assert_event(STARTED)


def test_a_caller_is_heard_whose_words_run_into_the_echo() -> None:
    talk = talking()
    utter(talk, "Turn on the living room lamp capital of France", ms=1920, echo=LIKELY)
    talk.assert_event(STARTED)


@pytest.mark.parametrize(
    ("words", "is_heard"), [("Stop.", True), ("Thank you.", True), ("Okay.", False), ("Capital", False)]
)
def test_short_words_count_while_an_echo_is_only_possible(words: str, is_heard: bool) -> None:
    talk = talking(interruptions="duck")
    utter(talk, words, ms=224, echo=POSSIBLE)
    assert (STARTED in talk.unread_types()) == is_heard


@pytest.mark.parametrize(
    ("command", "text", "is_heard"),
    [
        ("Stop.", TEXT, True),
        ("Stop.", "The bus stops at the bridge. ", False),
        ("Stop.", "He has to pick up the tickets. ", True),
        ("No.", "I know it now: Casino Novelty. ", True),
        ("No.", "There is no bridge there. ", False),
    ],
)
def test_a_command_interrupts_through_an_echo_that_does_not_say_it(command: str, text: str, is_heard: bool) -> None:
    talk = talking(text=text)
    utter(talk, command, ms=256, echo=LIKELY)
    assert (STARTED in talk.unread_types()) == is_heard


def test_words_over_an_echo_that_are_read_without_confidence_are_not_believed() -> None:
    talk = talking()
    talk.hear(640, SPEECH, LIKELY)
    talk.hear(192, SILENCE, LIKELY)
    talk.sure(talk.take_final(), "Versus then.", confidence=0.55)
    talk.assert_no_event(STARTED)


def test_the_echo_of_a_reply_does_not_cancel_the_next_one() -> None:
    talk = talking(ms=1600)
    talk.ask_in_writing("And of Spain?")
    talk.skip()
    utter(talk, "Paris is the capital", ms=640, echo=LIKELY)
    talk.hush(1500)
    talk.assert_no_event(STARTED, "response.done", COMMITTED)


def test_an_echo_of_a_reply_that_nothing_interrupts_is_no_turn() -> None:
    talk = talking(interruptions="duck", turn_detection=TurnDetection(interrupt_response=False))
    utter(talk, "capital of", ms=640, echo=LIKELY)
    talk.hush(1500)
    talk.assert_no_event(STARTED, DUCKED, COMMITTED)


def test_a_sound_that_is_no_echo_interrupts_at_once_where_there_is_one() -> None:
    talk = talking()
    talk.hear(320, SILENCE, LIKELY)
    talk.say(96)
    talk.assert_event(STARTED)
    talk.assert_event("response.done")


def test_an_echo_behind_the_end_of_the_reply_is_no_turn() -> None:
    talk = talking(ms=1600)
    talk.wait(700)
    talk.skip()
    utter(talk, "capital of France", ms=640, echo=LIKELY)
    talk.hush(2000)
    talk.assert_no_event(STARTED, "conversation.item.created")


def test_a_turn_after_the_reply_needs_no_proof() -> None:
    talk = talking(ms=1600)
    talk.wait(3000)
    talk.skip()
    talk.hear(96, SPEECH, LIKELY)
    talk.assert_event(STARTED)


@pytest.mark.parametrize("words", ["Mm-hm.", "Yes.", "Okay, right.", "", "I see."])
def test_a_word_that_only_shows_attention_is_taken_back(words: str) -> None:
    talk = talking(interruptions="duck")
    talk.say(96)
    talk.assert_event(DUCKED)
    talk.say(320)
    talk.hush(192)
    talk.recognize(words)
    talk.assert_event(RESTORED)
    talk.hush(6000)
    talk.assert_event("response.done")
    talk.assert_no_event(STARTED, "conversation.item.created")
    assert not talk.cuts


@pytest.mark.parametrize(
    ("language", "words", "is_heard"),
    [
        *(
            ("de", "Genau.", False),
            ("de-AT", "Ja, ja.", False),
            ("de", "Stopp.", True),
            ("de", "Wie alt ist sie?", True),
        ),
        *(("fi", "Lopeta.", False), ("en", "Genau.", True)),
    ],
)
def test_words_are_judged_in_their_language(language: str, words: str, is_heard: bool) -> None:
    talk = talking(interruptions="duck", transcription_language=language)
    utter(talk, words)
    (talk.assert_event if is_heard else talk.assert_no_event)(STARTED)


def test_a_language_without_words_is_judged_by_length() -> None:
    talk = talking(interruptions="duck", transcription_language="fi")
    talk.say(288)
    talk.recognize_partly("Lopeta heti")
    talk.assert_no_event(STARTED)
    talk.say(384)
    talk.assert_event(STARTED)


@pytest.mark.parametrize("words", ["Stop", "Wait", "No", "Tell me"])
def test_a_request_cuts_while_it_is_being_said(words: str) -> None:
    talk = talking(interruptions="duck")
    talk.say(288)
    talk.assert_no_event(STARTED)
    talk.recognize_partly(words)
    talk.assert_event(STARTED)
    assert talk.assert_event("response.done")["response"]["status"] == "cancelled"
    assert talk.cuts


def test_a_yes_with_more_behind_it_interrupts() -> None:
    talk = talking(interruptions="duck")
    talk.say(288)
    talk.recognize_partly("Yes")
    talk.assert_no_event(STARTED)
    talk.say(480)
    talk.recognize_partly("Yes but where is it")
    talk.assert_event(STARTED)


def test_a_yes_at_the_end_of_the_reply_answers_it() -> None:
    talk = talking(ms=2000, interruptions="duck")
    utter(talk, "Yes.")
    talk.assert_event(STARTED)
    talk.hush(960)
    assert words_in(talk.take(Respond))[-1] == "Yes."


def test_speech_without_a_pause_interrupts_before_its_words_are_known() -> None:
    talk = talking(interruptions="duck")
    talk.say(608)
    talk.assert_no_event(STARTED)
    talk.say(64)
    talk.assert_event(STARTED)


def test_a_drawn_out_word_that_shows_attention_is_waited_for() -> None:
    talk = talking(interruptions="duck")
    talk.say(320)
    talk.recognize_partly("Mm-hmm")
    talk.say(448)
    talk.hush(192)
    talk.recognize("Mm-hmm.")
    talk.assert_event(RESTORED)
    talk.assert_no_event(STARTED)


@pytest.mark.parametrize(("confidence", "event"), [(0.76, RESTORED), (0.9, STARTED)])
def test_what_is_left_of_a_word_that_shows_attention_is_not_believed(confidence: float, event: str) -> None:
    talk = talking(interruptions="duck")
    talk.say(224)
    talk.recognize_partly("Uh-huh")
    talk.say(288)
    talk.hush(192)
    talk.sure(talk.take_final(), "Other.", confidence=confidence)
    talk.assert_event(event)


@pytest.mark.parametrize(
    ("words", "confidence", "is_cut"),
    [
        *(("What", 0.55, True), ("Lisbon", 0.75, False), ("Lisbon", 0.85, True)),
        *(("Stop", 0.55, False), ("Stop", 0.65, True), ("Yeah, mate", 0.55, False), ("Is it", 0.65, True)),
    ],
)
def test_the_first_reading_of_a_sound_that_is_no_echo_may_cut(words: str, confidence: float, is_cut: bool) -> None:
    talk = talking(interruptions="duck")
    talk.say(192)
    talk.sure(talk.take(Recognize), words, confidence=confidence)
    assert (STARTED in talk.unread_types()) == is_cut


def test_what_may_be_an_echo_is_first_read_when_there_is_more_of_it() -> None:
    talk = talking(interruptions="duck")
    talk.hear(224, SPEECH, LIKELY)
    assert not talk.asks(Recognize)
    talk.hear(32, SPEECH, LIKELY)
    assert talk.asks(Recognize)


@pytest.mark.parametrize(("confidence", "event"), [(0.5, RESTORED), (0.9, STARTED)])
def test_a_single_word_counts_when_it_is_clear(confidence: float, event: str) -> None:
    talk = talking(interruptions="duck")
    talk.say(320)
    talk.hush(192)
    talk.sure(talk.take_final(), "Lisbon.", confidence=confidence)
    talk.assert_event(event)


def test_a_response_may_be_asked_for_beside_a_sound_that_may_be_nothing() -> None:
    talk = talking(ms=1600, interruptions="duck")
    talk.say(96)
    talk.assert_event(DUCKED)
    talk.ask_in_writing()
    talk.assert_no_event("error")


def test_a_click_is_taken_back_without_a_reading() -> None:
    talk = talking(interruptions="duck")
    talk.say(96)
    talk.hush(992)
    talk.assert_event(DUCKED)
    talk.assert_event(RESTORED)
    assert not [work for work in talk.work if isinstance(work, Recognize) and not work.is_partial]


def test_words_that_come_after_the_pause_are_waited_for() -> None:
    talk = talking(interruptions="duck")
    talk.say(480)
    talk.hush(992)
    talk.assert_no_event(STARTED, RESTORED)
    talk.recognize("Where is it?")
    talk.assert_event(STARTED)
    talk.assert_event("input_audio_buffer.speech_stopped")
    talk.assert_event("input_audio_buffer.committed")
    assert words_in(talk.take(Respond))[-1] == "Where is it?"


def test_who_goes_on_while_the_words_are_waited_for_says_one_thing() -> None:
    talk = talking(interruptions="duck")
    talk.say(480)
    talk.hush(992)
    late = talk.take_final()
    talk.say(288)
    talk.late(late, "Yes.")
    talk.assert_no_event(STARTED, RESTORED)
    talk.hush(192)
    talk.recognize("Yes, where is it?")
    talk.assert_event(STARTED)


def test_the_end_of_the_session_believes_what_was_said() -> None:
    talk = talking(interruptions="duck")
    talk.say(480)
    talk.tell("session.finish")
    talk.assert_event(STARTED)
    talk.recognize("Goodbye then.")
    talk.assert_event("conversation.item.input_audio_transcription.completed")


@pytest.mark.parametrize(("words", "is_heard"), [("capital of France", False), ("Goodbye then.", True)])
def test_the_end_of_the_session_waits_for_what_may_be_an_echo(words: str, is_heard: bool) -> None:
    talk = talking()
    talk.hear(640, SPEECH, LIKELY)
    talk.tell("session.finish")
    talk.assert_no_event(STARTED, COMMITTED, "session.finished")
    talk.recognize(words)
    if is_heard:
        talk.assert_event(COMMITTED)
        talk.answer(talk.take(Respond).response_id)
    talk.assert_event("session.finished")
    assert [event["transcript"] for event in talk.of(COMPLETED)][1:] == ([words] if is_heard else [])


def test_an_unreadable_sound_is_believed_unless_it_may_be_an_echo() -> None:
    for echo, expected in ((EchoRisk.NONE, True), (LIKELY, False)):
        talk = talking(interruptions="duck")
        talk.hear(480, SPEECH, echo)
        talk.hear(992, SILENCE, echo)
        talk.fail_recognition()
        assert (STARTED in talk.unread_types()) == expected


def test_a_cleared_buffer_restores_the_reply() -> None:
    talk = talking(interruptions="duck")
    talk.say(288)
    talk.tell("input_audio_buffer.clear")
    talk.assert_event(DUCKED)
    talk.assert_event(RESTORED)


def test_manual_mode_begins_without_what_was_read_and_is_an_echo() -> None:
    talk = talking()
    talk.hear(512, SPEECH, LIKELY)
    talk.recognize_partly("capital of")
    talk.update(turn_detection=None)
    talk.assert_no_event(STARTED, "response.done")
    talk.tell("input_audio_buffer.commit")
    talk.assert_error("input_audio_buffer_commit_empty")


@pytest.mark.parametrize("pause_ms", [0, 992])
def test_manual_mode_keeps_what_was_not_read_yet(pause_ms: int) -> None:
    talk = talking(interruptions="duck")
    talk.hear(512, SPEECH, LIKELY)
    talk.hear(pause_ms, SILENCE, LIKELY)
    talk.work.clear()
    talk.update(turn_detection=None)
    talk.assert_event(DUCKED)
    talk.assert_event(RESTORED)
    talk.say(320)
    talk.tell("input_audio_buffer.commit")
    talk.assert_event(COMMITTED)
    assert len(talk.recognize("What about Spain?").audio) / 16 >= 512 + pause_ms + 320
    talk.assert_event(COMPLETED, transcript="What about Spain?")


def test_manual_mode_keeps_a_word_that_shows_attention() -> None:
    talk = talking()
    talk.hear(512, SPEECH, LIKELY)
    talk.recognize_partly("Okay")
    talk.update(turn_detection=None)
    talk.tell("input_audio_buffer.commit")
    talk.assert_event(COMMITTED)


def test_a_reply_that_may_not_be_interrupted_is_not_ducked() -> None:
    talk = talking(interruptions="duck", turn_detection=TurnDetection(interrupt_response=False))
    talk.say(480)
    talk.assert_event(STARTED)
    talk.assert_no_event(DUCKED, "response.done")


def test_a_reply_that_goes_on_uninterrupted_by_a_switch_to_manual_mode_is_restored() -> None:
    talk = talking(interruptions="duck")
    talk.say(480)
    talk.update(turn_detection=None)
    talk.assert_event(DUCKED)
    talk.assert_event(STARTED)
    talk.assert_event(RESTORED)
    talk.assert_no_event("response.done")
