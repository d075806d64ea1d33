"""A task of recognition: a session that only transcribes, whose events are written as results of the task.

Audio in binary frames goes in, sentences with their times come out; admission, seats, charges and rows are those of any
session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from voiceapp.engines.sound.sound_streams import stream_of
from voiceapp.errors import ClientSilent, InvalidParameter
from voiceapp.protocol import run_task as wire
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import SessionConfig, merge
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.values import read_integer, read_text
from voiceapp.realtime.inference.sentences import Sentence, Sentences
from voiceapp.realtime.inference.task import Say, TaskTransport
from voiceapp.realtime.transports.limits import MAX_UNHEARD_BYTES

PIECE_BYTES = 256
"""Compressed audio is decoded in pieces: a few bytes may be minutes of silence."""
SLICE_MS = 500
"""Audio is heard in slices, so that a recording in one frame does not hold up others."""
SILENCE_S = 23.0
"""A task whose client sends nothing for this long fails, as the vendor's do."""
AHEAD_MS = 15_000
RATE = 1.9
"""A recording is heard so many times as fast as it was spoken, but for its first seconds: a session ends with a client
who keeps above 2."""
USUAL_SILENCE_MS = 800
DECODED = AudioFormat("pcm", 16_000)


def settings_of(parameters: dict[str, Any], languages: tuple[str, ...]) -> tuple[dict[str, Any], str, int]:
    """A task's parameters as the settings of a session, the name of its audio's format, and its sample rate.

    Raises:
        InvalidParameter: if one of them is of the wrong type, or asks for what does not exist here.
    """
    kind = read_text(parameters.get("format") or "pcm", "parameters.format", limit=16).lower()
    rate = read_integer(parameters.get("sample_rate") or 16_000, "parameters.sample_rate", 8_000, 48_000)
    is_pcm = stream_of(kind) is None
    silence_ms = read_integer(
        parameters.get("max_sentence_silence") or USUAL_SILENCE_MS, "parameters.max_sentence_silence", 200, 6000
    )
    opening: dict[str, Any] = {
        "modalities": ["text"],
        "audio": {"input": {"format": {"type": kind, "sample_rate": rate} if is_pcm else {"type": "pcm"}}},
        "turn_detection": {"type": "server_vad", "silence_duration_ms": silence_ms},
    }
    if language := _language(parameters.get("language_hints"), languages):
        opening["input_audio_transcription"] = {"language": language}
    accepted = merge(SessionConfig(model="", voice=""), opening)  # refused here, before the session begins
    return opening, kind, accepted.input_format.sample_rate_hz


def _language(hints: object, languages: tuple[str, ...]) -> str | None:
    if not hints:
        return None
    given = [str(hint) for hint in hints] if isinstance(hints, list) else [str(hints)]
    if not languages:
        return given[0]  # any, or those of a server that did not name them
    known = next((hint for hint in given if hint.split("-")[0].lower() in languages), None)
    if known is None:
        raise InvalidParameter(
            f"language_hints: this model understands {', '.join(languages)} only.", param="parameters.language_hints"
        )
    return known


class Unheard:
    """Counts the audio that waits in the tasks of one connection."""

    def __init__(self) -> None:
        self._bytes = 0
        self._heard = asyncio.Event()

    async def add(self, size: int) -> None:
        """Count `size` bytes when there is room; any number fits where little waits."""
        while self._bytes >= MAX_UNHEARD_BYTES:
            self._heard.clear()
            await self._heard.wait()
        self._bytes += size

    def remove(self, size: int) -> None:
        self._bytes -= size
        self._heard.set()


class RecognitionTransport(TaskTransport):
    """A task of recognition as the transport of its session."""

    def __init__(self, task_id: str, say: Say, kind: str, rate_hz: int, unheard: Unheard) -> None:
        """`kind` and `rate_hz` are those of the client's audio."""
        super().__init__(task_id, say)
        self._decoder = stream_of(kind)
        self._format = DECODED if self._decoder else AudioFormat("pcm", rate_hz)
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        """None: nothing more follows."""
        self._unheard = unheard
        self._own_bytes = 0
        """This task's part of what is unheard."""
        self._read_bytes = 0
        """Bytes of the frame that is being heard."""
        self._undecoded = memoryview(b"")
        """Rest of the frame that is being read."""
        self._slices: deque[bytes] = deque()
        self._rest = b""
        self._now = asyncio.get_running_loop().time
        self._began_at: float | None = None
        self._heard_ms = 0.0
        self._sentences = Sentences()

    # ── From the connection ──────────────────────────────────────────────────────────────────────────────────────────

    async def hear(self, data: bytes) -> None:
        """Take a binary frame; waits while too much was not heard yet."""
        await self._unheard.add(len(data))
        self._own_bytes += len(data)
        if self.is_over:
            self._forget(self._own_bytes)
        else:
            self._arrived.put_nowait(data)

    def take(self, command: wire.RunCommand) -> None:
        """A command that follows `run-task`."""
        if isinstance(command, wire.FinishTask):
            self._arrived.put_nowait(None)

    def _forget(self, size: int) -> None:
        self._own_bytes -= size
        self._read_bytes = 0
        self._unheard.remove(size)

    def lose(self, code: int) -> None:
        super().lose(code)
        self._undecoded = memoryview(b"")
        self._slices.clear()
        self._arrived = asyncio.Queue()
        self._forget(self._own_bytes)

    # ── The session's transport ──────────────────────────────────────────────────────────────────────────────────────

    async def receive(self) -> ev.ClientEvent:
        while not self._slices:
            if not self._undecoded:
                self._forget(self._read_bytes)
                if (data := await self._next()) is None:
                    return ev.SessionFinish()
                self._undecoded = memoryview(data)
                self._read_bytes = len(data)
            self._cut(self._decoded_piece())
        audio = self._slices.popleft()
        await self._keep_pace(self._format.duration_ms(len(audio)))
        return ev.AudioAppend(audio=audio)

    def _decoded_piece(self) -> bytes:
        """PCM of the next piece of the frame that is being read."""
        size = PIECE_BYTES if self._decoder else len(self._undecoded)
        piece, self._undecoded = bytes(self._undecoded[:size]), self._undecoded[size:]
        return self._decoder.feed(piece) if self._decoder else piece

    async def _next(self) -> bytes | None:
        """The next frame; None when nothing more follows.

        Raises:
            ClientSilent: if nothing comes for too long.
            Disconnected: if the task is given up, or its client is gone.
        """
        self.check_lost()
        arrival = asyncio.ensure_future(self._arrived.get())
        try:
            await asyncio.wait((arrival, self._lost), timeout=SILENCE_S, return_when=asyncio.FIRST_COMPLETED)
            if arrival.done():
                return arrival.result()
        finally:
            arrival.cancel()
        self.check_lost()
        raise ClientSilent(SILENCE_S)

    def _cut(self, pcm: bytes) -> None:
        """Whole samples in slices; a byte that is left over waits for the next frame."""
        pcm = self._rest + pcm
        whole = len(pcm) // 2 * 2
        self._rest = pcm[whole:]
        size = self._format.size(SLICE_MS)
        self._slices += [pcm[start : min(start + size, whole)] for start in range(0, whole, size)]

    async def _keep_pace(self, audio_ms: float) -> None:
        now = self._now()
        self._began_at = now if self._began_at is None else self._began_at
        self._heard_ms += audio_ms
        due = self._began_at + (self._heard_ms - AHEAD_MS) / RATE / 1000
        if due > now:
            await asyncio.wait((self._lost,), timeout=due - now)
        self.check_lost()

    async def send(self, event: ev.ServerEvent) -> None:
        if self.is_over:
            return
        if isinstance(event, ev.SessionCreated):
            await self.started()
        for sentence in self._sentences.take(event, round(self._heard_ms)):
            await self._result(sentence)
        if isinstance(event, ev.TranscriptionFailed):
            await self.fail(str(event.error["code"]), str(event.error["message"]))
        elif isinstance(event, ev.ErrorEvent):
            await self.fail(event.code, event.message)
        elif isinstance(event, ev.SessionFinished):
            await self.finished({"duration": self._duration_s})

    async def _result(self, sentence: Sentence) -> None:
        found = wire.sentence(sentence.number, sentence.text, begin_ms=sentence.begin_ms, end_ms=sentence.end_ms)
        usage = None if sentence.end_ms is None else {"duration": self._duration_s}
        await self._say(wire.result_generated(self._task_id, found, usage))

    @property
    def _duration_s(self) -> int:
        return -(-round(self._heard_ms) // 1000)
