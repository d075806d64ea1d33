"""Speech over HTTP: another model stands in for one that fails, and no more is answered at once than there is room."""

from __future__ import annotations

import asyncio
import io
import json
import wave
from collections.abc import AsyncGenerator, Iterator

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse, StreamingHttpResponse
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.engines.speech import pcm
from tests.models import offered
from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.services import with_fallbacks
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.errors import Throttled
from voiceapp.speech.room import SpeechRoom

pytestmark = pytest.mark.django_db(transaction=True)

SPEECH = "/compatible-mode/v1/audio/speech"
TRANSCRIPTIONS = "/compatible-mode/v1/audio/transcriptions"


@pytest.fixture(autouse=True)
def chains(settings: Settings) -> Iterator[None]:
    others = [card for card in settings.VOICE_MODELS if card.kind in ("vad", "turn")]
    cards = [
        *others,
        ModelCard("far-ears", "asr", "tests.speech.engines.Away", service="acme"),
        ModelCard("ears", "asr", "tests.speech.engines.Here", runs_here=True),
        ModelCard("far-voice", "tts", "tests.speech.engines.Away", service="acme"),
        ModelCard("mouth", "tts", "tests.speech.engines.Here", runs_here=True),
    ]
    with offered(settings, with_fallbacks(cards, ["far-ears>ears", "far-voice>mouth"])):
        yield


async def speak(member: Member, model: str) -> HttpResponse | StreamingHttpResponse:
    body = json.dumps({"model": model, "input": "Hello.", "voice": "alloy", "response_format": "pcm"})
    return await AsyncClient().generic(
        "POST", SPEECH, body, "application/json", headers={"Authorization": member.authorization}
    )


async def recording(text: str = "The living room is on the second floor.", *, voice: str = "en-us") -> bytes:
    espeak = Espeak()
    try:
        sound = await pcm(espeak, text, voice=voice, sample_rate_hz=16_000)
    finally:
        await espeak.close()
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(16_000)
        writer.writeframes(sound)
    return file.getvalue()


async def test_another_voice_speaks_for_one_that_is_away(alice: Member) -> None:
    response = await speak(alice, "far-voice")
    assert isinstance(response, StreamingHttpResponse)
    assert (response.status_code, response.headers["X-Served-By"]) == (200, "embedded/mouth")
    assert len(b"".join([bytes(piece) async for piece in response])) == 3 * 48_000
    alone = await speak(alice, "mouth")
    assert alone.headers["X-Served-By"] == "embedded/mouth"
    alone.close()


async def test_another_model_hears_for_one_that_is_away(alice: Member) -> None:
    file = SimpleUploadedFile("a.wav", await recording(), "audio/wav")
    response = await AsyncClient().post(
        TRANSCRIPTIONS, {"model": "far-ears", "file": file}, headers={"Authorization": alice.authorization}
    )
    assert response.status_code == 200, response.content
    assert response.json()["text"] == "heard here"
    assert response.headers["X-Served-By"] == "embedded/ears"


async def test_names_of_the_prompt_reach_the_recognizer(alice: Member) -> None:
    form = {"model": "ears", "prompt": "Siobhan, Niamh", "file": io.BytesIO(await recording())}
    response = await AsyncClient().post(TRANSCRIPTIONS, form, headers={"Authorization": alice.authorization})
    assert response.json()["text"] == "heard here Siobhan Niamh"


@pytest.mark.parametrize("wrong", ["abc", "1e999"])
async def test_a_temperature_is_a_number_in_the_text_of_a_form(alice: Member, wrong: str) -> None:
    sound = await recording()
    for temperature in (wrong, "0", "0.2"):
        form = {"model": "ears", "temperature": temperature, "file": io.BytesIO(sound)}
        answer = await AsyncClient().post(TRANSCRIPTIONS, form, headers={"Authorization": alice.authorization})
        is_number = temperature != wrong
        assert answer.status_code == (200 if is_number else 400), answer.content
        assert is_number or answer.json()["error"]["param"] == "temperature"


async def test_one_request_more_than_there_is_room_for_is_refused(alice: Member, settings: Settings) -> None:
    settings.MAX_SPEECH_REQUESTS = 0
    full = await speak(alice, "mouth")
    assert isinstance(full, HttpResponse)
    assert (full.status_code, full.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert full.headers["Retry-After"] == "1"
    settings.MAX_SPEECH_REQUESTS = 1
    for _ in range(2):  # the first gave its place back
        response = await speak(alice, "mouth")
        assert isinstance(response, StreamingHttpResponse)
        assert response.status_code == 200
        assert [piece async for piece in response]


async def test_a_place_is_free_when_its_request_is_over_or_given_up(settings: Settings) -> None:
    settings.MAX_SPEECH_REQUESTS = 1
    room = SpeechRoom()
    go_on = asyncio.Event()

    async def pieces() -> AsyncGenerator[int, None]:
        yield 1
        await go_on.wait()
        yield 2

    held = room.hold(pieces())
    assert await anext(held) == 1
    with pytest.raises(Throttled):
        await anext(room.hold(pieces()))
    await held.aclose()
    go_on.set()
    assert [piece async for piece in room.hold(pieces())] == [1, 2]
    assert await anext(room.hold(pieces())) == 1
