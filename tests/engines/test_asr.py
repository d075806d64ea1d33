from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

from tests.engines.speech import (
    SENTENCES,
    load,
    noise,
    recordings,
    silence,
    spoken,
    word_errors,
    words,
)
from voiceapp.engines.embedded.asr import MAX_SEGMENT_SAMPLES, Moonshine, segments, without_repeats
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.engines.models.lanes import LaneFull, lanes
from voiceapp.errors import EngineRefused


async def synthetic(espeak: Espeak) -> list[tuple[Samples, str]]:
    return [(await spoken(espeak, sentence), sentence) for sentence in SENTENCES]


async def test_it_understands_speech(moonshine: Moonshine, espeak: Espeak) -> None:
    """Recorded people at most 5 % wrong words, where recordings are at hand; our own robotic voice at most 12 %."""
    corpora = [(await synthetic(espeak), 0.12)]
    if clips := [(load(file), reference) for file, reference in recordings()]:
        corpora.append((clips, 0.05))
    for corpus, limit in corpora:
        errors = total = 0
        for audio, reference in corpus:
            heard = await moonshine.recognize(audio)
            errors += word_errors(reference, heard.text)
            total += len(words(reference))
        assert errors / total <= limit


async def test_it_is_sure_of_clear_speech(moonshine: Moonshine, espeak: Espeak) -> None:
    heard = await moonshine.recognize(await spoken(espeak, SENTENCES[0]))
    assert 0.7 < heard.confidence <= 1
    assert heard.language == "en"


@pytest.mark.parametrize("seconds", [0.5, 1, 3])
@pytest.mark.parametrize("loudness", [0, 0.0005, 0.003])
async def test_it_hears_no_words_where_nobody_speaks(moonshine: Moonshine, loudness: float, seconds: float) -> None:
    assert (await moonshine.recognize(noise(seconds, loudness))).text == ""


@pytest.mark.parametrize("loudness", [0.05, 0.2])
async def test_it_hears_no_words_in_a_long_noise(moonshine: Moonshine, loudness: float) -> None:
    assert (await moonshine.recognize(noise(3, loudness))).text == ""


@pytest.mark.parametrize("seconds", [0, 0.01, 0.09, 0.1, 0.3])
async def test_it_takes_audio_of_any_length(moonshine: Moonshine, seconds: float) -> None:
    assert (await moonshine.recognize(silence(seconds))).text == ""


async def test_it_understands_minutes_without_looping(moonshine: Moonshine, espeak: Espeak) -> None:
    text = " ".join(SENTENCES * 4)
    audio = await spoken(espeak, text)
    assert len(audio) > 2 * MAX_SEGMENT_SAMPLES
    heard = await moonshine.recognize(audio)
    assert word_errors(text, heard.text) / len(words(text)) <= 0.15


@pytest.mark.parametrize("language", [None, "en", "en-US", "EN"])
async def test_it_accepts_english(moonshine: Moonshine, language: str | None) -> None:
    await moonshine.recognize(silence(1), language=language)


async def test_it_refuses_other_languages_instead_of_guessing(moonshine: Moonshine) -> None:
    with pytest.raises(EngineRefused, match="zh"):
        await moonshine.recognize(silence(1), language="zh")


async def test_a_caller_who_leaves_stops_the_work(moonshine: Moonshine, espeak: Espeak) -> None:
    await moonshine.warm()
    audio = np.concatenate([await spoken(espeak, " ".join(SENTENCES * 2))] * 4)
    began = time.process_time()  # work, not waiting: how busy the machine is says nothing
    await moonshine.recognize(audio)
    whole_s = time.process_time() - began
    task = asyncio.create_task(moonshine.recognize(audio))
    await asyncio.sleep(0.05)
    task.cancel()
    began = time.process_time()
    with pytest.raises(asyncio.CancelledError):
        await task
    lane = lanes().voice
    all_free = threading.Barrier(lane.threads)
    await asyncio.gather(*[lane.run(all_free.wait) for _ in range(lane.threads)])
    assert time.process_time() - began < whole_s / 3


async def test_partial_transcripts_are_left_out_when_recognition_is_busy(moonshine: Moonshine, espeak: Espeak) -> None:
    audio = await spoken(espeak, " ".join(SENTENCES))
    final = [asyncio.create_task(moonshine.recognize(audio)) for _ in range(lanes().voice.threads)]
    await asyncio.sleep(0)
    with pytest.raises(LaneFull):
        await moonshine.recognize(audio, urgent=False)
    assert all(heard.text for heard in await asyncio.gather(*final))
    assert (await moonshine.recognize(audio, urgent=False)).text == final[0].result().text


def test_long_audio_is_cut_where_it_is_quiet() -> None:
    audio = noise(50, 0.1)
    audio[int(13.0 * ENGINE_SAMPLE_RATE_HZ) : int(13.3 * ENGINE_SAMPLE_RATE_HZ)] = 0
    pieces = list(segments(audio))
    assert np.array_equal(np.concatenate(pieces), audio)
    assert max(map(len, pieces)) <= MAX_SEGMENT_SAMPLES
    assert 13.0 <= len(pieces[0]) / ENGINE_SAMPLE_RATE_HZ <= 13.3


@pytest.mark.parametrize(
    ("heard", "kept"),
    [
        ("Turn on the lamp.", "Turn on the lamp."),
        ("No, no, no.", "No, no, no."),
        ("That is very, very good.", "That is very, very good."),
        ("nice, nice, nice, nice, nice", "nice"),
        ("I think so. I think so. I think so. I think so.", "I think so."),
        ("It was, it was a dog.", "It was, it was a dog."),
        ("", ""),
    ],
)
def test_loops_are_said_once(heard: str, kept: str) -> None:
    assert without_repeats(heard) == kept
