"""The caller's side: turns found by voice detection, manual turns, and their words."""

from __future__ import annotations

import numpy as np
import pytest

from tests.protocol.conversations import Conversation, words_in
from voiceapp.protocol.hearing.listening import STALL_S
from voiceapp.protocol.hearing.utterance import MAX_UTTERANCE_MS
from voiceapp.protocol.work import Abandon, JudgeTurn, RecognitionFailed, Recognize, Respond, TurnJudged

STARTED = "input_audio_buffer.speech_started"
STOPPED = "input_audio_buffer.speech_stopped"
COMMITTED = "input_audio_buffer.committed"
CREATED = "conversation.item.created"
DELTA = "conversation.item.input_audio_transcription.delta"
COMPLETED = "conversation.item.input_audio_transcription.completed"
FAILED = "conversation.item.input_audio_transcription.failed"


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    talk.assert_types("session.created")
    return talk


@pytest.fixture
def manual(talk: Conversation) -> Conversation:
    talk.update(turn_detection=None)
    talk.assert_types("session.updated")
    return talk


# ── Voice detection ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_spoken_turn_has_its_events_in_order(talk: Conversation) -> None:
    talk.hush(960)
    talk.say(640)
    talk.hush(960)
    item_id = talk.assert_event(STARTED)["item_id"]
    talk.assert_event(STOPPED, item_id=item_id)
    talk.assert_event(COMMITTED, item_id=item_id)
    item = talk.assert_event(CREATED)["item"]
    assert item["id"] == item_id
    assert item["content"] == [{"type": "input_audio", "transcript": None}]
    talk.assert_no_event()
    talk.recognize("What time is it?")
    talk.assert_event(COMPLETED, item_id=item_id, transcript="What time is it?")
    talk.assert_types("response.created")
    assert talk.item(item_id)["content"] == [{"type": "input_audio", "transcript": "What time is it?"}]


def test_speech_starts_with_its_padding_and_stops_with_its_last_sound(talk: Conversation) -> None:
    talk.hush(960)
    talk.say(640)
    talk.hush(960)
    # 300 ms of padding are 9 whole frames.
    talk.assert_event(STARTED, audio_start_ms=960 - 9 * 32)
    talk.assert_event(STOPPED, audio_end_ms=1600)
    # Recognition hears less before the speech than the client asked to keep, and of the pause what there is.
    assert len(talk.take_final().audio) / 16 == 192 + 640 + 96


def test_speech_at_the_very_beginning_has_no_padding(talk: Conversation) -> None:
    talk.say(640)
    talk.assert_event(STARTED, audio_start_ms=0)


def test_it_begins_to_recognize_in_the_first_pause(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(192)
    work = talk.take(Recognize)
    assert not work.is_partial
    assert talk.take(JudgeTurn).item_id == work.item_id
    assert work.audio.dtype == np.float32


def test_words_found_in_the_pause_are_used_at_the_end(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(192)
    talk.recognize("What time is it?")
    talk.assert_event(DELTA, text="", stash="What time is it?")
    talk.judge(0.9)
    talk.assert_event(COMPLETED, transcript="What time is it?")
    talk.assert_event("response.created")
    assert not talk.asks(Recognize)


def test_words_found_in_a_pause_that_was_not_the_end_are_dropped(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(192)
    early = talk.take(Recognize)
    talk.work.clear()
    talk.say(320)
    assert talk.take(Abandon).item_id == early.item_id
    talk.late(early, "What")
    talk.hush(960)
    talk.assert_event(COMMITTED)
    talk.assert_no_event(COMPLETED)
    late = talk.recognize("What time is it?")
    assert late.item_id == early.item_id
    assert len(late.audio) > len(early.audio)
    talk.assert_event(COMPLETED, transcript="What time is it?")


def test_a_short_word_is_a_turn_when_the_recognizer_is_sure(talk: Conversation) -> None:
    talk.say(200)
    talk.hush(192)
    talk.sure(talk.take(Recognize), "Stop.", confidence=0.78)
    talk.hush(960)
    talk.assert_event(COMMITTED)
    talk.assert_event(COMPLETED, transcript="Stop.")
    talk.assert_event("response.created")


def test_a_short_sound_is_no_turn_when_the_recognizer_is_unsure(talk: Conversation) -> None:
    talk.say(200)
    talk.hush(192)
    talk.sure(talk.take(Recognize), "Okay.", confidence=0.6)
    talk.hush(960)
    talk.assert_event(STOPPED, reason="turn_invalid")
    talk.assert_no_event(DELTA, COMMITTED, COMPLETED)


def test_a_click_is_not_read(talk: Conversation) -> None:
    talk.say(160)
    talk.hush(960)
    talk.assert_event(STOPPED, reason="turn_invalid")
    assert not talk.asks(Recognize)


def test_a_short_word_between_two_commits_counts_when_the_recognizer_is_sure(manual: Conversation) -> None:
    for confidence, transcript in ((0.9, "Stop."), (0.5, "")):
        manual.say(200)
        manual.tell("input_audio_buffer.commit")
        manual.sure(manual.take(Recognize), "Stop.", confidence=confidence)
        manual.assert_event(COMPLETED, transcript=transcript)


def test_a_recognition_that_failed_in_the_pause_is_tried_again_at_the_end(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(192)
    talk.fail_recognition()
    talk.hush(960)
    talk.recognize("Hello")
    talk.assert_event(COMPLETED, transcript="Hello")


def test_the_turn_model_is_asked_again_while_the_pause_goes_on(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(192)
    talk.judge(0.1)
    talk.assert_no_event(STOPPED)
    talk.hush(192)
    talk.judge(0.9)
    talk.assert_event(STOPPED, audio_end_ms=320)


def test_a_judgement_about_an_earlier_pause_is_ignored(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(192)
    old = talk.take(JudgeTurn)
    talk.say(320)
    talk.hush(192)
    talk.session.done(TurnJudged(old.item_id, old.version, 1.0), talk.now)
    talk.session.done(TurnJudged("nobody", 0, 1.0), talk.now)
    talk.hush(32)
    talk.assert_no_event(STOPPED)


def test_the_turn_model_is_not_asked_when_the_client_fixed_the_silence(talk: Conversation) -> None:
    talk.update(turn_detection={"type": "server_vad", "threshold": 0.2, "silence_duration_ms": 800})
    talk.say(320)
    talk.hush(768)
    assert not talk.asks(JudgeTurn)
    talk.assert_no_event(STOPPED)
    talk.hush(32)
    talk.assert_event(STOPPED)


def test_noise_ends_without_a_turn(talk: Conversation) -> None:
    talk.say(160)
    talk.hush(960)
    item_id = talk.assert_event(STARTED)["item_id"]
    talk.assert_event(STOPPED, item_id=item_id, reason="turn_invalid")
    talk.assert_no_event()
    assert not talk.asks(Recognize)
    assert not talk.asks(JudgeTurn)


def test_words_that_are_none_get_no_answer(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(960)
    talk.recognize("")
    talk.assert_event(COMPLETED, transcript="")
    talk.assert_no_event()


def test_a_failed_recognition_is_said_and_gets_no_answer(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(960)
    talk.fail_recognition()
    error = talk.assert_event(FAILED)["error"]
    assert (error["type"], error["code"]) == ("server_error", "ModelUnavailable")
    talk.assert_no_event()
    talk.ask_in_writing()


def test_speech_ends_when_no_audio_comes_any_more(talk: Conversation) -> None:
    talk.say(320)
    talk.wait(STALL_S * 1000 - 10)
    talk.assert_no_event(STOPPED)
    talk.wait(20)
    talk.assert_event(STOPPED)
    talk.assert_event(COMMITTED)


def test_two_minutes_of_speech_are_committed_and_the_next_turn_begins(talk: Conversation) -> None:
    talk.say(MAX_UTTERANCE_MS)
    talk.assert_event(STARTED)
    talk.assert_event(STOPPED, audio_end_ms=MAX_UTTERANCE_MS)
    talk.assert_event(COMMITTED)
    talk.say(320)
    talk.assert_event(STARTED, audio_start_ms=MAX_UTTERANCE_MS)


def test_a_commit_ends_the_turn_at_once(talk: Conversation) -> None:
    talk.say(320)
    talk.tell("input_audio_buffer.commit")
    talk.assert_event(STOPPED)
    talk.assert_event(COMMITTED)


def test_a_commit_without_speech_changes_nothing(talk: Conversation) -> None:
    talk.hush(320)
    talk.tell("input_audio_buffer.commit")
    talk.assert_no_event()


def test_clearing_ends_the_speech_that_was_announced(talk: Conversation) -> None:
    talk.say(320)
    talk.tell("input_audio_buffer.clear")
    item_id = talk.assert_event(STARTED)["item_id"]
    talk.assert_event(STOPPED, item_id=item_id, reason="turn_invalid")
    talk.assert_types("input_audio_buffer.cleared")
    assert talk.take(Abandon).item_id == item_id
    talk.hush(3000)
    talk.assert_no_event()


# ── Partial words ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_words_are_shown_while_the_caller_speaks(talk: Conversation) -> None:
    talk.say(512)
    item_id = talk.assert_event(STARTED)["item_id"]
    talk.recognize_partly("What time")
    talk.assert_event(DELTA, item_id=item_id, text="", stash="What time")
    talk.say(512)
    talk.recognize_partly("What time is")
    talk.assert_event(DELTA, item_id=item_id, text="What time", stash=" is")


def test_only_one_partial_reading_runs_at_a_time(talk: Conversation) -> None:
    talk.say(3000)
    work = talk.take(Recognize)
    assert not talk.asks(Recognize)
    talk.session.done(RecognitionFailed(work, "ModelUnavailable", "busy"), talk.now)
    talk.say(32)
    assert talk.asks(Recognize)


def test_partial_readings_go_on_after_a_pause_in_which_one_was_abandoned(talk: Conversation) -> None:
    talk.say(512)
    assert talk.take(Recognize).is_partial
    talk.hush(192)
    talk.say(128)
    talk.assert_event(STARTED)
    talk.work.clear()
    talk.say(1024)
    talk.recognize_partly("What time")
    talk.assert_event(DELTA)


def test_a_partial_reading_that_comes_too_late_is_not_shown(talk: Conversation) -> None:
    talk.say(512)
    partial = talk.take(Recognize)
    talk.hush(192)
    talk.recognize("What time is it?")
    talk.skip()
    talk.late(partial, "What")
    talk.hush(960)
    talk.assert_no_event(DELTA)
    talk.late(partial, "What")
    talk.wait(10)
    talk.assert_no_event(DELTA)


# ── Manual mode ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_manual_turn_has_its_events_in_order(manual: Conversation) -> None:
    manual.say(640)
    manual.hush(2000)
    manual.assert_no_event(STARTED, STOPPED, COMMITTED)
    manual.tell("input_audio_buffer.commit")
    item_id = manual.assert_event(COMMITTED)["item_id"]
    assert manual.assert_event(CREATED)["item"]["id"] == item_id
    manual.assert_no_event()
    manual.recognize("What time is it?")
    manual.assert_event(COMPLETED, item_id=item_id)
    manual.assert_no_event()  # a commit alone starts nothing
    manual.tell("response.create")
    manual.assert_types("response.created")


def test_an_answer_asked_for_before_the_words_are_known_waits_for_them(manual: Conversation) -> None:
    manual.say(640)
    manual.tell("input_audio_buffer.commit")
    manual.tell("response.create")
    manual.assert_event("response.created")
    assert not manual.asks(Respond)
    manual.recognize("What time is it?")
    assert words_in(manual.take(Respond)) == ["What time is it?"]


def test_an_answer_fails_when_the_words_it_waits_for_do(manual: Conversation) -> None:
    manual.say(640)
    manual.tell("input_audio_buffer.commit")
    manual.tell("response.create")
    manual.fail_recognition()
    manual.assert_event(FAILED)
    response = manual.assert_event("response.done")["response"]
    assert (response["status"], response["status_details"]["error"]["code"]) == ("failed", "ModelUnavailable")


def test_an_empty_buffer_cannot_be_committed(manual: Conversation) -> None:
    manual.tell("input_audio_buffer.commit")
    manual.assert_error("input_audio_buffer_commit_empty")
    manual.say(640)
    manual.tell("input_audio_buffer.commit")
    manual.tell("input_audio_buffer.commit")
    manual.assert_error("input_audio_buffer_commit_empty")


def test_an_empty_buffer_cannot_be_committed_with_voice_detection_either(talk: Conversation) -> None:
    talk.tell("input_audio_buffer.commit")
    talk.assert_error("input_audio_buffer_commit_empty")
    talk.hush(640)
    talk.tell("input_audio_buffer.commit")
    talk.assert_no_event()


def test_a_cleared_buffer_is_empty(manual: Conversation) -> None:
    manual.say(640)
    manual.tell("input_audio_buffer.clear")
    manual.assert_types("input_audio_buffer.cleared")
    manual.tell("input_audio_buffer.commit")
    manual.assert_error("input_audio_buffer_commit_empty")


def test_silence_is_committed_without_asking_what_was_said(manual: Conversation) -> None:
    manual.hush(640)
    manual.tell("input_audio_buffer.commit")
    manual.assert_event(COMMITTED)
    manual.assert_event(COMPLETED, transcript="")
    assert not manual.asks(Recognize)


def test_the_buffer_is_full_after_two_minutes_and_says_so_once(manual: Conversation) -> None:
    manual.hush(MAX_UTTERANCE_MS)
    manual.assert_no_event()
    manual.hush(320)
    assert manual.assert_event("error")["error"]["code"] == "input_audio_buffer_full"
    manual.assert_no_event()
    manual.tell("input_audio_buffer.clear")
    manual.hush(MAX_UTTERANCE_MS + 320)
    assert manual.assert_event("error")["error"]["code"] == "input_audio_buffer_full"


def test_a_manual_turn_ends_only_when_the_client_says_so(manual: Conversation) -> None:
    manual.say(640)
    manual.wait(60_000)
    manual.assert_no_event(COMMITTED)


# ── From one mode to the other ───────────────────────────────────────────────────────────────────────────────────────


def test_speech_goes_on_when_the_client_takes_over(talk: Conversation) -> None:
    talk.say(640)
    talk.update(turn_detection=None)
    talk.hush(3000)
    item_id = talk.assert_event(STARTED)["item_id"]
    talk.assert_no_event(STOPPED, COMMITTED)
    talk.tell("input_audio_buffer.commit")
    talk.assert_event(STOPPED, item_id=item_id)
    talk.assert_event(COMMITTED, item_id=item_id)


def test_words_of_a_pause_do_not_stand_for_what_was_said_after_the_client_took_over(talk: Conversation) -> None:
    talk.say(320)
    talk.hush(192)
    talk.recognize("What")
    talk.update(turn_detection=None)
    talk.say(640)
    talk.tell("input_audio_buffer.commit")
    talk.assert_event(COMMITTED)
    talk.assert_no_event(COMPLETED)
    talk.recognize("What time is it?")
    talk.assert_event(COMPLETED, transcript="What time is it?")


def test_speech_goes_on_when_voice_detection_takes_over(manual: Conversation) -> None:
    manual.say(640)
    manual.update(turn_detection={"type": "server_vad"})
    item_id = manual.assert_event(STARTED, audio_start_ms=0)["item_id"]
    manual.say(320)
    manual.hush(960)
    manual.assert_event(COMMITTED, item_id=item_id)
    assert len(manual.recognize("What time is it?").audio) / 16 >= 960


def test_push_to_talk_released_in_either_order_keeps_the_words(manual: Conversation) -> None:
    manual.say(640)
    manual.update(turn_detection={"type": "server_vad"})
    manual.tell("input_audio_buffer.commit")
    manual.assert_event(COMMITTED)
    manual.recognize("Hello")
    manual.assert_event("response.created")


def test_silence_in_the_buffer_is_forgotten_when_voice_detection_takes_over(manual: Conversation) -> None:
    manual.hush(640)
    manual.update(turn_detection={"type": "server_vad"})
    manual.hush(2000)
    manual.assert_types("session.updated")


def test_a_change_of_other_settings_does_not_end_a_turn(talk: Conversation) -> None:
    talk.say(640)
    talk.update(voice="Cherry", turn_detection={"threshold": 0.4, "create_response": False})
    talk.hush(96)
    talk.assert_no_event(STOPPED)
    talk.hush(960)
    talk.assert_event(COMMITTED)
    talk.recognize("Hello")
    talk.assert_event(COMPLETED)
    talk.assert_no_event("response.created")


def test_a_change_of_other_settings_keeps_the_readings_of_the_manual_buffer(manual: Conversation) -> None:
    manual.say(512)
    partial = manual.take(Recognize)
    manual.update(voice="Cherry")
    manual.late(partial, "What")
    manual.say(32)
    manual.assert_event(DELTA)


def test_words_so_far_do_not_delay_what_may_be_the_last_words(talk: Conversation) -> None:
    talk.say(640)
    partial = talk.take(Recognize)
    assert partial.is_partial
    talk.hush(192)
    assert talk.take(Abandon).item_id == partial.item_id
    assert not talk.take(Recognize).is_partial


def test_the_turn_model_is_not_asked_again_before_it_taken_turn(talk: Conversation) -> None:
    talk.say(640)
    talk.hush(352)
    judge = talk.take(JudgeTurn)
    assert not talk.asks(JudgeTurn)
    talk.session.done(TurnJudged(judge.item_id, judge.version, 0.02), talk.now)
    talk.hush(160)
    assert talk.asks(JudgeTurn)


# ── Early readings ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def idle(talk: Conversation) -> Conversation:
    """A machine with a thread to spare."""
    talk.reads_early = True
    return talk


def early(talk: Conversation) -> Recognize:
    """The caller says something and falls silent for a moment; the early reading that is asked for."""
    talk.say(320)
    talk.hush(32)
    works = [work for work in talk.work if isinstance(work, Recognize) and work.is_early]
    (work,) = works
    talk.work.remove(work)
    return work


@pytest.mark.parametrize(("transcription", "captions"), [({}, 1), (None, 0)])
def test_only_a_lull_is_read_early_where_nobody_watches(
    idle: Conversation, transcription: dict[str, str] | None, captions: int
) -> None:
    idle.update(input_audio_transcription=transcription)
    idle.say(640)
    works = [work for work in idle.work if isinstance(work, Recognize)]
    assert [work.is_caption for work in works] == [True] * captions
    for work in works:
        idle.sure(work, "What time", confidence=0.9)
    idle.work.clear()
    idle.hush(64)
    lull = idle.take(Recognize)
    assert lull.is_early
    assert not lull.is_caption


def test_what_was_said_is_read_in_a_lull_and_not_again_in_the_pause(idle: Conversation) -> None:
    idle.sure(early(idle), "What time is it?", confidence=0.9)
    idle.assert_event(DELTA, text="", stash="What time is it?")
    idle.hush(128)
    idle.judge(0.9)
    idle.assert_event(COMPLETED, transcript="What time is it?")
    idle.assert_event("response.created")
    assert not idle.asks(Recognize)


@pytest.mark.parametrize(("faded", "is_over"), [((0.7,), True), ((0.8, 0.5), True), ((0.8, 0.6, 0.5), False)])
def test_speech_that_fades_is_read_and_judged_before_the_first_silence(
    idle: Conversation, faded: tuple[float, ...], is_over: bool
) -> None:
    idle.say(320)
    idle.hear(32, faded[0])
    work = idle.take(Recognize)
    assert work.is_early
    idle.sure(work, "What time is it?", confidence=0.9)
    for probability in faded[1:]:
        idle.hear(32, probability)
    idle.hush(32)
    idle.judge(0.96)
    assert idle.asks(Recognize) != is_over
    (idle.assert_event if is_over else idle.assert_no_event)(COMPLETED)


def test_a_judgement_of_fading_speech_that_is_not_certain_does_not_count(idle: Conversation) -> None:
    idle.say(320)
    idle.hear(32, 0.7)
    idle.sure(idle.take(Recognize), "What time is it?", confidence=0.9)
    idle.hush(32)
    idle.judge(0.01)
    idle.hush(96)
    idle.judge(0.9)
    idle.assert_event(COMPLETED)


def test_a_lull_that_a_busy_machine_did_not_judge_counts_for_nothing(idle: Conversation) -> None:
    idle.say(320)
    for _ in range(2):
        idle.hush(32)
        work = idle.take(JudgeTurn)
        assert work.is_early
        idle.session.done(TurnJudged(work.item_id, work.version, None), idle.now)
        idle.collect()
    idle.hush(32)
    assert not any(work.is_early for work in idle.work if isinstance(work, JudgeTurn))
    idle.judge(0.96)
    idle.sure(idle.take(Recognize), "What time is it?", confidence=0.9)
    idle.assert_event(COMPLETED)


def test_speech_that_flutters_is_read_four_times_a_second_at_most(idle: Conversation) -> None:
    idle.update(input_audio_transcription=None)
    idle.say(320)
    readings = 0
    for _ in range(32):
        idle.hear(32, 0.7)
        if idle.asks(Recognize):
            idle.sure(idle.take(Recognize), "What time", confidence=0.9)
            readings += 1
        idle.say(32)
    assert readings == 8


def test_an_early_reading_that_is_on_its_way_in_the_pause_is_waited_for(idle: Conversation) -> None:
    work = early(idle)
    idle.hush(128)
    idle.judge(0.9)
    assert not idle.asks(Recognize)
    assert not idle.asks(Abandon)
    idle.sure(work, "What time is it?", confidence=0.9)
    idle.assert_event(COMMITTED)
    idle.assert_event(COMPLETED, transcript="What time is it?")


@pytest.mark.parametrize("silence_ms", [0, 128])
def test_an_early_reading_that_is_unsure_is_made_again_in_the_pause(idle: Conversation, silence_ms: int) -> None:
    work = early(idle)
    idle.hush(silence_ms)
    idle.sure(work, "What dime?", confidence=0.6)
    idle.reads_early = False
    idle.hush(128 - silence_ms)
    idle.judge(0.9)
    idle.assert_no_event(COMPLETED)
    assert len(idle.recognize("What time is it?").audio) > len(work.audio)
    idle.assert_event(COMPLETED, transcript="What time is it?")


def test_an_early_reading_that_fails_while_it_is_waited_for_is_made_again(idle: Conversation) -> None:
    work = early(idle)
    idle.hush(128)
    idle.session.done(RecognitionFailed(work, "ModelUnavailable", "The engine is away."), idle.now)
    idle.collect()
    idle.recognize("What time is it?")
    idle.judge(0.9)
    idle.assert_event(COMPLETED, transcript="What time is it?")


@pytest.mark.parametrize("is_known", [False, True])
def test_an_early_reading_does_not_stand_for_what_was_said_after_it(idle: Conversation, is_known: bool) -> None:
    work = early(idle)
    idle.judge(0.1)
    if is_known:
        idle.sure(work, "What time", confidence=0.9)
    idle.say(320)
    idle.reads_early = False
    idle.hush(192)
    if not is_known:
        idle.late(work, "What time")
    idle.judge(0.9)
    idle.assert_no_event(COMPLETED)
    assert len(idle.recognize("What time is it?").audio) > len(work.audio)
    idle.assert_event(COMPLETED, transcript="What time is it?")


def test_a_turn_that_the_client_ends_in_a_lull_is_read_once(idle: Conversation) -> None:
    early(idle)
    idle.tell("input_audio_buffer.commit")
    assert not idle.take(Recognize).is_partial
    assert not idle.asks(Recognize)
