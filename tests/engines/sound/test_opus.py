"""Opus straight from and to the engines' rates."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engines.tones import pitch_hz, tone
from voiceapp.engines.sound import opus


def packets(ms: int = 400) -> list[bytes]:
    encoder, pcm = opus.Encoder(), tone(ms / 1000, opus.ENCODED_RATE_HZ)
    return [encoder.encode(pcm[at : at + opus.FRAME_BYTES]) for at in range(0, len(pcm), opus.FRAME_BYTES)]


def test_a_tone_keeps_its_pitch_and_length_at_the_engines_rate() -> None:
    decoder = opus.Decoder()
    heard = b"".join(decoder.decode(packet) for packet in packets())
    assert len(heard) == opus.DECODED_RATE_HZ * 400 // 1000 * 2
    assert pitch_hz(heard, opus.DECODED_RATE_HZ) == pytest.approx(440, abs=4)


def test_a_lost_packet_is_continued_and_a_long_loss_fades() -> None:
    decoder = opus.Decoder()
    for packet in packets():
        decoder.decode(packet)
    concealed = [np.frombuffer(decoder.conceal(20, None), dtype="<i2") for _ in range(20)]
    assert all(len(sound) == 320 for sound in concealed)
    assert np.abs(concealed[0]).max() > 1000
    assert np.abs(concealed[-1]).max() < np.abs(concealed[0]).max() / 4


def test_the_copy_in_the_following_packet_is_used() -> None:
    decoder = opus.Decoder()
    *before, following = packets()
    for packet in before:
        decoder.decode(packet)
    assert len(decoder.conceal(20, following)) == 640


@pytest.mark.parametrize("garbage", [b"\xff", b"\x03", b"\x03\xff"])
def test_what_is_no_packet_is_refused_and_the_decoder_lives_on(garbage: bytes) -> None:
    decoder = opus.Decoder()
    with pytest.raises(opus.OpusError):
        decoder.decode(garbage)
    assert len(decoder.decode(packets()[0])) == 640
