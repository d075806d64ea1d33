"""The telephone's sound, against the codec of FFmpeg."""

from __future__ import annotations

import base64

import av
import numpy as np
import pytest

from tests.protocol.conversations import Conversation
from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import AudioFormat, read_format
from voiceapp.protocol.g711 import LAWS, decoded, encoded

CODECS = {"g711_ulaw": "pcm_mulaw", "g711_alaw": "pcm_alaw"}
RAMP = np.arange(-32768, 32768, 7, dtype="<i2").tobytes()


@pytest.mark.parametrize("name", CODECS)
def test_every_code_means_what_it_means_elsewhere(name: str) -> None:
    codes = bytes(range(256))
    codec = av.CodecContext.create(CODECS[name], "r")
    codec.sample_rate, codec.layout = 8_000, "mono"
    (frame,) = codec.decode(av.Packet(codes))
    assert decoded(codes, name) == frame.to_ndarray().astype("<i2").tobytes()


@pytest.mark.parametrize("name", LAWS)
def test_each_sample_becomes_the_nearest_value(name: str) -> None:
    there = np.frombuffer(RAMP, dtype="<i2").astype(np.int32)
    back = np.frombuffer(decoded(encoded(RAMP, name), name), dtype="<i2").astype(np.int32)
    clipped = np.clip(there, back.min(), back.max())
    assert np.all(np.abs(back - clipped) <= np.maximum(16, np.abs(clipped) / 20))
    assert encoded(decoded(bytes(range(256)), "pcma"), "pcma") == bytes(range(256))


@pytest.mark.parametrize("value", ["g711_ulaw", {"type": "audio/pcmu"}, {"type": "g711_alaw", "sample_rate": 8_000}])
def test_it_has_the_telephone_s_rate(value: object) -> None:
    assert read_format(value, param="input_audio_format", default_rate_hz=24_000).sample_rate_hz == 8_000


def test_it_has_no_other_rate() -> None:
    with pytest.raises(InvalidParameter, match="8000"):
        read_format({"type": "g711_ulaw", "sample_rate": 16_000}, param="format", default_rate_hz=24_000)


def test_a_reply_goes_out_in_it_at_its_pace() -> None:
    talk = Conversation(output_format=AudioFormat("g711_ulaw", 8_000))
    talk.answer(talk.ask(), "It is noon.", ms=1000)
    talk.wait(1500)
    sent = b"".join(base64.b64decode(event["delta"]) for event in talk.of("response.audio.delta"))
    assert decoded(sent, "g711_ulaw") == bytes(16_000)
    assert len(sent) == 8_000
