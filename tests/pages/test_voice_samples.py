"""What each voice sounds like, for those who may talk on the page."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import AsyncGenerator, Sequence

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from voiceapp.engines.interfaces import Voice
from voiceapp.engines.sound.sound_files import samples_of
from voiceapp.errors import EngineUnavailable
from voiceapp.pages.voice_samples import MOST_KEPT, SENTENCES, VoiceSamples

RATE_HZ = 24_000


class Speaker:
    """A synthesizer of tones that counts what it is asked for."""

    def __init__(self, voices: int) -> None:
        self.voices: Sequence[Voice] = [Voice(f"voice-{number}", "", "de-AT") for number in range(voices)]
        self.default_voice = "voice-0"
        self.spoken: list[tuple[str, str]] = []
        self.is_away = False

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        if self.is_away:
            raise EngineUnavailable("The voice is away.")
        self.spoken.append((voice, text))
        await asyncio.sleep(0)
        yield (8000 * np.sin(np.arange(sample_rate_hz) / 20)).astype("<i2").tobytes()


async def test_a_voice_is_asked_once_however_many_want_to_hear_it() -> None:
    speaker = Speaker(2)
    samples = VoiceSamples(speaker)

    found = await asyncio.gather(*(samples.get("voice-1") for _ in range(100)))

    assert len(set(found)) == 1
    assert speaker.spoken == [("voice-1", SENTENCES["de"])]


async def test_no_more_are_kept_than_stated() -> None:
    speaker = Speaker(MOST_KEPT + 1)
    samples = VoiceSamples(speaker)
    for voice in speaker.voices:
        await samples.get(voice.name)
    await samples.get(speaker.voices[-1].name)
    assert len(speaker.spoken) == MOST_KEPT + 1

    await samples.get(speaker.voices[0].name)
    assert len(speaker.spoken) == MOST_KEPT + 2


async def test_a_voice_that_could_not_speak_is_asked_again() -> None:
    speaker = Speaker(1)
    samples = VoiceSamples(speaker)
    speaker.is_away = True
    with pytest.raises(EngineUnavailable):
        await samples.get("voice-0")
    speaker.is_away = False
    assert await samples.get("voice-0")


@pytest.mark.django_db
def test_the_page_plays_the_voices_that_it_offers(client: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    config = client.get("/voice/config").json()

    sample = client.get(config["samples_path"] + config["default_voice"])

    assert (sample.status_code, sample["Content-Type"]) == (200, "audio/mpeg")
    assert "private" in sample["Cache-Control"]
    sound = np.concatenate(list(samples_of(io.BytesIO(sample.content), max_s=10, stop=threading.Event())))
    assert 1 < len(sound) / 16_000 < 6
    assert np.abs(sound).max() > 0.05


@pytest.mark.django_db
def test_others_hear_nothing(client: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "login"
    assert client.get("/voice/samples/woman-light").status_code == 401
    settings.PUBLIC_PAGE = "off"
    assert client.get("/voice/samples/woman-light").status_code == 404
    client.force_login(User.objects.create_user("paula", password="a long enough secret"))
    settings.PUBLIC_PAGE = "login"
    unknown = client.get("/voice/samples/nobody")
    assert (unknown.status_code, unknown.json()["message"]) == (404, "There is no such voice.")
