"""Audio goes out a little ahead of time, in pieces, and never faster than it is heard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.speaking.playout import LEAD_MS, PIECE_MS, Playout

PCM24 = AudioFormat("pcm16", 24_000)


def playout(pushed_ms: float = 0, now: float = 10.0) -> Playout:
    out = Playout(PCM24)
    if pushed_ms:
        out.push(bytes(PCM24.size(pushed_ms)), now)
    return out


def test_it_sends_the_next_piece_when_it_is_due() -> None:
    out = playout(2000)
    out.take(10.0)
    due = out.next_due()
    assert due is not None
    assert due == pytest.approx(10.0 + PIECE_MS / 1000, abs=0.001)
    assert out.take(due - 0.002) == b""
    assert PCM24.duration_ms(len(out.take(due))) == pytest.approx(PIECE_MS, abs=1)


def test_it_keeps_less_than_a_piece_until_more_comes() -> None:
    out = playout(60)
    assert out.take(10.0) == b""
    assert out.next_due() is None
    out.push(bytes(PCM24.size(60)), 10.5)
    assert PCM24.duration_ms(len(out.take(10.5))) == 120


def test_it_does_not_start_the_listeners_clock_before_anything_was_sent() -> None:
    out = playout(60)
    out.take(10.0)
    out.push(bytes(PCM24.size(60)), 12.0)
    out.take(12.0)
    assert out.heard_ms(12.05) == pytest.approx(50)


def test_it_sends_the_rest_when_no_more_will_come() -> None:
    out = playout(60)
    out.is_complete = True
    assert PCM24.duration_ms(len(out.take(10.0))) == 60
    assert out.is_empty
    assert out.next_due() is None


def test_it_knows_how_much_was_heard() -> None:
    out = playout(2000)
    assert out.heard_ms(11.0) == 0
    out.take(10.0)
    assert out.heard_ms(10.1) == pytest.approx(100)
    assert out.heard_ms(20.0) == out.sent_ms == pytest.approx(LEAD_MS, abs=1)


def test_it_counts_from_now_on_after_the_listener_ran_dry() -> None:
    out = playout(200)
    out.take(10.0)
    out.push(bytes(PCM24.size(1000)), 15.0)
    assert PCM24.duration_ms(len(out.take(15.0))) == pytest.approx(LEAD_MS, abs=1)
    assert out.heard_ms(15.05) == pytest.approx(250)


def test_it_counts_from_now_on_when_a_fragment_waited_while_the_listener_ran_dry() -> None:
    out = playout(250)
    out.take(10.0)
    out.push(bytes(PCM24.size(50)), 10.1)
    assert out.take(10.1) == b""
    out.push(bytes(PCM24.size(1000)), 15.0)
    assert PCM24.duration_ms(len(out.take(15.0))) == pytest.approx(LEAD_MS, abs=1)
    assert out.heard_ms(15.0) == pytest.approx(250)


def test_the_answer_before_is_part_of_the_lead() -> None:
    out = Playout(PCM24, not_before=10.25)
    out.push(bytes(PCM24.size(2000)), 10.0)
    assert out.take(10.0) == b""
    assert out.next_due() == pytest.approx(10.25 + (PIECE_MS - LEAD_MS) / 1000)
    assert PCM24.duration_ms(len(out.take(10.05))) == pytest.approx(PIECE_MS, abs=1)
    assert out.heard_ms(10.2) == 0
    assert out.heard_ms(10.3) == pytest.approx(50)
    assert out.heard_at == pytest.approx(10.35, abs=0.001)


def test_an_answer_before_that_was_heard_changes_nothing() -> None:
    out = Playout(PCM24, not_before=9.0)
    out.push(bytes(PCM24.size(2000)), 10.0)
    assert PCM24.duration_ms(len(out.take(10.0))) == pytest.approx(LEAD_MS, abs=1)
    assert out.heard_ms(10.1) == pytest.approx(100)


def test_it_forgets_what_was_not_sent() -> None:
    out = playout(2000)
    out.take(10.0)
    out.drop()
    assert out.is_empty
    assert out.pushed_ms == out.sent_ms


@given(
    pushes=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 20_000)), max_size=20),
    rate=st.sampled_from([8_000, 16_000, 24_000, 48_000]),
    start=st.floats(0, 1e6),
)
def test_it_sends_every_byte_in_order_and_never_more_than_the_lead_ahead(
    pushes: list[tuple[int, int]], rate: int, start: float
) -> None:
    audio_format = AudioFormat("pcm16", rate)
    out = Playout(audio_format)
    pushed, taken, now = bytearray(), bytearray(), start

    def run_until(end: float) -> None:
        nonlocal now
        while (due := out.next_due()) is not None and due <= end:
            now = max(now, due)
            piece = out.take(now)
            assert piece, "a timer that fires must make progress"
            taken.extend(piece)
            assert out.sent_ms - out.heard_ms(now) <= LEAD_MS + 1
        now = end

    for number, (wait_ms, size) in enumerate(pushes):
        run_until(now + wait_ms / 1000)
        piece = bytes([number]) * (size * 2)
        pushed.extend(piece)
        out.push(piece, now)
        taken.extend(out.take(now))
    out.is_complete = True
    taken.extend(out.take(now))
    run_until(now + 1000)
    assert taken == pushed
    assert out.is_empty
