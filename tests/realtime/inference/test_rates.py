"""Sample rates of speech, in each format that it is written in."""

from __future__ import annotations

import pytest

from voiceapp.engines.sound.sound_files import SoundWriter
from voiceapp.errors import InvalidParameter
from voiceapp.protocol.read_aloud import FORMATS, MP3_RATES_HZ, ReadAloudSettings
from voiceapp.realtime.inference.synthesis import settings_of

NO_MP3_RATES_HZ = (8_001, 9_000, 47_999)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("rate_hz", [*MP3_RATES_HZ, *NO_MP3_RATES_HZ])
def test_a_rate_that_is_taken_can_be_written_in(kind: str, rate_hz: int) -> None:
    wanted = {"format": kind, "sample_rate": rate_hz}
    session = {"response_format": kind, "sample_rate": rate_hz}
    if kind == "mp3" and rate_hz in NO_MP3_RATES_HZ:
        with pytest.raises(InvalidParameter, match="one of 8000, 11025"):
            settings_of(wanted)
        with pytest.raises(InvalidParameter, match="one of 8000, 11025"):
            ReadAloudSettings().merged(session)
        return
    for speech in (settings_of(wanted)["speech"], ReadAloudSettings().merged(session).speech):
        writer = SoundWriter(speech.format, speech.sample_rate_hz)
        assert writer.feed(bytes(2 * rate_hz)) + writer.finish()


def test_a_format_is_refused_for_the_rate_that_was_set_before() -> None:
    settings = ReadAloudSettings().merged({"sample_rate": 9_000})
    with pytest.raises(InvalidParameter) as refused:
        settings.merged({"response_format": "mp3"})
    assert refused.value.param == "session.sample_rate"


def test_what_the_library_sends_for_its_defaults_is_taken() -> None:
    speech = settings_of({"format": "Default", "sample_rate": 0, "voice": None, "volume": 0})["speech"]
    assert (speech.format, speech.sample_rate_hz, speech.voice, speech.gain) == ("mp3", 22_050, "", 0.0)
