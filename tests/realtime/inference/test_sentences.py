"""Sentences in the order in which they were spoken."""

from __future__ import annotations

from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.inference.sentences import Sentence, Sentences

HEARD_MS = 9_000


def told(*events: ev.ServerEvent) -> list[Sentence]:
    sentences = Sentences()
    return [sentence for event in events for sentence in sentences.take(event, HEARD_MS)]


def spoken(item_id: str, begin_ms: int, end_ms: int) -> list[ev.ServerEvent]:
    return [
        ev.SpeechStarted(item_id=item_id, audio_start_ms=begin_ms),
        ev.SpeechStopped(item_id=item_id, audio_end_ms=end_ms, reason=None),
        ev.AudioCommitted(item_id=item_id, previous_item_id=None),
    ]


def so_far(item_id: str, text: str) -> ev.ServerEvent:
    return ev.TranscriptionDelta(item_id=item_id, text=text, stash="")


def whole(item_id: str, text: str) -> ev.ServerEvent:
    return ev.TranscriptionCompleted(item_id=item_id, transcript=text)


def test_a_later_sentence_whose_words_are_known_first_waits() -> None:
    first, second = Sentence(1, 200, "One.", 1_900), Sentence(2, 2_500, "Two.", 4_000)
    turns = [*spoken("a", 200, 1_900), *spoken("b", 2_500, 4_000)]

    assert told(*turns, so_far("b", "Tw"), whole("b", "Two.")) == []
    assert told(*turns, so_far("b", "Tw"), whole("b", "Two."), whole("a", "One.")) == [first, second]


def test_the_words_so_far_have_a_beginning_and_no_end() -> None:
    begun = ev.SpeechStarted(item_id="a", audio_start_ms=200)
    assert told(begun, so_far("a", "On")) == [Sentence(1, 200, "On", None)]


def test_what_was_no_speech_holds_up_nothing() -> None:
    noise = [
        ev.SpeechStarted(item_id="a", audio_start_ms=200),
        ev.SpeechStopped(item_id="a", audio_end_ms=400, reason="turn_invalid"),
    ]
    later = [*spoken("b", 2_500, 4_000), whole("b", "Two.")]
    assert told(*noise, *later) == [Sentence(1, 2_500, "Two.", 4_000)]


def test_a_turn_without_words_takes_no_number() -> None:
    silent = [*spoken("a", 200, 400), whole("a", "")]
    later = [*spoken("b", 2_500, 4_000), whole("b", "Two.")]
    assert told(*silent, *later) == [Sentence(1, 2_500, "Two.", 4_000)]


def test_one_whose_beginning_nobody_noticed_begins_where_the_last_one_ended() -> None:
    first = [*spoken("a", 200, 1_900), whole("a", "One.")]
    last = [ev.AudioCommitted(item_id="b", previous_item_id="a"), whole("b", "Two.")]
    assert told(*first, *last) == [Sentence(1, 200, "One.", 1_900), Sentence(2, 1_900, "Two.", HEARD_MS)]
