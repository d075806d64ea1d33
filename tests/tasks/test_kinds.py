"""Each kind of task, from its creation by HTTP to the file it leaves behind, with the real engines."""

from __future__ import annotations

import io
import json
import wave
from typing import Any

import av
import pytest

from tests.tasks.conftest import Program, files_at
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.models.providers import provider_of
from voiceapp.engines.sound.sound_files import SoundWriter
from voiceapp.leases.loop import Loop
from voiceapp.protocol.audio import WAV_HEADER_BYTES, wav_header
from voiceapp.tasks.models import TaskFile
from voiceapp.tasks.storage.text_lines import MAX_LINE_BYTES

TRANSCRIPTION = "audio/asr/transcription"
SPEECH = "audio/tts/synthesis"
EMBEDDING = "embeddings/text-embedding/text-embedding"


@pytest.fixture(autouse=True)
def _files_from_here(settings: Any) -> None:
    settings.FETCH_ALLOWED_NETWORKS = ["127.0.0.0/8"]


async def spoken(text: str) -> bytes:
    """A WAV file of the embedded voice."""
    engine = provider_of(catalogue().default("tts"))
    pcm = b"".join([piece async for piece in engine.speak(text, voice="", sample_rate_hz=16_000)])
    return wav_header(16_000) + pcm


async def test_recordings_are_transcribed_and_one_that_fails_fails_alone(program: Program, worker: Loop) -> None:
    async with files_at({"good.wav": await spoken("What can you do?"), "bad.wav": b"no sound at all"}) as at:
        body = {"model": "paraformer-v2", "input": {"file_urls": [at("good.wav"), at("bad.wav"), at("gone.wav")]}}
        task = await program.follow(await program.create(TRANSCRIPTION, body))

    output = task["output"]
    assert output["task_status"] == "SUCCEEDED"
    assert output["task_metrics"] == {"TOTAL": 3, "SUCCEEDED": 1, "FAILED": 2}
    good, bad, gone = output["results"]
    assert good["subtask_status"] == "SUCCEEDED"
    assert (bad["subtask_status"], bad["code"]) == ("FAILED", "InvalidParameter")
    assert "404" in gone["message"]
    assert bad["file_url"].endswith("/bad.wav")
    transcript = json.loads(await program.fetch(good["transcription_url"]))["transcripts"][0]
    assert "what can you do" in transcript["text"].lower()
    sentence = transcript["sentences"][0]
    assert 0 <= sentence["begin_time"] < sentence["end_time"] < 5000
    assert b" --> " in await program.fetch(good["srt_url"])
    assert (await program.fetch(good["vtt_url"])).startswith(b"WEBVTT")
    assert 1 <= task["usage"]["duration"] <= 5


async def test_a_recording_is_heard_to_its_end_however_long_it_is(program: Program, worker: Loop) -> None:
    said, pause = (await spoken("What can you do?"))[WAV_HEADER_BYTES:], bytes(2 * 16_000)
    writer = SoundWriter("flac", 16_000)
    file = b"".join(map(writer.feed, [said, *[pause] * 1000, said])) + writer.finish()
    async with files_at({"long.flac": file}) as at:
        body = {"model": "paraformer-v2", "input": {"file_urls": [at("long.flac")]}}
        task = await program.follow(await program.create(TRANSCRIPTION, body))
    (result,) = task["output"]["results"]
    heard = json.loads(await program.fetch(result["transcription_url"]))
    first, second = heard["transcripts"][0]["sentences"]
    assert first["text"].lower() == second["text"].lower() == "what can you do?"
    assert second["begin_time"] - first["begin_time"] == pytest.approx(1_000_000 + len(said) / 32, abs=300)
    assert task["usage"]["duration"] == pytest.approx(1000 + 2 * len(said) / 32_000, abs=1)


async def test_a_single_recording_may_be_named_alone(program: Program, worker: Loop) -> None:
    async with files_at({"good.wav": await spoken("What can you do?")}) as at:
        body = {"model": "qwen3-asr-flash-filetrans", "input": {"file_url": at("good.wav")}}
        good = await program.follow(await program.create(TRANSCRIPTION, body))
        body = {"model": "qwen3-asr-flash-filetrans", "input": {"file_url": at("gone.wav")}}
        gone = await program.follow(await program.create(TRANSCRIPTION, body))
    words = json.loads(await program.fetch(good["output"]["result"]["transcription_url"]))
    assert "what can you do" in words["transcripts"][0]["text"].lower()
    assert len(good["output"]["results"]) == 1
    assert gone["output"]["code"] == "InvalidParameter.DataFetch"
    assert "result" not in gone["output"]


async def test_the_first_language_that_is_understood_counts(program: Program, worker: Loop) -> None:
    async with files_at({"a.wav": await spoken("What can you do?")}) as at:
        asked = {"model": "paraformer-v2", "input": {"file_urls": [at("a.wav")]}}
        body = asked | {"parameters": {"language_hints": ["zh", "en"]}}
        task = await program.follow(await program.create(TRANSCRIPTION, body))
        assert task["output"]["results"][0]["subtask_status"] == "SUCCEEDED"
        body = asked | {"parameters": {"language_hints": ["klingon", "zh"]}}
        answer = await program.post(f"/api/v1/services/{TRANSCRIPTION}", body, **{"X-DashScope-Async": "enable"})
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParameter")
    assert "understands en only, not 'klingon'" in answer.json()["message"]


async def test_a_text_without_a_sound_is_no_file(program: Program, worker: Loop) -> None:
    body = {"model": "tts-1", "input": {"text": "("}, "parameters": {"format": "opus"}}
    output = (await program.follow(await program.create(SPEECH, body)))["output"]
    assert (output["task_status"], output["code"]) == ("FAILED", "InvalidParameter")


async def test_a_text_that_takes_too_long_to_say_is_refused_at_once(program: Program) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 4_400
    for rate, status in ((0.25, 400), (1.0, 200)):
        body = {"model": "tts-1", "input": {"text": text}, "parameters": {"rate": rate}}
        answer = await program.post(f"/api/v1/services/{SPEECH}", body, **{"X-DashScope-Async": "enable"})
        assert answer.status_code == status, answer.content
        if status == 400:
            assert (answer.json()["code"], "longer than 4 hours" in answer.json()["message"]) == (
                "InvalidParameter",
                True,
            )


async def test_speech_ends_when_it_becomes_longer_than_it_may(program: Program, worker: Loop, settings: Any) -> None:
    settings.TASK_MAX_AUDIO_S = 2.0
    body = {"model": "tts-1", "input": {"text": "Good morning. Good evening. And a good night."}}
    output = (await program.follow(await program.create(SPEECH, body)))["output"]
    assert (output["task_status"], output["code"]) == ("FAILED", "InvalidParameter")
    assert output["message"].startswith("The speech is longer than 2 seconds")
    assert not await TaskFile.objects.aexists()


async def test_a_wav_file_says_how_long_it_is(program: Program, worker: Loop) -> None:
    body = {"model": "tts-1", "input": {"text": "Good morning. Good evening."}}
    task = await program.follow(await program.create(SPEECH, body))
    file = await program.fetch(task["output"]["url"])
    with wave.open(io.BytesIO(file)) as sound:
        assert sound.getnframes() * 2 == len(file) - WAV_HEADER_BYTES


@pytest.mark.parametrize(("form", "codec"), [("wav", "pcm_s16le"), ("opus", "opus")])
async def test_a_long_text_is_spoken(program: Program, worker: Loop, form: str, codec: str) -> None:
    body = {"model": "tts-1", "input": {"text": "Good morning. " * 12}, "parameters": {"format": form}}
    task = await program.follow(await program.create(SPEECH, body))
    assert task["usage"] == {"characters": 14 * 12}
    with av.open(io.BytesIO(await program.fetch(task["output"]["url"]))) as sound:
        assert sound.streams.audio[0].codec_context.name == codec
        seconds = sum(frame.samples / frame.sample_rate for frame in sound.decode(audio=0))
    assert 5 < seconds < 30


async def test_a_file_of_which_no_line_succeeds_fails_with_its_first_reason(program: Program, worker: Loop) -> None:
    async with files_at({"in": b"\xff\nno\0text\n"}) as at:
        body = {"model": "text-embedding-v4", "input": {"url": at("in")}}
        output = (await program.follow(await program.create(EMBEDDING, body)))["output"]
    assert (output["task_status"], output["code"]) == ("FAILED", "InvalidParameter")
    assert output["message"] == "The line is not UTF-8."


async def lines_after(program: Program, file: bytes, **parameters: Any) -> list[dict[str, Any]]:
    async with files_at({"in": file}) as at:
        body = {"model": "text-embedding-v4", "input": {"url": at("in")}, "parameters": parameters}
        task = await program.follow(await program.create(EMBEDDING, body))
    return [json.loads(line) for line in (await program.fetch(task["output"]["url"])).splitlines()]


async def test_a_line_that_is_too_long_fails_alone(program: Program, worker: Loop) -> None:
    found = await lines_after(program, b"\n".join([b"Hello", b" " * (3 * MAX_LINE_BYTES) + b"x", b"Hello again"]))
    assert [line["line"] for line in found] == [0, 1, 2]
    assert ["error" in line for line in found] == [False, True, False]
    assert "longer than" in found[1]["error"]["message"]


async def test_a_mark_of_byte_order_is_no_part_of_a_text(program: Program, worker: Loop) -> None:
    marked = await lines_after(program, "\ufeffone\r\ntwo".encode(), dimension=64)
    plain = await lines_after(program, b"one\ntwo", dimension=64)
    assert marked == plain
    async with files_at({"in": "\ufeff\r\n".encode()}) as at:
        body = {"model": "text-embedding-v4", "input": {"url": at("in")}}
        task = await program.follow(await program.create(EMBEDDING, body))
    assert task["output"]["message"] == "The file holds no lines."


async def test_each_line_of_a_text_is_embedded(program: Program, worker: Loop) -> None:
    async with files_at({"in": "ein Wort\nzwei Wörter\n".encode()}) as at:
        body = {"model": "text-embedding-v4", "input": {"url": at("in")}, "parameters": {"dimension": 256}}
        task = await program.follow(await program.create(EMBEDDING, body))
    found = [json.loads(line) for line in (await program.fetch(task["output"]["url"])).splitlines()]
    assert [len(line["embedding"]) for line in found] == [256, 256]
    assert found[0]["embedding"] != found[1]["embedding"]
    assert task["usage"]["total_tokens"] == sum(line["usage"]["total_tokens"] for line in found) > 0


async def test_vectors_of_words_come_where_they_are_asked_for(program: Program, worker: Loop) -> None:
    async with files_at({"in": b"rivers and lakes\n"}) as at:
        body = {"model": "text-embedding-v4", "input": {"url": at("in")}, "parameters": {"output_type": "dense&sparse"}}
        task = await program.follow(await program.create(EMBEDDING, body))
    line = json.loads(await program.fetch(task["output"]["url"]))
    assert len(line["embedding"]) == 1024
    assert {"index", "value", "token"} == set(line["sparse_embedding"][0])


async def test_what_can_never_be_done_is_refused_at_once(program: Program, settings: Any) -> None:
    settings.FETCH_ALLOWED_NETWORKS = []
    refused = [
        (TRANSCRIPTION, {"model": "no-such", "input": {"file_urls": ["https://example.org/a"]}}, 404),
        (TRANSCRIPTION, {"model": "whisper-1", "input": {"file_urls": []}}, 400),
        (TRANSCRIPTION, {"model": "whisper-1", "input": {"file_urls": ["http://127.0.0.1/a.wav"]}}, 400),
        (TRANSCRIPTION, {"model": "whisper-1", "input": {"file_urls": ["file:///etc/passwd"]}}, 400),
        (EMBEDDING, {"model": "text-embedding-v4", "input": {"url": "ftp://example.org/"}}, 400),
        (EMBEDDING, {"model": "text-embedding-v4", "input": {"texts": ["a"]}}, 400),
        (SPEECH, {"model": "tts-1", "input": {"text": ""}}, 400),
        (SPEECH, {"model": "tts-1", "input": {"text": "  \n "}}, 400),
    ]
    for kind, body, status in refused:
        answer = await program.post(f"/api/v1/services/{kind}", body, **{"X-DashScope-Async": "enable"})
        assert answer.status_code == status, (kind, body, answer.content)
        assert answer.json()["message"]


@pytest.mark.parametrize(
    ("model", "parameters", "said"),
    [
        ("text-embedding-v4", {"dimension": 77}, "dimension"),
        ("text-embedding-v4", {"instruct": "word " * 9000}, "longer"),
        ("text-embedding-v3", {"dimension": 2048}, "dimension"),
        ("text-embedding-v3", {"instruct": "Find it."}, "instruct"),
        ("text-embedding-async-v2", {"dimension": 1024}, "1536"),
    ],
)
async def test_what_every_line_would_be_refused_for_is_refused_at_once(
    program: Program, model: str, parameters: dict[str, Any], said: str
) -> None:
    body = {"model": model, "input": {"url": "http://127.0.0.1/in"}, "parameters": parameters}
    answer = await program.post(f"/api/v1/services/{EMBEDDING}", body, **{"X-DashScope-Async": "enable"})
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParameter"), answer.content
    assert said in answer.json()["message"]


async def test_a_path_of_tasks_wants_to_be_asked_for_one(program: Program) -> None:
    body = {"model": "tts-1", "input": {"text": "Hello."}}
    answer = await program.post(f"/api/v1/services/{SPEECH}", body)
    assert (answer.status_code, answer.json()["code"]) == (403, "AccessDenied")
    assert "synchronous" in answer.json()["message"]
    other = await program.post(f"/api/v1/services/{SPEECH}", body, **{"X-Service-Async": "enable"})
    assert other.status_code == 200
