"""Replies on a media track are held where it takes long to know what a sound is, and no word of them is lost."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from tests.protocol.conversations import SILENCE, SPEECH, Conversation
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.speaking.playout import Playout
from voiceapp.protocol.states import EchoRisk
from voiceapp.protocol.work import ReplyAudio, ReplyEnded, ReplySpoken, ReplyText

DUCKED, RESTORED, DELTA = "response.audio.ducked", "response.audio.restored", "response.audio.delta"
STARTED = "input_audio_buffer.speech_started"
RATE_HZ = 24_000
WORD_MS, PAUSE_MS = 400, 100
WORDS = 10


def words() -> bytes:
    """Words of 400 ms with pauses of 100 ms, each louder than the one before, so that each is known by its sound."""
    pause = np.zeros(RATE_HZ * PAUSE_MS // 1000)
    tone = np.sin(np.arange(RATE_HZ * WORD_MS // 1000) * 0.2)
    parts = [np.concatenate((tone * (2000 + 500 * number), pause)) for number in range(WORDS)]
    return np.concatenate(parts).astype("<i2").tobytes()


def talking(*, has_track: bool = True) -> Conversation:
    """The assistant has been speaking for 1.5 seconds of 5."""
    talk = Conversation(interruptions="duck", has_track=has_track)
    response_id = talk.ask()
    text = "one two three four five six seven eight nine ten "
    for result in (
        ReplyText(response_id, text),
        ReplyAudio(response_id, words()),
        ReplySpoken(response_id, len(text)),
        ReplyEnded(response_id, "stop"),
    ):
        talk.session.done(result, talk.now)
        talk.collect()
    talk.wait(1500)
    talk.skip()
    return talk


def doubt(talk: Conversation, ms: float = 900) -> None:
    """A sound that shows attention, so drawn out that it is known for it after so long."""
    talk.hear(224, SPEECH)
    talk.recognize_partly("Mm-hmm")
    talk.hear(ms - 224, SPEECH)


def audio_since(talk: Conversation, event: int) -> bytes:
    return b"".join(base64.b64decode(each["delta"]) for each in talk.events[event:] if each["type"] == DELTA)


def test_a_reply_that_was_ducked_for_long_goes_on_from_the_beginning_of_a_word() -> None:
    talk = talking()
    doubt(talk, 860)
    assert len(talk.cuts) == 1
    held = len(talk.events)
    talk.hush(192)
    assert not audio_since(talk, held)
    talk.recognize("Mm-hmm.")
    restored = talk.assert_event(RESTORED)
    assert restored["audio_start_ms"] in range(1480, 1520)
    assert restored["item_id"] == talk.of(DELTA)[0]["item_id"]
    talk.hush(6000)
    start = RATE_HZ * 2 * restored["audio_start_ms"] // 1000
    assert audio_since(talk, held)[: len(words()) - start - 400] in words()[start - 200 :]
    assert talk.assert_event("response.done")["response"]["status"] == "completed"


def test_what_was_heard_is_counted_from_where_the_reply_went_on() -> None:
    talk = talking()
    doubt(talk, 860)
    talk.hush(192)
    talk.recognize("Mm-hmm.")
    start_ms = talk.assert_event(RESTORED)["audio_start_ms"]
    talk.wait(500)
    talk.tell("response.cancel")
    assert talk.assert_event("conversation.item.truncated")["audio_end_ms"] == pytest.approx(start_ms + 500, abs=40)


def test_an_interruption_of_a_held_reply_leaves_what_was_heard_before() -> None:
    talk = talking()
    doubt(talk, 860)
    held_at = talk.now
    talk.hush(192)
    talk.recognize("Mm-hmm, but why?")
    talk.assert_event(STARTED)
    heard_ms = talk.assert_event("conversation.item.truncated")["audio_end_ms"]
    assert heard_ms < 2300
    assert talk.now - held_at > 0.15


def test_a_reply_that_was_ducked_for_a_moment_goes_on_as_it_was() -> None:
    talk = talking()
    talk.hear(320, SPEECH)
    talk.hush(192)
    talk.recognize("Yes.")
    assert "audio_start_ms" not in talk.assert_event(RESTORED)
    talk.hush(6000)
    assert not talk.cuts
    response_id = talk.of("response.created")[-1]["response"]["id"]
    assert talk.audio_ms(response_id) == WORDS * (WORD_MS + PAUSE_MS)


def test_what_may_be_an_echo_does_not_hold_a_reply() -> None:
    talk = talking()
    talk.hear(480, SPEECH, EchoRisk.LIKELY)
    talk.hear(480, SILENCE, EchoRisk.LIKELY)
    talk.assert_event(DUCKED)
    assert not talk.cuts
    talk.recognize("Mm-hmm.")
    assert "audio_start_ms" not in talk.assert_event(RESTORED)


def test_a_client_that_plays_by_itself_is_told_where_the_word_begins() -> None:
    talk = talking(has_track=False)
    doubt(talk, 860)
    talk.hush(192)
    talk.recognize("Mm-hmm.")
    assert talk.assert_event(RESTORED)["audio_start_ms"] in range(1480, 1520)
    talk.hush(6000)
    assert not talk.cuts
    response_id = talk.of("response.created")[-1]["response"]["id"]
    assert talk.audio_ms(response_id) == WORDS * (WORD_MS + PAUSE_MS)


def test_a_held_reply_that_may_no_longer_be_interrupted_goes_on() -> None:
    talk = talking()
    doubt(talk, 860)
    talk.update(turn_detection=None)
    talk.assert_event(STARTED)
    assert talk.assert_event(RESTORED)["audio_start_ms"] is not None
    talk.wait(6000)
    assert talk.assert_event("response.done")["response"]["status"] == "completed"


@pytest.mark.parametrize("from_ms", [150.0, 600.0, 1240.0])
def test_playout_goes_on_within_what_it_has_kept(from_ms: float) -> None:
    out = Playout(AudioFormat("pcm16", RATE_HZ))
    out.push(words(), 0.0)
    now = 0.0
    while now < 1.3:
        out.take(now)
        now += 0.02
    out.hold(now)
    assert out.next_due() is None
    assert out.take(now + 1) == b""
    heard_ms = out.heard_ms(now + 1)
    assert heard_ms == pytest.approx(1300, abs=30)
    start_ms = out.go_on(from_ms, now + 2)
    assert start_ms <= from_ms
    assert min(start_ms % (WORD_MS + PAUSE_MS), WORD_MS + PAUSE_MS - start_ms % (WORD_MS + PAUSE_MS)) <= 20
    assert out.take(now + 2)[:2000] == words()[round(start_ms * RATE_HZ / 1000) * 2 :][:2000]
    assert out.pushed_ms == WORDS * (WORD_MS + PAUSE_MS)
