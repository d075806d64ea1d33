"""A network that the tests can hold, cut and mend: a TCP proxy in front of the server."""

from __future__ import annotations

import asyncio
import contextlib

from tests.loop_thread import LoopThread


class Proxy:
    """Listens on `port` of 127.0.0.1. All methods may be called from any thread."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._is_down = False
        self.refused = 0
        """Connections dropped while down."""
        self._connections: set[asyncio.Task[None]] = set()
        self._sockets: set[asyncio.Task[None]] = set()
        self._loop = LoopThread()
        self._server = self._loop.run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def hold(self) -> None:
        """Nothing that the server says on a WebSocket arrives any more; nothing is lost either."""
        self._loop.call(self._flowing.clear)

    def release(self) -> None:
        self._loop.call(self._flowing.set)

    def cut(self) -> None:
        """Break every open WebSocket without a word."""

        def cut() -> None:
            for task in self._sockets:
                task.cancel()

        self._loop.call(cut)

    def set_down(self, is_down: bool) -> None:
        """While down, new connections are dropped at once, and so are idle ones of plain HTTP."""

        def set_down() -> None:
            self._is_down = is_down
            for task in self._connections - self._sockets if is_down else ():
                task.cancel()

        self._loop.call(set_down)

    def close(self) -> None:
        async def close() -> None:
            self._server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

        self._loop.run(close())
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_down:
            self.refused += 1
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        head = await reader.read(65536)
        if b"upgrade: websocket" in head.lower():
            self._sockets.add(task)
            task.add_done_callback(self._sockets.discard)
            flowing = self._flowing
        else:
            flowing = asyncio.Event()
            flowing.set()
        far_writer.write(head)
        always = asyncio.Event()
        always.set()
        pumps = [
            asyncio.create_task(_pump(reader, far_writer, always)),
            asyncio.create_task(_pump(far_reader, writer, flowing)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(pumps, timeout=1)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            writer.close()
            far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            await flowing.wait()
            writer.write(data)
            await writer.drain()
        writer.close()
