"""Callers in real time: each says a clip, listens to the answer for a while, pauses, and says the next."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import numpy as np
import websockets
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from tests.bench.clips import RATE_HZ, Clip

CHUNK_SAMPLES = RATE_HZ // 50
"""20 ms in one append."""
ROOM_NOISE = 4.0
"""Standard deviation of the int16 samples between clips: a quiet room, about -78 dB below full scale."""
ANSWER_PATIENCE_S = 6.0
LISTEN_S = 2.0
"""After this much of an answer the caller has heard enough; with pauses, half of all callers talk at any time."""
PAUSE_S = (0.3, 1.0)
PING_EVERY_S = 0.25


@dataclass(slots=True)
class Turn:
    """One clip said, and what came back."""

    clip: str
    reference: str
    answered_ms: float | None = None
    """From sending the last sample of speech to the first audio of the answer; None without one, or when too early."""
    early_ends: int = 0
    """Turns the server ended before the clip's speech did."""
    early_answers: set[str] = field(default_factory=set)
    """Answers the caller began to hear before they had finished speaking."""
    heard: list[str] = field(default_factory=list)
    """What the server understood, turn by turn."""
    errors: list[str] = field(default_factory=list)
    """Codes of error events."""
    metrics: dict[str, int | None] = field(default_factory=dict)
    """As the server measured the answer's stages."""


class Caller:
    """One connection, streaming audio without a gap as a microphone does."""

    def __init__(self, url: str, key: str, *, seed: int) -> None:
        self._url = url
        self._key = key
        self._random = random.Random(seed)
        noise = np.random.default_rng(seed).normal(0, ROOM_NOISE, RATE_HZ)
        self._noise = noise.astype(np.int16)
        self._clip: Clip | None = None
        self._position = 0
        self._said_at = 0.0
        self._said = asyncio.Event()
        self._audio_at = 0.0
        self._answered = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._live: set[str] = set()
        """Answers under way."""
        self._turn: Turn | None = None
        self.turns: list[Turn] = []
        self.is_refused = False
        """By a server that has as many callers as it can."""
        self.pings_ms: list[float] = []

    async def talk(self, clips: Sequence[Clip], *, after_s: float = 0.0) -> None:
        await asyncio.sleep(after_s)
        try:
            await self._talk(clips)
        except InvalidStatus as refused:
            if refused.response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            self.is_refused = True

    async def _talk(self, clips: Sequence[Clip]) -> None:
        async with websockets.connect(
            self._url, additional_headers={"Authorization": f"Bearer {self._key}"}, ping_interval=None
        ) as socket:
            beside = [
                asyncio.create_task(self._microphone(socket)),
                asyncio.create_task(self._listen(socket)),
                asyncio.create_task(self._ping(socket)),
            ]
            try:
                for clip in clips:
                    await asyncio.sleep(self._random.uniform(*PAUSE_S))
                    await self._exchange(socket, clip)
                    for task in beside:
                        if task.done():
                            task.result()
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)

    async def _exchange(self, socket: ClientConnection, clip: Clip) -> None:
        turn = self._turn = Turn(clip.name, clip.reference)
        self._said.clear()
        self._answered.clear()
        self._said_at = self._audio_at = 0.0
        self._clip, self._position = clip, 0
        async with asyncio.timeout(clip.seconds + 10):
            await self._said.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_PATIENCE_S):
                await self._answered.wait()
            if self._audio_at:
                turn.answered_ms = (self._audio_at - self._said_at) * 1000
            async with asyncio.timeout(LISTEN_S):
                await self._idle.wait()
        if self._live:
            await socket.send(json.dumps({"type": "response.cancel"}))
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_PATIENCE_S):
                await self._idle.wait()
        self._clip = None
        self.turns.append(turn)

    async def _microphone(self, socket: ClientConnection) -> None:
        begun = time.monotonic()
        sent = 0
        while True:
            chunk, is_end = self._next_chunk(sent)
            # A chunk can only be sent once its last sample was recorded.
            sent += CHUNK_SAMPLES
            await asyncio.sleep(max(0.0, begun + sent / RATE_HZ - time.monotonic()))
            audio = base64.b64encode(chunk.tobytes()).decode()
            await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            if is_end:
                self._said_at = time.monotonic()
                self._said.set()

    def _next_chunk(self, sent: int) -> tuple[np.ndarray[Any, np.dtype[np.int16]], bool]:
        """20 ms of clip or of room, and whether the last sample of speech is in it."""
        at = sent % len(self._noise)
        room = self._noise[at : at + CHUNK_SAMPLES]
        clip = self._clip
        if clip is None or self._position >= len(clip.pcm):
            return room, False
        chunk = clip.pcm[self._position : self._position + CHUNK_SAMPLES]
        is_end = self._position < clip.end_sample <= self._position + CHUNK_SAMPLES
        self._position += CHUNK_SAMPLES
        return (chunk if len(chunk) == CHUNK_SAMPLES else np.concatenate((chunk, room[len(chunk) :]))), is_end

    async def _listen(self, socket: ClientConnection) -> None:
        async for message in socket:
            now = time.monotonic()
            event = json.loads(message)
            turn = self._turn
            if turn is not None:
                self._take(event, turn, now)

    def _take(self, event: dict[str, Any], turn: Turn, now: float) -> None:
        kind = event["type"]
        if kind == "response.created":
            self._live.add(event["response"]["id"])
            self._idle.clear()
        elif kind == "response.audio.delta":
            if not self._said.is_set():
                turn.early_answers.add(event["response_id"])
            elif not self._answered.is_set():
                if event["response_id"] not in turn.early_answers:
                    self._audio_at = now
                self._answered.set()
        elif kind == "response.done":
            response = event["response"]
            self._live.discard(response["id"])
            if not self._live:
                self._idle.set()
            if self._said.is_set() and response["id"] not in turn.early_answers:
                turn.metrics = response.get("metrics") or {}
        elif kind == "input_audio_buffer.committed" and not self._said.is_set():
            turn.early_ends += 1
        elif kind == "conversation.item.input_audio_transcription.completed":
            turn.heard.append(event["transcript"])
        elif kind == "error" and event["error"]["code"] != "response_cancel_not_active":
            turn.errors.append(event["error"]["code"])

    async def _ping(self, socket: ClientConnection) -> None:
        while True:
            await asyncio.sleep(PING_EVERY_S)
            begun = time.monotonic()
            await (await socket.ping())
            self.pings_ms.append((time.monotonic() - begun) * 1000)


async def typed(url: str, key: str, count: int) -> list[float]:
    """Times from a typed question to the first sound of the answer, in ms, of one conversation."""
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is in Paris?"}]}
    found: list[float] = []
    async with websockets.connect(url, additional_headers={"Authorization": f"Bearer {key}"}) as socket:
        for _ in range(count):
            begun, is_heard = time.monotonic(), False
            await socket.send(json.dumps({"type": "conversation.item.create", "item": message}))
            await socket.send(json.dumps({"type": "response.create"}))
            while (kind := json.loads(await socket.recv())["type"]) != "response.done":
                if kind == "response.audio.delta" and not is_heard:
                    is_heard = True
                    found.append((time.monotonic() - begun) * 1000)
                    await socket.send(json.dumps({"type": "response.cancel"}))
    return found


async def converse(
    url: str, key: str, clips: Sequence[Clip], *, callers: int, turns_each: int, begin_over_s: float
) -> list[Caller]:
    """Let `callers` talk at once; each begins at another place in the list of clips, and all within `begin_over_s`."""
    everybody = [Caller(url, key, seed=number) for number in range(callers)]
    async with asyncio.TaskGroup() as group:
        for number, caller in enumerate(everybody):
            start = number * len(clips) // callers
            said = [clips[(start + turn) % len(clips)] for turn in range(turns_each)]
            group.create_task(caller.talk(said, after_s=number * begin_over_s / callers))
    return everybody
