"""How a task of recognition is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from voiceapp.errors import InvalidParameter
from voiceapp.protocol import events as ev
from voiceapp.realtime.inference.line import Line
from voiceapp.realtime.inference.recognition import RecognitionTransport, settings_of


@pytest.mark.parametrize(
    ("languages", "language"),
    [(("de", "en"), "en-GB"), ((), "fi"), (("de", "fi"), "fi")],
    ids=["the first that is known", "any, where none are named", "in the order of the hints"],
)
def test_the_hints_choose_a_language(languages: tuple[str, ...], language: str) -> None:
    hints = ["fi", "en-GB", "de"]
    opening, _, _ = settings_of({"language_hints": hints}, languages)
    assert opening["input_audio_transcription"] == {"language": language}


def test_languages_that_nobody_knows_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="de, en only"):
        settings_of({"language_hints": ["zh"]}, ("de", "en"))


async def test_a_sentence_whose_beginning_nobody_noticed_begins_where_the_last_one_ended() -> None:
    said: list[Any] = []

    async def send(message: Mapping[str, Any]) -> None:
        said.append(json.loads(message["text"])["payload"]["output"]["sentence"])

    task = RecognitionTransport("task", Line(send).say, "pcm", 16_000)
    await task.hear(bytes(4 * 32_000))
    for _ in range(8):
        await task.receive()  # half a second each
    await task.send(ev.SpeechStarted(item_id="first", audio_start_ms=200))
    await task.send(ev.SpeechStopped(item_id="first", audio_end_ms=1_900))
    for item_id in ("first", "second"):
        await task.send(ev.TranscriptionCompleted(item_id=item_id, transcript="Hello."))

    assert [(one["begin_time"], one["end_time"]) for one in said] == [(200, 1_900), (1_900, 4_000)]
