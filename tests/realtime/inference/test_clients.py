"""Recognition and synthesis with the vendor's own library: its classes as they come, with the address changed."""

from __future__ import annotations

import json
import queue
import threading
import wave
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import dashscope
import numpy as np
import pytest
from dashscope.audio.asr import Recognition, RecognitionCallback, RecognitionResult
from dashscope.audio.tts import SpeechSynthesizer as OlderSynthesizer
from dashscope.audio.tts_v2 import AudioFormat, ResultCallback, SpeechSynthesizer
from websockets.sync.client import ClientConnection, connect

from tests.engines.speech import word_errors
from tests.realtime.product import Product
from tests.realtime.talker import pcm_at
from voiceapp.engines.interfaces import Samples
from voiceapp.engines.sound.sound_files import SoundWriter
from voiceapp.engines.sound.sound_streams import stream_of

Voices = Callable[[str], Samples]

QUESTION = "What is twelve times twelve?"
TEXT = "Good morning. The library opens at nine o'clock."
PATIENCE_S = 30.0
PIECE = 12_800


@pytest.fixture
def product(product: Product, monkeypatch: pytest.MonkeyPatch) -> Product:
    monkeypatch.setattr(dashscope, "base_websocket_api_url", address(product))
    monkeypatch.setattr(dashscope, "api_key", product.keys["good"])
    return product


def address(product: Product) -> str:
    return f"ws://{product.address}/api-ws/v1/inference"


class Notes(RecognitionCallback):
    """What the library calls back with."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []
        self.ended: queue.Queue[str] = queue.Queue()
        self.error: RecognitionResult | None = None

    def on_event(self, result: RecognitionResult) -> None:
        self.results.append(dict(result.get_sentence()))

    def on_complete(self) -> None:
        self.ended.put("complete")

    def on_error(self, result: RecognitionResult) -> None:
        self.error = result
        self.ended.put("error")


def sound_of(samples: Samples, kind: str) -> bytes:
    writer = SoundWriter(kind, 16_000)
    return writer.feed(pcm_at(samples, 16_000)) + writer.finish()


class TestRecognition:
    @pytest.mark.parametrize(("model", "kind"), [("fun-asr-realtime", "pcm"), ("paraformer-realtime-v2", "opus")])
    def test_it_recognizes_a_stream(self, product: Product, voices: Voices, model: str, kind: str) -> None:
        notes = Notes()
        recognition = Recognition(model=model, callback=notes, format=kind, sample_rate=16_000)
        recognition.start()
        data = sound_of(voices(QUESTION), kind)
        for start in range(0, len(data), PIECE):
            recognition.send_audio_frame(data[start : start + PIECE])
        recognition.stop()

        assert notes.ended.get(timeout=PATIENCE_S) == "complete"
        last = notes.results[-1]
        assert word_errors(QUESTION, last["text"]) <= 1
        assert RecognitionResult.is_sentence_end(last)
        assert 0 <= last["begin_time"] < last["end_time"] < 5000

    def test_it_recognizes_a_file(self, product: Product, voices: Voices, tmp_path: Path) -> None:
        path = tmp_path / "question.mp3"
        silence = np.zeros(24_000, dtype=np.float32)
        path.write_bytes(sound_of(np.concatenate([voices(QUESTION), silence, voices(QUESTION)]), "mp3"))

        result = Recognition(model="paraformer-realtime-v2", callback=None, format="mp3", sample_rate=16_000).call(
            str(path)
        )

        assert result.status_code == 200, result
        sentences = result.get_sentence()
        assert [word_errors(QUESTION, found["text"]) <= 1 for found in sentences] == [True, True]
        assert sentences[0]["end_time"] <= sentences[1]["begin_time"]
        assert result.get_usage(sentences[1])["duration"] > 2

    def test_its_error_callback_gets_a_code_and_a_sentence(self, product: Product) -> None:
        notes = Notes()
        recognition = Recognition(model="no-such-model", callback=notes, format="pcm", sample_rate=16_000)
        recognition.start()

        assert notes.ended.get(timeout=PATIENCE_S) == "error"
        assert notes.error is not None
        assert notes.error.code == "ModelNotFound"
        assert notes.error.message == "There is no realtime model 'no-such-model' on this server."


class Sound(ResultCallback):
    """What the library calls back with."""

    def __init__(self) -> None:
        self.data = b""
        self.closed = threading.Event()
        self.message = ""

    def on_data(self, data: bytes) -> None:
        self.data += data

    def on_error(self, message: str) -> None:
        self.message = message

    def on_close(self) -> None:
        self.closed.set()


class TestSynthesis:
    """`dashscope.audio.tts_v2.SpeechSynthesizer`, and the one before it."""

    @pytest.mark.parametrize(
        ("choice", "rate_hz"),
        [(AudioFormat.DEFAULT, 22_050), (AudioFormat.WAV_16000HZ_MONO_16BIT, 16_000)],
    )
    def test_it_speaks_a_text(self, product: Product, choice: AudioFormat, rate_hz: int) -> None:
        sound = SpeechSynthesizer(model="cosyvoice-v2", voice="longxiaochun_v2", format=choice).call(TEXT)

        if choice is AudioFormat.DEFAULT:
            decoder = stream_of("mp3")
            assert decoder is not None
            assert 1 < len(decoder.feed(sound)) / 32_000 < 10
        else:
            with wave.open(BytesIO(sound)) as file:
                assert file.getframerate() == rate_hz
            assert 1 < len(sound) / 2 / rate_hz < 10

    def test_it_speaks_what_comes_in_pieces(self, product: Product) -> None:
        sound = Sound()
        choice = AudioFormat.PCM_24000HZ_MONO_16BIT
        synthesizer = SpeechSynthesizer(model="cosyvoice-v3", voice="longanyang", format=choice, callback=sound)
        for piece in ("Good ", "morning. The libr", "ary opens ", "at nine."):
            synthesizer.streaming_call(piece)
        synthesizer.streaming_complete()

        assert sound.closed.wait(PATIENCE_S)
        assert 1 < len(sound.data) / 48_000 < 10
        assert sound.message == ""

    def test_a_cancelled_one_falls_silent(self, product: Product) -> None:
        sound = Sound()
        choice = AudioFormat.PCM_24000HZ_MONO_16BIT
        synthesizer = SpeechSynthesizer(model="cosyvoice-v3", voice="longanyang", format=choice, callback=sound)
        synthesizer.streaming_call("This is a sentence. " * 200)
        synthesizer.streaming_cancel()

        assert sound.closed.wait(PATIENCE_S)
        assert len(sound.data) / 48_000 < 120

    def test_the_older_class_speaks(self, product: Product) -> None:
        result = OlderSynthesizer.call(model="sambert-cally-v1", text=TEXT, sample_rate=16_000, format="wav")

        assert result.get_response().status_code == 200
        assert 1 < len(result.get_audio_data()) / 32_000 < 10

    def test_it_is_charged_by_the_character(self, product: Product) -> None:
        SpeechSynthesizer(model="cosyvoice-v2", voice="x", format=AudioFormat.PCM_16000HZ_MONO_16BIT).call(
            "Nine lives."
        )

        (row,) = product.rows("select * from accounts_usagerecord where unit = 'characters' and quantity = 11")
        assert row["operation"] == "speech"


def command(action: str, task_id: str = "one", **payload: Any) -> str:
    header = {"action": action, "task_id": task_id, "streaming": "duplex"}
    return json.dumps({"header": header, "payload": {"input": {}, **payload}})


def run(task: str, task_id: str = "one", model: str = "", **parameters: Any) -> str:
    model = model or {"asr": "fun-asr-realtime", "tts": "cosyvoice-v2"}[task]
    return command("run-task", task_id, task=task, task_group="audio", model=model, parameters=parameters)


@pytest.fixture
def line(product: Product) -> Iterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {product.keys['good']}"}
    with connect(address(product), additional_headers=headers, max_size=None, proxy=None) as line:
        yield line


def told(line: ClientConnection) -> dict[str, Any]:
    """The next event."""
    while isinstance(message := line.recv(PATIENCE_S), bytes):
        pass
    found: dict[str, Any] = json.loads(message)
    assert "payload" in found
    return found["header"]


WRONG: dict[str, tuple[list[str | bytes], str, str]] = {
    "continue before run": ([command("continue-task")], "InvalidParameter", "Send run-task first."),
    "finish before run": ([command("finish-task")], "InvalidParameter", "Send run-task first."),
    "audio before run": ([b"\0" * 640], "InvalidParameter", "Audio came before run-task"),
    "two starts": ([run("tts"), run("tts")], "InvalidParameter", "running already"),
    "text for recognition": ([run("asr"), command("continue-task")], "InvalidParameter", "audio in binary frames"),
    "unknown task": ([run("asr").replace('"asr"', '"ocr"')], "InvalidParameter", "must be asr or tts"),
    "unknown action": ([command("dance")], "InvalidParameter", "is unknown"),
    "no JSON": (["{"], "InvalidParameter", "not valid JSON"),
    "wrong rate": ([run("asr", sample_rate=11_025)], "InvalidParameter", "sample_rate must be one of"),
    "wrong format": ([run("asr", format="flac")], "InvalidParameter", "format must be one of"),
    "wrong language": ([run("asr", language_hints=["zh"])], "InvalidParameter", "understands en only"),
    "broken audio": ([run("asr", format="opus"), b"not sound at all" * 9], "InvalidParameter", "cannot be read"),
    "long text": (
        [run("tts"), command("continue-task", input={"text": "a" * 20_001})],
        "InvalidParameter",
        "longer than 20,000",
    ),
    "unknown voice model": ([run("tts", model="bark")], "ModelNotFound", "There is no tts model 'bark'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_fails_the_task_with_a_code_and_a_sentence(line: ClientConnection, name: str) -> None:
    messages, code, words = WRONG[name]
    for message in messages:
        line.send(message)
    header = told(line)
    while header["event"] == "task-started":
        header = told(line)

    assert header["event"] == "task-failed"
    assert header["error_code"] == code
    assert words in header["error_message"]
    with pytest.raises(Exception, match="1000"):
        line.recv(PATIENCE_S)


def test_several_tasks_share_a_connection(line: ClientConnection, voices: Voices) -> None:
    line.send(run("tts", "a", format="pcm"))
    line.send(run("asr", "b"))
    line.send(command("continue-task", "a", input={"text": TEXT}))
    line.send(pcm_at(voices(QUESTION), 16_000))
    line.send(command("finish-task", "a"))
    line.send(command("finish-task", "b"))
    heard = [told(line) for _ in range(2)]
    while sum(header["event"] == "task-finished" for header in heard) < 2:
        heard.append(told(line))

    assert {header["task_id"] for header in heard if header["event"] == "result-generated"} == {"b"}
    line.send(run("tts", "a"))
    assert told(line)["event"] == "task-started"


def test_silence_is_recognized_as_nothing(line: ClientConnection) -> None:
    line.send(run("asr"))
    line.send(bytes(64_000))
    line.send(command("finish-task"))

    assert [told(line)["event"], told(line)["event"]] == ["task-started", "task-finished"]


async def test_a_client_that_vanishes_leaves_nothing_open(product: Product, voices: Voices) -> None:
    headers = {"Authorization": f"Bearer {product.keys['good']}"}
    with connect(address(product), additional_headers=headers, proxy=None) as line:
        line.send(run("asr", "gone"))
        assert told(line)["event"] == "task-started"
        line.send(pcm_at(voices(QUESTION), 16_000))
        line.socket.close()

    still_open = "select 1 from realtime_realtimesession where model = 'fun-asr-realtime' and ended_at is null"
    assert await product.row(f"select 1 as closed where not exists ({still_open})")


async def test_recognition_leaves_the_rows_of_a_session(product: Product, voices: Voices) -> None:
    notes = Notes()
    recognition = Recognition(model="gummy-realtime-v1", callback=notes, format="pcm", sample_rate=16_000)
    recognition.start()
    recognition.send_audio_frame(pcm_at(voices(QUESTION), 16_000))
    recognition.stop()
    session = await product.row(
        "select id, close_code, turn_count from realtime_realtimesession where model = ? and ended_at is not null",
        "gummy-realtime-v1",
    )
    turn = await product.row("select user_text, input_audio_ms from realtime_turn where session_id = ?", session["id"])

    assert (session["close_code"], session["turn_count"]) == (1000, 1)
    assert word_errors(QUESTION, turn["user_text"]) <= 1
    charged = product.rows("select * from accounts_usagerecord where model = 'gummy-realtime-v1'")
    assert [row["operation"] for row in charged] == ["realtime"]


async def test_synthesis_leaves_the_rows_of_a_session(product: Product) -> None:
    SpeechSynthesizer(model="cosyvoice-v1", voice="x", format=AudioFormat.PCM_16000HZ_MONO_16BIT).call(TEXT)
    session = await product.row(
        "select * from realtime_realtimesession where model = ? and ended_at is not null", "cosyvoice-v1"
    )
    turn = await product.row("select * from realtime_turn where session_id = ?", session["id"])

    assert (session["close_code"], session["turn_count"], session["transport"]) == (1000, 1, "websocket")
    assert (turn["assistant_text"], turn["status"]) == (TEXT, "completed")
    assert 1000 < session["output_audio_ms"] < 10_000
    assert not product.rows("select * from accounts_usagerecord where request_id like ?", f"{session['id']}%")


async def test_a_task_whose_client_vanishes_is_recorded(product: Product) -> None:
    headers = {"Authorization": f"Bearer {product.keys['good']}"}
    with connect(address(product), additional_headers=headers, max_size=None, proxy=None) as line:
        line.send(run("tts", model="cosyvoice-v3-flash", format="pcm"))
        line.send(command("continue-task", input={"text": "This is a sentence. " * 200}))
        assert told(line)["event"] == "task-started"
        line.recv(PATIENCE_S)
        line.socket.close()
    session = await product.row(
        "select * from realtime_realtimesession where model = ? and ended_at is not null", "cosyvoice-v3-flash"
    )
    turn = await product.row("select status from realtime_turn where session_id = ?", session["id"])

    assert (session["close_code"], turn["status"]) == (1006, "cancelled")


def test_keys_are_checked_before_the_socket_opens(product: Product) -> None:
    for key, status in (("revoked", "401"), ("elsewhere", "403")):
        with pytest.raises(Exception, match=status):
            connect(address(product), additional_headers={"Authorization": f"Bearer {product.keys[key]}"}, proxy=None)
