"""Neural voices: what they say is understood, sounds whole, and espeak-ng speaks where they cannot."""

from __future__ import annotations

import asyncio
import itertools
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from hibari.voices import VOICES, voice_path
from pytest_django.fixtures import Settings

from tests.engines.piper.tiny_voice import write_voice
from tests.engines.speech import pcm, samples, spoken, word_errors, words
from voiceapp import memory
from voiceapp.catalogue.client_names import CLIENT_NAMES
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.hibari.voices import TIMBRES
from voiceapp.engines.voices.sound import LEVEL
from voiceapp.engines.voices.synthesizer import EmbeddedSpeech

RATE_HZ = 24_000
SENTENCES = (
    "The living room is on the second floor.",
    "What time does the next train leave the station?",
    "Turn on the lamp in the kitchen.",
    "The child almost hurt the small dog.",
    "Sunday is the best part of the week.",
    "She opened the window and looked at the garden.",
    "I can tell the time, do sums and answer questions.",
    "It is a quarter past three in the afternoon.",
    "Paris is the capital of France.",
    "Please say that again, a little slower.",
    "The meeting begins at nine and ends before noon.",
    "You can interrupt me whenever you like.",
    "There are seven days in a week.",
    "The weather will be warm and dry tomorrow.",
    "My favorite color is green.",
    "Open the settings to change the voice.",
    "He bought some bread, butter and cheese.",
    "The library closes early on Friday.",
    "Water boils at one hundred degrees.",
    "They walked along the river until sunset.",
    "Can you help me find my keys?",
    "The answer is twenty four.",
    "We have not heard from them since March.",
    "Press the button and start to speak.",
    "The movie was longer than I expected.",
    "Her brother plays the piano very well.",
    "A ticket to the museum costs twelve dollars.",
    "Remember to lock the door when you leave.",
    "The bus stops in front of the school.",
    "Thank you for calling, and have a nice day.",
)


@pytest.fixture(autouse=True)
def chosen_by_itself(settings: Settings) -> None:
    settings.DEFAULT_VOICE = ""


@pytest_asyncio.fixture
async def speech() -> AsyncIterator[EmbeddedSpeech]:
    made = EmbeddedSpeech()
    yield made
    await made.close()


def dominant_hz(sound: np.ndarray, rate_hz: int = RATE_HZ) -> float:
    """Where half of the sound's energy lies below."""
    power = np.square(np.abs(np.fft.rfft(sound)))
    share = np.cumsum(power) / power.sum()
    return float(np.searchsorted(share, 0.5) * rate_hz / len(sound))


async def test_what_it_says_is_understood(speech: EmbeddedSpeech, moonshine: Moonshine) -> None:
    """At most half as many words are heard wrong as of espeak-ng's, 18 %. The voice varies: 2 to 6 %."""
    heard = [(await moonshine.recognize(await spoken(speech, sentence, voice="woman"))).text for sentence in SENTENCES]
    errors = sum(map(word_errors, SENTENCES, heard))
    assert errors <= 0.09 * len(words(" ".join(SENTENCES))), heard


@pytest.mark.parametrize("voice", [timbre.name for timbre in TIMBRES[1:]])
async def test_every_timbre_is_understood(speech: EmbeddedSpeech, moonshine: Moonshine, voice: str) -> None:
    some = SENTENCES[::3]
    heard = [(await moonshine.recognize(await spoken(speech, sentence, voice=voice))).text for sentence in some]
    assert sum(map(word_errors, some, heard)) <= 0.12 * len(words(" ".join(some))), heard


async def test_it_is_the_default(speech: EmbeddedSpeech) -> None:
    assert speech.default_voice == "woman"
    assert [voice.name for voice in speech.voices][:2] == ["woman", "woman-light"]
    assert "en-us" in [voice.name for voice in speech.voices]


async def test_no_click_at_joins_and_clean_ends(speech: EmbeddedSpeech) -> None:
    text = "Well, this is a first sentence, long enough to be cut in two. Then comes another one! And a third?"
    sound = samples(await pcm(speech, text, voice="woman"))
    silent = np.abs(sound) < 1e-4
    changes = np.flatnonzero(np.diff(silent.astype(int)))
    runs = [(begin, end) for begin, end in itertools.pairwise(changes) if silent[begin + 1]]
    pauses = [(begin, end) for begin, end in runs if end - begin > 0.05 * RATE_HZ]
    assert len(pauses) >= 3
    for begin, end in pauses:  # 1 ms on both sides of a pause
        assert np.abs(np.diff(sound[begin - 24 : begin + 24])).max() < 0.01
        assert np.abs(np.diff(sound[end - 24 : end + 24])).max() < 0.01
    assert abs(sound[0]) < 0.01
    assert abs(sound[-1]) < 0.01
    loud = np.flatnonzero(np.abs(sound) > 0.02)
    assert loud[0] <= 0.06 * RATE_HZ
    assert len(sound) - loud[-1] <= 0.1 * RATE_HZ


async def test_all_voices_are_equally_loud_and_none_is_cut(speech: EmbeddedSpeech) -> None:
    for voice in ("woman", "woman-light", "man-deep", "en-us"):
        sound = samples(await pcm(speech, "This is how loud I am when I speak to you.", voice=voice))
        windows = sound[: len(sound) // 240 * 240].reshape(-1, 240)
        loudness = np.sqrt(np.square(windows).mean(axis=1))
        level = np.sqrt(np.square(loudness[loudness > 0.02 * loudness.max()]).mean())
        assert 20 * abs(np.log10(level / LEVEL)) < 3, voice
        assert np.abs(sound).max() < 0.99


async def test_the_rate_makes_it_shorter_or_longer(speech: EmbeddedSpeech) -> None:
    text = " ".join(SENTENCES[:4])  # the pace of a neural voice varies from sentence to sentence
    lengths = [len(await pcm(speech, text, voice="woman", rate=rate)) for rate in (0.7, 1.0, 1.5)]
    assert lengths[0] > 1.2 * lengths[1] > 1.2 * 1.2 * lengths[2]


async def test_timbres_and_client_names_sound_different(speech: EmbeddedSpeech) -> None:
    heard = {}
    for name in ("ash", "alloy", "shimmer"):
        heard[name] = dominant_hz(samples(await pcm(speech, SENTENCES[0], voice=name)))
    assert sorted(heard, key=heard.__getitem__) == ["ash", "alloy", "shimmer"]
    assert {timbre.name for timbre in TIMBRES} <= set(CLIENT_NAMES["voices"])


async def test_an_unknown_voice_speaks_with_the_default_one_and_the_log_says_so_once(
    speech: EmbeddedSpeech, caplog: pytest.LogCaptureFixture
) -> None:
    for voice in ("nobody", "nobody", "alloy", "no\nbody"):
        assert await pcm(speech, "Hello.", voice=voice)
    told = [record.getMessage() for record in caplog.records if "not known" in record.getMessage()]
    assert told == [
        f"voice {name}: not known, {speech.default_voice} speaks in its place" for name in ("nobody", r"no\nbody")
    ]


@pytest.mark.parametrize("text", ["", "...", "\n", "—", "```", "\ufeff"])
async def test_what_nobody_pronounces_makes_no_sound(speech: EmbeddedSpeech, text: str) -> None:
    assert await pcm(speech, text, voice="woman") == b""


async def test_the_first_sound_does_not_wait_for_the_rest(speech: EmbeddedSpeech) -> None:
    text = (
        "In the beginning, there was a very long sentence that nobody wanted to read, since it did not end, ever. " * 8
    )
    await pcm(speech, "Ready.", voice="woman")
    async with aclosing(speech.speak(text, voice="woman", sample_rate_hz=RATE_HZ)) as sound:
        async with asyncio.timeout(5):
            first = await anext(sound)
    assert len(first) == 0.1 * RATE_HZ * 2


async def test_english_starts_no_other_program(speech: EmbeddedSpeech) -> None:
    await speech.warm()
    assert await pcm(speech, "Hello, world. It is 5 km to St. Paul.", voice="man")
    assert speech.espeak.process_id is None
    assert await pcm(speech, "你好", voice="man")
    assert speech.espeak.process_id is not None


@pytest.mark.parametrize(
    ("text", "voice"),
    [("Привет, мир", "ru"), ("你好，世界", "cmn"), ("مرحبا بالعالم", "ar"), ("ქართული", "en-us"), ("🎉", "en-us")],
)
async def test_what_the_english_voices_cannot_read_is_spoken_by_another(
    speech: EmbeddedSpeech, text: str, voice: str
) -> None:
    theirs = b"".join([part async for part in speech.espeak.speak(text, voice=voice, sample_rate_hz=24_000)])
    assert len(await pcm(speech, text, voice="woman")) == pytest.approx(len(theirs), abs=480)
    assert len(theirs) > 0.3 * RATE_HZ * 2


@pytest.mark.parametrize(("voice", "is_english"), [("en-us", True), ("de", False)])
async def test_english_is_written_out_for_robotic_voices_too(
    speech: EmbeddedSpeech, voice: str, is_english: bool
) -> None:
    written, said = [await pcm(speech, text, voice=voice) for text in ("It is 3,50 €.", "It is €3.50.")]
    assert (len(written) == pytest.approx(len(said), abs=480)) is is_english


async def test_what_the_rules_find_nothing_in_is_spoken_by_espeak(
    speech: EmbeddedSpeech, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(await pcm(speech, "ƿ", voice="man")) > 0.2 * RATE_HZ * 2
    assert "voice man: espeak-ng reads a text in its place" in caplog.text


async def test_a_file_in_the_folder_goes_before_a_name_of_client_libraries(settings: Settings, tmp_path: Path) -> None:
    assert EmbeddedSpeech().voice_named("fable") == "man-deep"
    settings.VOICES_DIR = str(tmp_path)
    shutil.copy(voice_path("heart"), tmp_path / VOICES["fable"]["file"])
    speech = EmbeddedSpeech()
    assert speech.voice_named("fable") == "fable"
    assert await pcm(speech, "Hello.", voice="fable")


async def test_a_foreign_word_is_spoken_where_it_stands(speech: EmbeddedSpeech) -> None:
    alone, around = [len(await pcm(speech, text, voice="woman")) for text in ("Привет", "The word means hello.")]
    together = len(await pcm(speech, "The word Привет means hello.", voice="woman"))
    assert together > 0.8 * (alone + around)


# ── Where there is no neural voice ───────────────────────────────────────────────────────────────────────────────────


async def test_with_little_memory_espeak_speaks(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(f"{512 * 1024**2}\n")
    monkeypatch.setattr(memory, "LIMITS", (limit,))
    assert EmbeddedSpeech().default_voice == "en-us"
    settings.DEFAULT_VOICE = "woman-light"
    assert EmbeddedSpeech().default_voice == "woman-light"
    settings.DEFAULT_VOICE = "nobody"
    assert EmbeddedSpeech().default_voice == "en-us"
    settings.DEFAULT_VOICE = ""
    limit.write_text("max\n")
    assert EmbeddedSpeech().default_voice == "woman"


async def test_a_damaged_model_is_named_in_the_log_and_espeak_speaks(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.VOICES_DIR = str(tmp_path)
    write_voice(tmp_path / "broken.onnx", speakers={})
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    speech = EmbeddedSpeech()
    for _ in range(2):
        assert await pcm(speech, "Hello.", voice="broken")
    assert caplog.text.count("voice broken: espeak-ng speaks in its place") == 1
    await speech.close()


# ── Voices of the operator's ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_folder_adds_voices_and_speakers(settings: Settings, tmp_path: Path) -> None:
    settings.VOICES_DIR = str(tmp_path)
    write_voice(tmp_path / "xx_XX-tones-low.onnx", speakers={"low": 0, "high": 1})
    speech = EmbeddedSpeech()
    names = {voice.name: voice.language for voice in speech.voices}
    assert names["xx_XX-tones-low/low"] == names["xx_XX-tones-low/high"] == "xx"
    sounds = [samples(await pcm(speech, "tone", voice=f"xx_XX-tones-low/{speaker}")) for speaker in ("low", "high")]
    heard = [dominant_hz(sound) for sound in sounds]
    assert heard == [pytest.approx(440, rel=0.05), pytest.approx(880, rel=0.05)]
    await speech.close()


@pytest.mark.parametrize(
    "settings_text", ["", "{}", "[]", '{"phoneme_type": "pinyin"}', '{"audio": {"sample_rate": "x"}}']
)
async def test_a_voice_that_cannot_be_read_is_left_out(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture, settings_text: str
) -> None:
    settings.VOICES_DIR = str(tmp_path)
    (tmp_path / "odd.onnx").touch()
    (tmp_path / "odd.onnx.json").write_text(settings_text)
    caplog.set_level(logging.WARNING)
    assert "odd" not in [voice.name for voice in EmbeddedSpeech().voices]
    assert "odd.onnx.json" in caplog.text
