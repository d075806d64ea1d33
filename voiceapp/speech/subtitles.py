"""Transcripts in the forms that players and OpenAI's clients read. Times are those of stretches of speech, as voice
detection heard them; times of single words are not known and never made up."""

from __future__ import annotations

import math
import zlib
from html import escape
from typing import Any

from voiceapp.speech.transcription import Segment, Transcript

MIN_CONFIDENCE = 1e-6


def srt(transcript: Transcript) -> str:
    cues = [
        f"{number}\n{_clock(segment.start_s, ',')} --> {_clock(segment.end_s, ',')}\n{segment.text}\n"
        for number, segment in enumerate(transcript.segments, start=1)
    ]
    return "\n".join(cues)


def vtt(transcript: Transcript) -> str:
    # WebVTT reads markup in its cues.
    cues = [
        f"{_clock(segment.start_s, '.')} --> {_clock(segment.end_s, '.')}\n{escape(segment.text, quote=False)}\n"
        for segment in transcript.segments
    ]
    return "\n".join(["WEBVTT\n", *cues])


def brief(transcript: Transcript) -> dict[str, Any]:
    return {
        "text": transcript.text,
        "usage": {"type": "duration", "seconds": math.ceil(transcript.duration_s)},
    }


def verbose(transcript: Transcript) -> dict[str, Any]:
    return {
        "task": "translate" if transcript.is_translated else "transcribe",
        "language": transcript.language,
        "duration": round(transcript.duration_s, 3),
        "segments": [_verbose(number, segment) for number, segment in enumerate(transcript.segments)],
        **brief(transcript),
    }


def _verbose(number: int, segment: Segment) -> dict[str, Any]:
    written = segment.text.encode()
    return {
        "id": number,
        "seek": round(segment.start_s * 100),
        "start": round(segment.start_s, 3),
        "end": round(segment.end_s, 3),
        "text": segment.text,
        "tokens": [],
        "temperature": 0.0,
        "avg_logprob": round(math.log(max(segment.confidence, MIN_CONFIDENCE)), 4),
        "compression_ratio": round(len(written) / len(zlib.compress(written)), 3),
        "no_speech_prob": 0.0,  # where voice detection hears no speech, there is no segment
    }


def _clock(seconds: float, point: str) -> str:
    """`00:01:02,500`."""
    milliseconds = round(seconds * 1000)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{milliseconds // 1000:02d}{point}{milliseconds % 1000:03d}"
