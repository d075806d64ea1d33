"""Sample rates of speech, in each format that it is written in."""

from __future__ import annotations

import pytest

from voiceapp.engines.sound_files import SoundWriter
from voiceapp.errors import InvalidParameter
from voiceapp.realtime.inference.reading_settings import ReadingSettings
from voiceapp.realtime.inference.speech import FORMATS, MP3_RATES_HZ
from voiceapp.realtime.inference.synthesis import read_settings

NO_MP3_RATES_HZ = (8_001, 9_000, 47_999)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("rate_hz", [*MP3_RATES_HZ, *NO_MP3_RATES_HZ])
def test_a_rate_that_is_taken_can_be_written_in(kind: str, rate_hz: int) -> None:
    wanted = {"format": kind, "sample_rate": rate_hz}
    session = {"response_format": kind, "sample_rate": rate_hz}
    if kind == "mp3" and rate_hz in NO_MP3_RATES_HZ:
        with pytest.raises(InvalidParameter, match="one of 8000, 11025"):
            read_settings(wanted)
        with pytest.raises(InvalidParameter, match="one of 8000, 11025"):
            ReadingSettings().merged(session)
        return
    for speech in (read_settings(wanted), ReadingSettings().merged(session).speech):
        writer = SoundWriter(speech.format, speech.sample_rate_hz)
        assert writer.feed(bytes(2 * rate_hz)) + writer.finish()


def test_a_format_is_refused_for_the_rate_that_was_set_before() -> None:
    settings = ReadingSettings().merged({"sample_rate": 9_000})
    with pytest.raises(InvalidParameter) as refused:
        settings.merged({"response_format": "mp3"})
    assert refused.value.param == "session.sample_rate"
