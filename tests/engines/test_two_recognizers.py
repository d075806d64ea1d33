"""Moonshine and Whisper together. The German is synthetic: espeak-ng's, which Whisper mishears more than people."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio
from django.conf import settings
from pytest_django.fixtures import Settings

from tests.engines.noises import noises
from tests.engines.speech import noise, spoken, word_errors, words
from voiceapp.catalogue.defaults import whisper_folder
from voiceapp.engines.embedded.two_recognizers import DOUBTFUL, MoonshineAndWhisper
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.engines.models.lanes import LaneFull
from voiceapp.errors import EngineRefused, EngineUnavailable

WHISPER = whisper_folder("", settings.MODELS_DIR)
GERMAN = "Ich möchte morgen früh nach Hamburg fahren, weil mein Bruder dort wohnt."
HEARD = {"hamburg", "morgen", "fahren", "bruder", "wohnt"}


@pytest.fixture(scope="module")
def recognizer(models: None) -> MoonshineAndWhisper:
    return MoonshineAndWhisper(languages=("en", "de", "es"), folder=str(WHISPER))


@pytest_asyncio.fixture
async def german(espeak: Espeak) -> Samples:
    return await spoken(espeak, GERMAN, voice="de")


@pytest.mark.parametrize("language", ["de", "de-AT", None])
async def test_it_understands_german(recognizer: MoonshineAndWhisper, german: Samples, language: str | None) -> None:
    heard = await recognizer.recognize(german, language=language)
    assert len(HEARD & set(words(heard.text))) >= 4, heard
    assert (heard.language, heard.is_detected) == ("de", language is None)


async def test_it_detects_english(recognizer: MoonshineAndWhisper, espeak: Espeak) -> None:
    sentence = "The living room is on the second floor."
    heard = await recognizer.recognize(await spoken(espeak, sentence))
    assert (heard.language, heard.is_detected) == ("en", True)
    assert word_errors(sentence, heard.text) <= 1


@pytest.mark.parametrize(("expected", "is_partial"), [("en", False), ("de", False), ("de", True)])
async def test_it_follows_a_caller_who_changes_the_language(
    recognizer: MoonshineAndWhisper, german: Samples, espeak: Espeak, expected: str, is_partial: bool
) -> None:
    english = await spoken(espeak, "The living room is on the second floor.")
    sounds = {"de": german, "en": english}
    for language, sound in sounds.items():
        heard = await recognizer.recognize(sound, language=expected, among=(), urgent=not is_partial)
        assert heard.language == language, heard


async def test_only_the_languages_of_the_caller_are_detected(recognizer: MoonshineAndWhisper, german: Samples) -> None:
    assert (await recognizer.recognize(german, among=("fr", "de", "en"))).language == "de"
    for languages in (("en",), ("es", "en"), ("fr", "en")):
        assert (await recognizer.recognize(german, among=languages)).language != "de"


async def test_it_hears_no_words_in_noises(recognizer: MoonshineAndWhisper) -> None:
    for name, sound in (*noises(8), ("white", noise(1, 0.05)), ("quiet", noise(1, 0.0005))):
        assert (await recognizer.recognize(sound, language="de")).text == "", name


async def test_it_refuses_languages_that_were_not_set_up(recognizer: MoonshineAndWhisper, german: Samples) -> None:
    with pytest.raises(EngineRefused, match="en, de, es only, not 'fr'"):
        await recognizer.recognize(german, language="fr")


async def test_a_partial_result_is_english_until_the_language_is_known(
    recognizer: MoonshineAndWhisper, german: Samples, espeak: Espeak
) -> None:
    with pytest.raises(LaneFull):
        await recognizer.recognize(german, urgent=False)
    english = await spoken(espeak, "The living room is on the second floor.")
    assert "living" in (await recognizer.recognize(english, urgent=False)).text
    assert (await recognizer.recognize(german, language="de", urgent=False)).text


async def test_long_speech_of_many_tokens_is_read_in_parts(recognizer: MoonshineAndWhisper, espeak: Espeak) -> None:
    digits = await spoken(espeak, 12 * "seven eight three nine four two five one six zero ", rate=1.6, voice="en-us")
    assert "7" in (await recognizer.recognize(digits[: 20 * ENGINE_SAMPLE_RATE_HZ], language="de")).text


async def test_without_a_second_reading_the_first_stays(models: None, espeak: Espeak, tmp_path: Path) -> None:
    lacking = MoonshineAndWhisper(languages=("en", "de"), folder=str(tmp_path))
    english = await spoken(espeak, "The living room is on the second floor.")
    doubtful = english + noise(len(english) / ENGINE_SAMPLE_RATE_HZ, 0.02)[: len(english)]
    heard = await lacking.recognize(doubtful, language="en")
    assert heard.text
    assert heard.confidence < DOUBTFUL


@pytest.mark.parametrize(("brings_whisper", "remedy"), [(True, "fetch_models"), (False, "ASR_MODEL")])
def test_without_its_files_it_says_what_to_do(
    models: None, tmp_path: Path, settings: Settings, brings_whisper: bool, remedy: str
) -> None:
    settings.BRINGS_WHISPER = brings_whisper
    with pytest.raises(EngineUnavailable) as refusal:
        MoonshineAndWhisper(languages=("en", "de"), folder=str(tmp_path)).check()
    assert remedy in refusal.value.for_operators


@pytest.mark.parametrize("damaged", ["model.bin", "vocabulary.json"])
async def test_a_damaged_file_is_told_in_a_sentence(
    models: None, german: Samples, tmp_path: Path, damaged: str
) -> None:
    for file in WHISPER.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / damaged).unlink()
    (tmp_path / damaged).write_bytes(b"no model")
    with pytest.raises(EngineUnavailable, match="cannot be loaded"):
        await MoonshineAndWhisper(languages=("en", "de"), folder=str(tmp_path)).recognize(german, language="de")
