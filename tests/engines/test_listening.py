"""Short requests and noises, heard by a session with the real engines."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engines.listening import listen, of, transcripts
from tests.engines.noises import noises
from tests.engines.speech import SENTENCES, load, recordings, spoken, words
from voiceapp.engines.espeak.voice import VOICES, Espeak
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples

STOPPED = "input_audio_buffer.speech_stopped"

pytestmark = pytest.mark.usefixtures("models")


async def test_short_requests_find_words_in_every_english_voice_and_pace(espeak: Espeak) -> None:
    """ "Spell necessary" begins with a sound that voice detection does not hear; 3 of these 15 came out empty once."""
    understood = [
        any(transcripts(await listen(await spoken(espeak, "Spell necessary", voice=voice.name, rate=rate))))
        for voice in VOICES
        if voice.language == "en"
        for rate in (0.8, 1.0, 1.3)
    ]
    assert understood.count(False) <= 1


@pytest.mark.parametrize(("voice", "rate"), [("en-gb-x-rp", 1.0), ("en-gb-x-rp", 1.3), ("en-gb-scotland", 1.6)])
async def test_a_quick_word_is_a_turn(espeak: Espeak, voice: str, rate: float) -> None:
    events = await listen(await spoken(espeak, "Stop.", voice=voice, rate=rate))
    assert [words(transcript) for transcript in transcripts(events)] == [["stop"]]


async def test_recorded_sentences_are_all_understood() -> None:
    for file, _ in recordings():
        assert any(transcripts(await listen(load(file)))), file.name


async def test_noises_are_seldom_taken_for_words_and_otherwise_not_replied_to() -> None:
    """Of 50 noises; coughs with a voice in them are the ones that sound like a word, such as "Uh"."""
    taken = []
    for name, noise in noises(50):
        events = await listen(noise)
        understood = [*filter(None, transcripts(events))]
        taken += [name] * bool(understood)
        assert len(of(events, "response.created")) == len(understood), name
    assert len(taken) <= 3
    assert all(name.startswith("voiced_cough") for name in taken)


async def test_speech_that_nobody_could_understand_is_replied_to(espeak: Espeak) -> None:
    """Muffled: whatever becomes of the words, each turn gets its response."""
    in_vain = 0
    for sentence in SENTENCES:
        events = await listen(muffled(await spoken(espeak, sentence)))
        heard = transcripts(events)
        assert heard
        assert len(of(events, "response.created")) == len(heard)
        in_vain += heard.count("")
    assert in_vain


def muffled(sound: Samples) -> Samples:
    """Of the sound only what a wall lets through."""
    spectrum = np.fft.rfft(sound)
    spectrum[int(len(spectrum) * 450 / (ENGINE_SAMPLE_RATE_HZ / 2)) :] = 0
    low = np.fft.irfft(spectrum, len(sound))
    return (low * 0.5 / np.abs(low).max()).astype(np.float32)
