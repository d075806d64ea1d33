"""The classes of the vendor's library for the inference dialect, on a connection that notes what they do with it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self
from unittest.mock import patch

import aiohttp
import pytest
from dashscope.audio.asr import Recognition, RecognitionCallback
from dashscope.audio.tts import SpeechSynthesizer as OlderSynthesizer
from dashscope.audio.tts_v2 import ResultCallback, SpeechSynthesizer
from dashscope.common.error import RequestFailure

from voiceapp.protocol import run_task as wire

Json = dict[str, Any]

TEXT = "Hello."
KEY = "sk-1"
FAILURE = "ModelNotFound"
PATIENCE_S = 60
PART = wire.sentence(1, "Hel", begin_ms=0)
SENTENCE = wire.sentence(1, TEXT, begin_ms=0, end_ms=900)


@dataclass
class Told:
    sent: list[tuple[str, Json | bytes]] = field(default_factory=list)
    """Methods, and the command or the audio that each sent; one that sent several has several."""
    read: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By event of the server: the fields that the class looked at."""


Exchange = Callable[[], Told]
Method = Callable[[Json | bytes], str]
"""The method that sends a command, or audio."""


class Noted(dict[str, Any]):
    def __init__(self, fields: Json, read: set[str], place: str = "") -> None:
        inner = {
            name: Noted(value, read, f"{place}{name}.") if isinstance(value, dict) else value
            for name, value in fields.items()
        }
        super().__init__(inner)
        self._read = read
        self._place = place

    def __getitem__(self, name: str) -> Any:
        self._note(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._note(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._note(name)
        return super().get(name, default)

    def _note(self, name: str) -> None:
        self._read.add(f"{self._place}{name}")


def noted(event: Json, told: Told) -> Noted:
    return Noted(event, told.read[event["header"]["event"]])


def answers(command: Json, *, fails: bool) -> list[Json]:
    header = command["header"]
    task_id, is_whole = header["task_id"], header["streaming"] == "out"
    done = [
        wire.result_generated(task_id, PART),
        wire.result_generated(task_id, SENTENCE, {"duration": 1}),
        wire.task_finished(task_id, {"duration": 1}, has_output=not is_whole),
    ]
    if header["action"] == "finish-task":
        return done
    if header["action"] != "run-task":
        return []
    if fails:
        return [wire.task_failed(task_id, FAILURE, "There is no such model.")]
    return [wire.task_started(task_id), *(done if is_whole else ())]


class Line:
    """What the library's requests take for their session of `aiohttp`, and for the connection that it opens."""

    closed = False

    def __init__(self, told: Told, method: Method, begun: threading.Event | None, *, fails: bool) -> None:
        self._told = told
        self._method = method
        self._begun = begun
        self._fails = fails
        self._answers: asyncio.Queue[Json] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """The connection ends with its task."""

    def ws_connect(self, *_: object, **__: object) -> Self:
        return self

    async def send_str(self, text: str) -> None:
        command = json.loads(text)
        self._told.sent.append((self._method(command), command))
        for event in answers(command, fails=self._fails):
            self._answers.put_nowait(event)

    async def send_bytes(self, audio: bytes) -> None:
        self._told.sent.append((self._method(audio), audio))

    async def receive(self) -> SimpleNamespace:
        if self._begun is not None:
            await asyncio.to_thread(self._begun.wait, PATIENCE_S)
        event = await self._answers.get()
        return SimpleNamespace(type=aiohttp.WSMsgType.TEXT, json=lambda: noted(event, self._told))


@contextmanager
def lines(told: Told, method: Method, begun: threading.Event | None = None, *, fails: bool = False) -> Iterator[None]:
    """Connections of the library's requests lead to `Line`; the server answers when `begun` is set."""

    def session(**_: object) -> Line:
        return Line(told, method, begun, fails=fails)

    with patch.object(aiohttp, "ClientSession", session), patch("dashscope.api_key", KEY):
        yield


class Ends(RecognitionCallback):
    def __init__(self) -> None:
        self.over = threading.Event()

    def on_complete(self) -> None:
        self.over.set()


STREAMED = {"run-task": "start", "continue-task": "update_context", "finish-task": "stop"}


def recognition() -> Told:
    """`Recognition`: the methods of a stream in order, then a task that fails."""
    told, ends, begun = Told(), Ends(), threading.Event()

    def method(sent: Json | bytes) -> str:
        return "send_audio_frame" if isinstance(sent, bytes) else STREAMED[sent["header"]["action"]]

    with lines(told, method, begun):
        client = Recognition("fun-asr-realtime", ends, "pcm", 16_000)
        client.start()
        begun.set()
        client.send_audio_frame(bytes(640))
        client.update_context({"messages": []})
        client.stop()
        assert ends.over.wait(PATIENCE_S)
    with lines(Told(read=told.read), lambda _: "call", fails=True):
        any_file = __file__  # the task fails before it is sent
        assert Recognition("no-such-model", None, "pcm", 16_000).call(any_file).code == FAILURE
    return told


def older_synthesis() -> Told:
    """`tts.SpeechSynthesizer`, which sends a whole text with its command; then a task that fails."""
    told = Told()
    with lines(told, lambda _: "call"):
        assert OlderSynthesizer.call("sambert-cally-v1", TEXT).get_timestamps() == [SENTENCE["sentence"]]
    with lines(Told(read=told.read), lambda _: "call", fails=True):
        assert OlderSynthesizer.call("no-such-model", TEXT).get_response().code == FAILURE
    return told


class Socket:
    """What the newer synthesizer takes for its connection."""

    def __init__(self, client: SpeechSynthesizer, told: Told, *, fails: bool) -> None:
        self.sock = SimpleNamespace(connected=True)
        self.method = ""
        self._client = client
        self._told = told
        self._fails = fails

    def send(self, text: str) -> None:
        command = json.loads(text)
        self._told.sent.append((self.method, command))
        for event in answers(command, fails=self._fails):
            with patch.object(json, "loads", lambda _, event=event: noted(event, self._told)):
                self._client.on_message(self, json.dumps(event))

    def close(self) -> None:
        self.sock.connected = False


def synthesis() -> Told:
    """`tts_v2.SpeechSynthesizer`: its methods in several tasks, then a task that fails."""
    told = Told()
    for ending in ("streaming_complete", "streaming_cancel"):
        client, socket = synthesizer(told, ResultCallback())
        for socket.method, given in (("streaming_call", (TEXT,)), ("streaming_flush", ()), (ending, ())):
            getattr(client, socket.method)(*given)
    client, socket = synthesizer(told)
    socket.method = "call"
    client.call(TEXT)
    client, _ = synthesizer(Told(read=told.read), fails=True)
    with pytest.raises(RequestFailure, match=FAILURE):
        client.call(TEXT)
    return told


def synthesizer(
    told: Told, callback: ResultCallback | None = None, *, fails: bool = False
) -> tuple[SpeechSynthesizer, Socket]:
    """One that is connected; one object runs one task."""
    with patch("dashscope.api_key", KEY):
        client = SpeechSynthesizer("cosyvoice-v2", "longxiaochun_v2", callback=callback)
    client.ws = socket = Socket(client, told, fails=fails)
    return client, socket
