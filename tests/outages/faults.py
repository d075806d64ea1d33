"""A network that a test makes bad: a TCP proxy that delays, narrows, cuts and forgets its connections."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tests.loop_thread import LoopThread

CHUNK = 16_384
PIECES_PER_S = 20
"""Of a narrowed connection."""


@dataclass
class Faults:
    """What happens to bytes, in both directions."""

    delay_s: float = 0.0
    """Each piece is on its way for so long."""
    bytes_per_s: int = 0
    """No more than that pass in a second and direction; 0 lets all pass."""
    is_half_open: bool = False
    """Connections stand and are accepted, and nothing passes any more."""
    is_silent: bool = False
    """Nothing that the server says arrives; nothing is lost either."""
    is_refusing: bool = False
    """New connections are cut at once."""


class FaultProxy:
    """Listens on `port` of 127.0.0.1, on a thread of its own. All methods may be called from any thread."""

    def __init__(self, target_port: int) -> None:
        self.faults = Faults()
        self.refused = 0
        self._target_port = target_port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = LoopThread()
        self._server = self._loop.run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Break every connection without a word."""

        def cut() -> None:
            for writer in self._writers:
                writer.transport.abort()

        self._loop.call(cut)

    def set_down(self, is_down: bool) -> None:
        """While down, no connection stands and none is made."""
        self.faults.is_refusing = is_down
        if is_down:
            self.cut()

    def close(self) -> None:
        async def close() -> None:
            self._server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        self._loop.run(close())
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        ends = {writer}
        self._writers.add(writer)
        try:
            if self.faults.is_refusing:
                self.refused += 1
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
            ends.add(far_writer)
            self._writers.add(far_writer)
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(reader, far_writer, is_reply=False))
                pumps.create_task(self._pump(far_reader, writer, is_reply=True))
        except* OSError:
            pass
        finally:
            for end in ends:
                self._writers.discard(end)
                end.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_reply: bool) -> None:
        while data := await reader.read(self.faults.bytes_per_s // PIECES_PER_S or CHUNK):
            # What it waits for is said from another thread.
            while self.faults.is_half_open or (is_reply and self.faults.is_silent):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            if self.faults.delay_s:
                await asyncio.sleep(self.faults.delay_s)
            if self.faults.bytes_per_s:
                await asyncio.sleep(len(data) / self.faults.bytes_per_s)
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
