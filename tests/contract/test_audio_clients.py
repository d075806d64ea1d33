"""Speech and transcripts through the openai library, against the real server process."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator

import av
import openai
import pytest

from tests.realtime.product import Product

SENTENCES = "The weather is very nice today. We are going to walk in the park this afternoon."
SRT = re.compile(r"1\n00:00:0\d,\d{3} --> 00:00:0\d,\d{3}\n[^\n]+\n")


@pytest.fixture(scope="module")
def client(product: Product) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        api_key=product.keys["good"], base_url=f"{product.origin}/compatible-mode/v1", max_retries=0
    ) as client:
        yield client


@pytest.fixture(scope="module")
def spoken(client: openai.OpenAI) -> bytes:
    """The sentences in an mp3 file."""
    return client.audio.speech.create(model="tts-1", voice="alloy", input=SENTENCES).read()


def seconds(file: bytes) -> float:
    with av.open(io.BytesIO(file)) as container:
        stream = container.streams.audio[0]
        return sum(frame.samples for frame in container.decode(stream)) / stream.rate


def assert_understood(text: str) -> None:
    words = set(re.findall(r"\w+", text.lower()))
    assert len(words & {"weather", "nice", "today", "going", "walk", "park", "afternoon"}) >= 4, text


@pytest.mark.parametrize("form", ["mp3", "opus", "aac", "flac", "wav"])
def test_it_speaks_into_a_file_of_any_kind(client: openai.OpenAI, form: str) -> None:
    answer = client.audio.speech.create(model="tts-1", voice="alloy", input=SENTENCES, response_format=form)
    assert 2.5 < seconds(answer.read()) < 8


def test_it_speaks_bare_samples_at_any_speed(client: openai.OpenAI) -> None:
    lengths = [
        len(
            client.audio.speech.create(
                model="espeak-ng", voice="en-us", input=SENTENCES, response_format="pcm", speed=speed
            ).read()
        )
        for speed in (0.5, 1.0, 2.0)
    ]
    assert lengths[0] > 1.5 * lengths[1] > 2 * lengths[2]
    assert 2.5 < lengths[1] / 48_000 < 8


def test_it_speaks_while_it_is_heard(client: openai.OpenAI) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="alloy", input=SENTENCES * 40, response_format="pcm"
    ) as answer:
        pieces = answer.iter_bytes(chunk_size=4096)
        assert len(next(pieces)) == 4096


def test_it_speaks_in_events(client: openai.OpenAI) -> None:
    answer = client.audio.speech.create(model="tts-1", voice="alloy", input="Hello.", stream_format="sse")
    events = [json.loads(line.removeprefix("data: ")) for line in answer.read().decode().split("\n\n") if line]
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    assert events[-1]["type"] == "speech.audio.done"


def test_it_transcribes(client: openai.OpenAI, spoken: bytes) -> None:
    answer = client.audio.transcriptions.create(model="whisper-1", file=("a.mp3", spoken))
    assert_understood(answer.text)
    plain = client.audio.transcriptions.create(model="whisper-1", file=("a.mp3", spoken), response_format="text")
    assert str(plain).strip() == answer.text


def test_it_says_when_each_stretch_was_spoken(client: openai.OpenAI, spoken: bytes) -> None:
    answer = client.audio.transcriptions.create(
        model="whisper-1",
        file=("a.mp3", spoken),
        language="en",
        response_format="verbose_json",
        timestamp_granularities=["segment"],
    )
    assert_understood(answer.text)
    assert answer.language == "en"
    assert answer.duration == pytest.approx(seconds(spoken), abs=0.1)
    times = [time for segment in answer.segments or [] for time in (segment.start, segment.end)]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1] <= answer.duration + 0.001


def test_it_writes_subtitles(client: openai.OpenAI, spoken: bytes) -> None:
    srt = client.audio.transcriptions.create(model="whisper-1", file=("a.mp3", spoken), response_format="srt")
    assert SRT.match(str(srt))
    vtt = client.audio.transcriptions.create(model="whisper-1", file=("a.mp3", spoken), response_format="vtt")
    assert str(vtt).startswith("WEBVTT\n\n00:00:0")


def test_it_transcribes_in_events(client: openai.OpenAI, spoken: bytes) -> None:
    events = list(client.audio.transcriptions.create(model="whisper-1", file=("a.mp3", spoken), stream=True))
    assert [event.type for event in events][-1] == "transcript.text.done"
    told = "".join(event.delta for event in events if event.type == "transcript.text.delta")
    assert told == events[-1].text


def test_it_refuses_what_it_cannot_do(client: openai.OpenAI, spoken: bytes, product: Product) -> None:
    def transcribe(file: bytes = spoken, **more: object) -> None:
        client.audio.transcriptions.create(**{"model": "whisper-1", "file": ("a.mp3", file)} | more)

    with pytest.raises(openai.BadRequestError, match="none of the kinds"):
        transcribe(b"#EXTM3U\nhttp://127.0.0.1/secret")
    with pytest.raises(openai.BadRequestError, match="single words"):
        transcribe(response_format="verbose_json", timestamp_granularities=["word"])
    with pytest.raises(openai.BadRequestError, match="understands en only, not 'de'"):
        transcribe(language="de")
    with pytest.raises(openai.NotFoundError):
        transcribe(model="nobody")
    with pytest.raises(openai.BadRequestError) as caught:
        client.audio.speech.create(model="tts-1", voice="alloy", input="a" * 5000)
    assert caught.value.param == "input"
    for text in ("  \n ", "("):
        with pytest.raises(openai.BadRequestError, match="nothing"):
            client.audio.speech.create(model="tts-1", voice="alloy", input=text)
    with pytest.raises(openai.PermissionDeniedError):
        client.with_options(api_key=product.keys["elsewhere"]).audio.speech.create(
            model="tts-1", voice="alloy", input="a"
        )


async def test_it_counts_seconds_and_characters(product: Product, client: openai.OpenAI, spoken: bytes) -> None:
    client.audio.speech.create(model="tts-1", voice="alloy", input="Count me.").read()
    client.audio.transcriptions.create(model="whisper-1", file=("spoken.mp3", spoken))
    row = await product.row("select * from accounts_usagerecord where unit = 'characters' and quantity = 9")
    assert (row["family"], row["model"]) == ("tts", "hibari")
    seconds_of = "select * from accounts_usagerecord where unit = 'audio_seconds' order by id desc limit 1"
    row = await product.row(seconds_of)
    assert row["family"] == "asr"
    assert {row["quantity"]} == {-(-int(seconds(spoken) * 1000) // 1000)}
