"""Kokoro is understood in its languages, by Whisper; what it cannot say is said by espeak-ng."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from django.conf import settings as installed
from pytest_django.fixtures import Settings

from tests.engines.speech import pcm, spoken, words
from tests.thorough import usually
from voiceapp.catalogue.defaults import whisper_folder
from voiceapp.catalogue.languages import KOKORO_LANGUAGES
from voiceapp.engines.embedded.whisper import WhisperModel
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ
from voiceapp.engines.kokoro import voices as kokoro
from voiceapp.engines.voices.neural import TextUnreadable
from voiceapp.engines.voices.synthesizer import EmbeddedSpeech

SAID = {
    "ef_dora": ("es", "El museo abre por la mañana y cierra por la tarde."),
    "ff_siwis": ("fr", "Le musée ouvre le matin et ferme le soir."),
    "im_nicola": ("it", "Il museo apre la mattina e chiude la sera."),
    "pf_dora": ("pt", "O museu abre de manhã e fecha à tarde."),
}


@pytest_asyncio.fixture
async def speech(models: None, settings: Settings) -> AsyncIterator[EmbeddedSpeech]:
    settings.BRINGS_KOKORO, settings.SPEECH_LANGUAGES = True, ("en", *KOKORO_LANGUAGES)
    made = EmbeddedSpeech()
    yield made
    await made.close()


@pytest.fixture(scope="module")
def whisper() -> WhisperModel:
    return WhisperModel(whisper_folder("", installed.MODELS_DIR), threads=1)


@pytest.mark.parametrize("voice", usually("ef_dora", "ff_siwis", more=("im_nicola", "pf_dora")))
async def test_what_it_says_is_understood(speech: EmbeddedSpeech, whisper: WhisperModel, voice: str) -> None:
    language, text = SAID[voice]
    sound = await spoken(speech, text, voice=voice)
    heard = whisper.decode(whisper.encode(sound), len(sound) / ENGINE_SAMPLE_RATE_HZ, language)
    assert heard is not None
    assert len(set(words(text)) & set(words(heard.text))) >= len(set(words(text))) - 2, heard.text


async def test_hindi_is_understood(speech: EmbeddedSpeech, whisper: WhisperModel) -> None:
    sound = await spoken(speech, "नमस्ते, मैं आपकी क्या मदद कर सकता हूँ?", voice="hf_alpha")
    seconds = len(sound) / ENGINE_SAMPLE_RATE_HZ
    heard = whisper.decode(whisper.encode(sound), seconds, "hi", translates=True)  # written, it may be Urdu
    assert heard is not None
    assert "help" in words(heard.text), heard.text


async def test_it_speaks_the_languages_of_the_server_before_espeak(speech: EmbeddedSpeech, settings: Settings) -> None:
    settings.SPEECH_LANGUAGES = ("en", "it", "de")
    first = {voice.language: voice.name for voice in reversed(speech.voices)}
    assert (first["en"], first["it"], first["de"], first["es"]) == ("woman", "if_sara", "de", "es")
    settings.BRINGS_KOKORO = False
    assert {voice.name for voice in EmbeddedSpeech().voices}.isdisjoint(name for name, _, _ in kokoro.VOICES)


@pytest.mark.parametrize("phonemes", ["a" * 600, "?!", "1 2"])
def test_what_it_cannot_say_is_left_to_the_robot(models: None, phonemes: str) -> None:
    with pytest.raises(TextUnreadable):
        next(kokoro._made("if_sara", phonemes, 1.0))


async def test_without_its_file_another_voice_speaks(
    speech: EmbeddedSpeech, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert "if_sara" in {voice.name for voice in speech.voices}
    settings.MODELS_DIR = tmp_path
    robotic = len(await pcm(speech, "Buongiorno.", voice="it"))
    assert abs(len(await pcm(speech, "Buongiorno.", voice="if_sara")) - robotic) < robotic / 20
    assert "espeak-ng speaks in its place" in caplog.text
