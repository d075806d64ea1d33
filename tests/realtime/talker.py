"""A program that talks to the realtime socket: a microphone in real time, a loudspeaker, and everything it was told."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
import websockets
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.engines.sound.resampling import InputConverter
from voiceapp.protocol.audio import AudioFormat

Event = dict[str, Any]
PATIENCE_S = 25.0
PIECE_MS = 20


@dataclass(frozen=True)
class Heard:
    """An event and when it came (`time.monotonic`)."""

    at: float
    event: Event


class EventsHeard:
    """What a caller was told, in order, and ways to wait for more of it."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.close_code: int | None = None
        self.is_closed = False
        self.asked_at = 0.0
        """When the last typed question was sent."""
        self._news = asyncio.Condition()

    async def wait(self, type_: str, *, count: int = 1, timeout_s: float = PATIENCE_S) -> Event:
        try:
            await self.until(lambda: len(self.all(type_)) >= count, timeout_s=timeout_s)
        except TimeoutError:
            raise AssertionError(f"no {type_}: {self.types}") from None
        found = self.all(type_)
        assert len(found) >= count, f"closed with {self.close_code} before {type_}: {self.types}"
        return found[count - 1]

    async def until(self, is_so: Callable[[], object], *, timeout_s: float = PATIENCE_S) -> None:
        """Until something told or heard makes it so, or the session is over."""
        async with asyncio.timeout(timeout_s), self._news:
            await self._news.wait_for(lambda: is_so() or self.is_closed)

    async def wait_closed(self, timeout_s: float = PATIENCE_S) -> int | None:
        async with asyncio.timeout(timeout_s), self._news:
            await self._news.wait_for(lambda: self.is_closed)
        return self.close_code

    def all(self, type_: str) -> list[Event]:
        return [heard.event for heard in self.heard if heard.event["type"] == type_]

    def at(self, type_: str, *, count: int = 1) -> float:
        """When the `count`th event of this type came."""
        return [heard.at for heard in self.heard if heard.event["type"] == type_][count - 1]

    @property
    def types(self) -> list[str]:
        """The kinds of events in order, repetitions of one kind shown once."""
        return in_order(heard.event["type"] for heard in self.heard)

    async def send(self, type_: str, **fields: Any) -> None:
        raise NotImplementedError

    async def ask(self, text: str, **response: Any) -> None:
        """Type instead of speaking."""
        self.asked_at = time.monotonic()
        content = [{"type": "input_text", "text": text}]
        await self.send("conversation.item.create", item={"type": "message", "role": "user", "content": content})
        await self.send("response.create", **({"response": response} if response else {}))

    async def _note(self, event: Event) -> None:
        async with self._news:
            self.heard.append(Heard(time.monotonic(), event))
            self._news.notify_all()

    async def _end(self) -> None:
        async with self._news:
            self.is_closed = True
            self._news.notify_all()


class Talker(EventsHeard):
    """One conversation from the caller's side."""

    def __init__(self, socket: ClientConnection, *, input_rate_hz: int = 16_000, output_rate_hz: int = 24_000) -> None:
        super().__init__()
        self.socket = socket
        self.spoken_at = 0.0
        """When the last sample of the last utterance was sent."""
        self._input_rate_hz = input_rate_hz
        self._output_rate_hz = output_rate_hz
        self._voice: asyncio.Queue[bytes] = asyncio.Queue()
        self._said = asyncio.Event()

    # ── Speaking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def send(self, type_: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type_, **fields}))

    async def append(self, pcm: bytes) -> None:
        await self.send("input_audio_buffer.append", audio=base64.b64encode(pcm).decode())

    async def say(self, speech: Samples) -> None:
        """Speak into the microphone; returns when the last sample was sent."""
        pcm = pcm_at(speech, self._input_rate_hz)
        size = self._input_rate_hz * PIECE_MS // 1000 * 2
        self._said.clear()
        for start in range(0, len(pcm), size):
            self._voice.put_nowait(pcm[start : start + size].ljust(size, b"\0"))
        await self._said.wait()

    async def microphone(self) -> None:
        """Send sound for ever, in real time: what `say` queued, silence otherwise."""
        silence = bytes(self._input_rate_hz * PIECE_MS // 1000 * 2)
        due = time.monotonic()
        while True:
            try:
                pcm = self._voice.get_nowait()
            except asyncio.QueueEmpty:
                pcm = silence
            await self.append(pcm)
            if pcm is not silence and self._voice.empty():
                self.spoken_at = time.monotonic()
                self._said.set()
            due += PIECE_MS / 1000
            await asyncio.sleep(due - time.monotonic())

    # ── Listening ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def listen(self) -> None:
        """Collect what comes until the connection ends."""
        with contextlib.suppress(ConnectionClosed):
            async for text in self.socket:
                await self._note(json.loads(text))
        self.close_code = self.socket.close_code
        await self._end()

    def audio(self, response_id: str | None = None) -> bytes:
        """The reply's PCM."""
        deltas = self.all("response.audio.delta")
        wanted = [delta for delta in deltas if response_id in (None, delta["response_id"])]
        return b"".join(base64.b64decode(delta["delta"]) for delta in wanted)

    def audio_ms(self, event: Event) -> float:
        return len(base64.b64decode(event["delta"])) / 2 / self._output_rate_hz * 1000


@contextlib.asynccontextmanager
async def call(
    url: str,
    key: str | None = None,
    *,
    model: str | None = "voice",
    headers: dict[str, str] | None = None,
    origin: str | None = None,
    address: str | None = None,
    has_microphone: bool = False,
    query: str = "",
    awaits: str = "session.created",
    **rates: int,
) -> AsyncIterator[Talker]:
    """An open conversation, its `session.created` read, or what else it `awaits`.

    `query` is what the URL says besides the model.
    `address` is where to connect, when it is not where the URL points. Raises InvalidStatus for a refused handshake.
    """
    sent = dict(headers or {})
    if key is not None:
        sent["Authorization"] = f"Bearer {key}"
    if address is not None:
        host, _, port = address.rpartition(":")
        place: dict[str, Any] = {"host": host, "port": int(port)}
    else:
        place = {}
    async with (
        websockets.connect(
            url if model is None else f"{url}?model={model}{query}",
            additional_headers=sent,
            origin=origin,  # type: ignore[arg-type]
            max_size=None,
            proxy=None,
            open_timeout=20,
            **place,
        ) as socket,
        asyncio.TaskGroup() as tasks,
    ):
        talker = Talker(socket, **rates)
        running = [tasks.create_task(talker.listen())]
        try:
            await talker.wait(awaits)
            if has_microphone:
                running.append(tasks.create_task(_until_closed(talker.microphone())))
            yield talker
        finally:
            for task in running:
                task.cancel()


async def _until_closed(talking: Any) -> None:
    with contextlib.suppress(ConnectionClosed):
        await talking


def in_order(types: Iterable[str]) -> list[str]:
    """Without immediate repetitions."""
    found: list[str] = []
    for type_ in types:
        if not found or found[-1] != type_:
            found.append(type_)
    return found


def pcm_at(speech: Samples, rate_hz: int) -> bytes:
    pcm = (np.clip(speech, -1, 1) * 32767).astype("<i2")
    if rate_hz == ENGINE_SAMPLE_RATE_HZ:
        return pcm.tobytes()
    resampler = av.AudioResampler(format="s16", layout="mono", rate=rate_hz)
    frame = av.AudioFrame.from_ndarray(pcm[None], format="s16", layout="mono")
    frame.sample_rate = ENGINE_SAMPLE_RATE_HZ
    frames = [*resampler.resample(frame), *resampler.resample(None)]
    return np.concatenate([part.to_ndarray()[0] for part in frames]).tobytes()


def samples_at(pcm: bytes, rate_hz: int) -> Samples:
    """The way back: int16 PCM at some rate as samples at 16 kHz."""
    converter = InputConverter(AudioFormat("pcm", rate_hz))
    return np.concatenate((converter.convert(pcm), converter.flush()))
