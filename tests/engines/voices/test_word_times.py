"""Words are where they sound, and where they are written."""

from __future__ import annotations

from contextlib import aclosing

import numpy as np
import pytest

from voiceapp.engines.voices.synthesizer import EmbeddedSpeech
from voiceapp.engines.voices.word_times import SpokenWord, TimedSpeech, placed

RATE_HZ = 24_000
WINDOW_S = 0.005
LONGEST_ERROR_S = 0.06
"""Half of the words at pauses are nearer than 15 ms."""
COUNTED = "Monday, coffee, Kingston, garden, people, bottle."


async def spoken(text: str, voice: str) -> tuple[np.ndarray, list[SpokenWord]]:
    """Sound and its words, in seconds from its beginning."""
    speech, pcm, words = EmbeddedSpeech(), b"", []
    async with aclosing(speech.speak(text, voice=voice, sample_rate_hz=RATE_HZ)) as sound:
        async for chunk in sound:
            if isinstance(chunk, TimedSpeech):
                at = len(pcm) / 2 / RATE_HZ
                words += [SpokenWord(text, at + begin, at + end) for text, begin, end in chunk.words]
            pcm += chunk
    await speech.close()
    return np.frombuffer(pcm, "<i2") / 32768, words


@pytest.mark.parametrize("voice", ["woman", "man"])
async def test_a_word_begins_where_the_silence_before_it_ends(voice: str) -> None:
    sound, words = await spoken(COUNTED, voice)
    window = int(WINDOW_S * RATE_HZ)
    whole = len(sound) // window * window
    levels = np.sqrt(np.square(sound[:whole].reshape(-1, window)).mean(axis=1))
    loud = (levels > 0.04 * np.quantile(levels, 0.95)).astype(int)
    begins = np.flatnonzero(np.diff(loud) == 1) * WINDOW_S
    assert [text for text, _, _ in words] == COUNTED.split()
    errors = [np.abs(begins - word.begin).min() for word in words[1:]]
    assert np.median(errors) < LONGEST_ERROR_S / 2
    assert sorted(errors)[-2] < LONGEST_ERROR_S  # what is quiet within a word may be nearer than what it begins with
    assert all(word.begin < word.end for word in words)


async def test_a_voice_that_does_not_know_them_says_nothing_of_them() -> None:
    sound, words = await spoken("Hello there.", "en-us")
    assert len(sound)
    assert words == []


def words_in(text: str, *said: tuple[str, float, float]) -> list[tuple[str, float, float]]:
    begin = 0
    found: list[tuple[str, float, float]] = []
    for characters, begin_ms, end_ms in placed(text, 0, [SpokenWord(*word) for word in said]):
        found.append((text[begin:characters].strip(), round(begin_ms), round(end_ms)))
        begin = characters
    return found


def test_what_is_written_otherwise_than_it_is_read_shares_the_time_between() -> None:
    said = (("It", 0, 0.1), ("costs", 0.1, 0.4), ("five", 0.5, 0.7), ("dollars", 0.7, 1.1), ("now.", 1.2, 1.5))
    assert words_in("It costs **$5** now.", *said) == [
        ("It", 0, 100), ("costs", 100, 400), ("**$5**", 500, 1100), ("now.", 1200, 1500),
    ]  # fmt: skip
    assert words_in("It costs $5", *said[:4])[-1] == ("$5", 500, 1100)
    assert words_in("$5 now", *said[2:]) == [("$5", 500, 1100), ("now", 1200, 1500)]
    assert words_in("It — costs", *said[:2]) == [("It", 0, 100), ("—", 100, 100), ("costs", 100, 400)]


def test_words_of_the_next_piece_wait_for_it() -> None:
    text = "It costs $5, and that is all that you will ever have to pay."
    said = (("It", 0, 0.1), ("costs", 0.1, 0.4), ("five", 0.5, 0.7), ("dollars", 0.7, 1.1))
    assert [word for word, _, _ in words_in(text, *said)] == ["It", "costs"]
    following = [SpokenWord("and", 0.1, 0.2), SpokenWord("that", 0.2, 0.3)]
    assert [text[: word.characters] for word in placed(text, 8, following)] == [
        "It costs $5,", "It costs $5, and", "It costs $5, and that",
    ]  # fmt: skip


def test_nothing_said_places_nothing() -> None:
    assert words_in("Hello there.") == []
    assert words_in("", ("Hello", 0, 1)) == []
    assert words_in("Hello there.", ("—", 0, 1)) == []
