"""Recordings in other languages over HTTP. The German is synthetic, espeak-ng's."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.engines.speech import words
from tests.models import offered
from tests.speech.test_http import TRANSCRIPTIONS, recording
from voiceapp.catalogue.defaults import voice_cards, whisper_folder

TRANSLATIONS = "/compatible-mode/v1/audio/translations"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def german_server(settings: Settings) -> Iterator[None]:
    with offered(settings, voice_cards(languages=("en", "de"), whisper=whisper_folder("", settings.MODELS_DIR))):
        yield


def joined(*recordings: bytes) -> bytes:
    """One recording of several, with a second of silence behind each."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        for number, content in enumerate(recordings):
            with wave.open(io.BytesIO(content)) as reader:
                if not number:
                    writer.setparams(reader.getparams())
                writer.writeframes(reader.readframes(reader.getnframes()) + bytes(32_000))
    return file.getvalue()


async def transcribed(member: Member, path: str = TRANSCRIPTIONS, *, greeting: str = "", **form: str) -> HttpResponse:
    text = "Ich möchte morgen früh nach Hamburg fahren, weil mein Bruder dort wohnt."
    content = await recording(text, voice="de")
    if greeting:
        content = joined(await recording(greeting), content)
    file = SimpleUploadedFile("a.wav", content, "audio/wav")
    form = {"model": "whisper-1", "response_format": "verbose_json", **form}
    found = await AsyncClient().post(path, {**form, "file": file}, headers={"Authorization": member.authorization})
    assert isinstance(found, HttpResponse)
    return found


@pytest.mark.parametrize("form", [{}, {"language": "de_DE"}, {"language": "AUTO"}])
async def test_german_comes_out_as_german(alice: Member, form: dict[str, str]) -> None:
    response = await transcribed(alice, **form)
    assert response.status_code == 200, response.content
    found = response.json()
    assert found["language"] == "de"
    assert {"morgen", "hamburg", "wohnt"} <= set(words(found["text"])), found["text"]


async def test_a_greeting_does_not_decide_the_language_of_a_recording(alice: Member) -> None:
    found = (await transcribed(alice, greeting="Good morning, everybody.")).json()
    assert found["language"] == "de"
    assert {"good", "morgen", "hamburg", "fahren"} <= set(words(found["text"])), found["text"]


async def test_a_language_that_was_not_set_up_is_refused(alice: Member) -> None:
    response = await transcribed(alice, language="fr")
    assert response.status_code == 400
    assert "understands en, de only" in response.json()["error"]["message"]


async def test_german_comes_out_as_english_where_it_is_translated(alice: Member, settings: Settings) -> None:
    response = await transcribed(alice, TRANSLATIONS)
    assert response.status_code == 200, response.content
    found = response.json()
    assert (found["task"], found["language"]) == ("translate", "en")
    assert {"to", "hamburg", "tomorrow"} <= set(words(found["text"])), found["text"]
    with offered(settings, voice_cards()):
        refused = await transcribed(alice, TRANSLATIONS)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "model")
