"""Our end of the pipe to the speaking program: start it, hand it texts, take its sound apart by request.

Many conversations share one program. It makes speech a thousand times faster than it is heard, so a request is served
in milliseconds and no listener waits long behind another; what a slow listener has not taken yet is bounded by the
length of one text. A listener who leaves is forgotten: the rest of his text is read and dropped.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import IO

from voiceapp.engines.espeak.child import END, HEADER, HELLO
from voiceapp.engines.models.lanes import LaneFull
from voiceapp.errors import EngineUnavailable

PROGRAM = Path(__file__).with_name("child.py")
START_S = 15.0
MAX_PENDING = 32
"""Texts waiting in the program. Each is at most about 1,500 bytes long, so that all of them fit into the pipe and
writing never waits."""
INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
"""Environment variables that the program may see: no secrets."""


class ProgramDied(Exception):
    def __init__(self, *, at_fault: bool) -> None:
        super().__init__()
        self.at_fault = at_fault
        """True if it was working on this very text."""


class _Listener:
    """Receiver of the sound of one text; fed by the reading thread, read in the loop that asked."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[bytes | ProgramDied | None] = asyncio.Queue()

    def put(self, item: bytes | ProgramDied | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._arrived.put_nowait, item)
        except RuntimeError:
            return  # that loop is closed

    async def get(self) -> bytes | ProgramDied | None:
        return await self._arrived.get()


class EspeakProcess:
    def __init__(self, program: Path = PROGRAM, *, patience_s: float = 5.0) -> None:
        """Start the program; blocks some 50 ms until it is ready.

        `patience_s` is the longest wait for the next sound of a text: it takes milliseconds, so beyond that it hangs.

        Raises:
            EngineUnavailable: if it does not start.
        """
        self._patience_s = patience_s
        self.sample_rate_hz = 0
        self._ids = count(1)
        self._listeners: dict[int, _Listener | None] = {}
        """Listeners in the order of their requests; None when the listener left."""
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._ended = False
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
            [sys.executable, "-P", str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ},
            start_new_session=True,  # Ctrl-C is for the server, which lets responses end first
        )
        threading.Thread(target=self._read, name="espeak-reader", daemon=True).start()
        if not self._ready.wait(START_S) or self._ended:
            self.stop()
            raise EngineUnavailable("The speech synthesizer does not start; see the server's log.")

    @property
    def is_running(self) -> bool:
        return not self._ended

    @property
    def process_id(self) -> int:
        return self._process.pid

    async def speak(self, text: str, *, voice: str, words_per_minute: int, pause: bool) -> AsyncGenerator[bytes, None]:
        """Sound of `text` as it is made; mono int16 at `sample_rate_hz`. `pause` adds the pause that follows it.

        Raises:
            ProgramDied: if the program ends meanwhile.
            LaneFull: if too many texts wait.
            EngineUnavailable: if the program hangs; it is ended then.
        """
        request = {"voice": voice, "wpm": words_per_minute, "pause": pause, "text": text}
        async with aclosing(self._served(request)) as sound:
            async for pcm in sound:
                yield pcm

    async def phonemes(self, clauses: Sequence[str], *, voice: str) -> list[str]:
        """Return a voice's phonemes of each clause, in the International Phonetic Alphabet.

        Raises:
            ProgramDied: if the program ends meanwhile.
            LaneFull: if too many texts wait.
            EngineUnavailable: if the program hangs; it is ended then.
        """
        async with aclosing(self._served({"voice": voice, "clauses": list(clauses)})) as frames:
            written = b"".join([frame async for frame in frames])
        return [str(phonemes) for phonemes in json.loads(written)]

    async def _served(self, request: dict[str, object]) -> AsyncGenerator[bytes, None]:
        listener = _Listener()
        number = self._ask(request, listener)
        try:
            while True:
                try:
                    async with asyncio.timeout(self._patience_s):
                        item = await listener.get()
                except TimeoutError as error:
                    self.stop()
                    raise EngineUnavailable("The speech synthesizer makes no sound.") from error
                if item is None:
                    return
                if isinstance(item, ProgramDied):
                    raise item
                yield item
        finally:
            with self._lock:
                if number in self._listeners:
                    self._listeners[number] = None

    def stop(self) -> None:
        """End the program now; listeners hear that it died."""
        self._ended = True
        self._process.kill()
        self._process.wait()

    def _ask(self, request: dict[str, object], listener: _Listener) -> int:
        with self._lock:
            if self._ended:
                raise ProgramDied(at_fault=False)
            if len(self._listeners) >= MAX_PENDING:
                raise LaneFull("Too many replies are being spoken at once; please try again.")
            number = next(self._ids)
            self._listeners[number] = listener
            line = json.dumps({"id": number, **request}, ensure_ascii=False) + "\n"
            try:
                self._pipe(self._process.stdin).write(line.encode("utf-8", "replace"))
            except BrokenPipeError as error:
                del self._listeners[number]
                raise ProgramDied(at_fault=False) from error
        return number

    def _read(self) -> None:
        """Hand out frames until the program ends. Runs in a thread of its own."""
        pipe = self._pipe(self._process.stdout)
        while (header := _exactly(pipe, HEADER.size)) is not None:
            request, kind, length = HEADER.unpack(header)
            payload = _exactly(pipe, length)
            if payload is None:
                break
            if kind == HELLO:
                (self.sample_rate_hz,) = struct.unpack("<I", payload)
                self._ready.set()
                continue
            with self._lock:
                listener = self._listeners[request]
                if kind == END:
                    del self._listeners[request]
            if listener is not None:
                listener.put(None if kind == END else payload)
        with self._lock:
            self._ended = True
            for place, waiting in enumerate(self._listeners.values()):
                if waiting is not None:
                    waiting.put(ProgramDied(at_fault=place == 0))
            self._listeners.clear()
            self._pipe(self._process.stdin).close()
        self._ready.set()
        pipe.close()
        self._process.wait()

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None  # both were asked for as pipes
        return pipe


def _exactly(pipe: IO[bytes], length: int) -> bytes | None:
    """The next `length` bytes, or None when the stream ends before."""
    parts = bytearray()
    while len(parts) < length:
        part = pipe.read(length - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)
