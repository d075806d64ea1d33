"""Transcripts in the forms of players."""

from __future__ import annotations

from openai.types.audio import TranscriptionSegment

from voiceapp.speech import subtitles
from voiceapp.speech.transcription import Segment, Transcript

TRANSCRIPT = Transcript(
    3725.5,
    "en",
    (Segment(0.5, 2.0, "Hello <there>.", 0.9, of_s=3725.5), Segment(3661.25, 3725.0004, "A & B.", 0.0, of_s=3725.5)),
)


def test_srt() -> None:
    assert subtitles.srt(TRANSCRIPT) == (
        "1\n00:00:00,500 --> 00:00:02,000\nHello <there>.\n\n2\n01:01:01,250 --> 01:02:05,000\nA & B.\n"
    )


def test_vtt() -> None:
    assert subtitles.vtt(TRANSCRIPT) == (
        "WEBVTT\n\n00:00:00.500 --> 00:00:02.000\nHello &lt;there&gt;.\n\n01:01:01.250 --> 01:02:05.000\nA &amp; B.\n"
    )


def test_of_silence_there_are_no_cues() -> None:
    silence = Transcript(1.0, "en", ())
    assert subtitles.srt(silence) == ""
    assert subtitles.vtt(silence) == "WEBVTT\n"
    assert subtitles.brief(silence) == {"text": "", "usage": {"type": "duration", "seconds": 1}}


def test_verbose() -> None:
    told = subtitles.verbose(TRANSCRIPT)
    assert told["text"] == "Hello <there>. A & B."
    assert told["duration"] == 3725.5
    assert [(segment["start"], segment["end"]) for segment in told["segments"]] == [(0.5, 2.0), (3661.25, 3725.0)]
    assert told["segments"][0]["avg_logprob"] == -0.1054


def test_segments_have_every_field_that_openais_library_knows() -> None:
    """Another library refuses a transcript in which one of them is missing."""
    for segment in subtitles.verbose(TRANSCRIPT)["segments"]:
        assert segment.keys() == TranscriptionSegment.model_fields.keys()
        TranscriptionSegment.model_validate(segment, strict=True)
