"""The only importer of the MoQ library (`requirements-aoq.txt`), whose interface changes between releases.

It speaks IETF MoQ Transport over WebTransport or QUIC. A connection carries two namespaces, `server` and `client`, of
two tracks each: `audio`, one Opus packet per group, and `data`, JSON events in groups of `EVENTS_PER_GROUP`.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import moq

AUDIO, DATA = "audio", "data"
EVENTS_PER_GROUP = 256
AUDIO_AGE_US, DATA_AGE_US = 1_000_000, 30_000_000
"""Age at which an object of a track is dropped in favour of a newer one."""
AUDIO_PRIORITY, DATA_PRIORITY = 200, 255
CACHE_BYTES = 4 * 1024 * 1024
"""Cache of the library for the objects of one direction of a connection; beyond it, the oldest are dropped."""
HIGHEST_GROUP = 1 << 53
_Published = tuple[Any, Any, Any]
"""A namespace with its audio and its data track."""


class ConnectionLost(Exception):
    """The other side is gone, or broke the protocol."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code
        """Code with which the peer closed the connection; None without one."""


def is_installed() -> bool:
    return importlib.util.find_spec("moq") is not None and importlib.util.find_spec("moq_ffi") is not None


class MoqConnection:
    """One MoQ connection from this server's side."""

    def __init__(self, session: moq.Session, published: _Published, consuming: moq.OriginProducer) -> None:
        self._session = session
        self._consuming = consuming
        # Everything that is published is held here: the library drops what is not referenced.
        self._broadcast, self._audio, self._data = published
        self._group: moq.GroupProducer | None = None
        self._events_in_group = 0
        self._next_number = -1
        """Number of the group that the library would make by itself."""
        self._heard: moq.TrackConsumer | None = None
        self._read: moq.TrackConsumer | None = None
        self._written_bytes = 0
        self._sent_before = self._sent_bytes

    async def subscribe(self) -> None:
        """Wait for the caller's namespace and subscribe to both of its tracks.

        Raises:
            ConnectionLost: the connection ended before.
        """
        import moq

        with _translated():
            client = await self._consuming.consume().announced_broadcast("client")
            data = moq.Subscription(priority=DATA_PRIORITY, max_age_us=DATA_AGE_US)
            audio = moq.Subscription(priority=AUDIO_PRIORITY, max_age_us=AUDIO_AGE_US)
            self._read = await client.subscribe_track(DATA, data)
            self._heard = await client.subscribe_track(AUDIO, audio)

    async def events(self) -> AsyncIterator[bytes]:
        """The caller's JSON events in their order; ends with the track.

        Raises:
            ConnectionLost: the connection ended.
        """
        assert self._read is not None
        with _translated():
            async for group in self._read:
                async for frame in group:
                    yield frame.payload

    async def packets(self) -> AsyncIterator[tuple[int, bytes]]:
        """Group numbers and objects of the caller's audio as they arrive; ends with the track.

        Raises:
            ConnectionLost: the connection ended.
        """
        import moq

        assert self._heard is not None
        with _translated():
            while (group := await self._heard.recv_group()) is not None:
                try:
                    frame = await group.read_frame()
                except moq.Error:  # its sender gave it up: a lost packet, unless the next call says that all is over
                    continue
                if frame is not None and group.sequence < HIGHEST_GROUP:
                    yield group.sequence, frame.payload

    def send_event(self, text: bytes) -> None:
        with _translated():
            if self._group is None or self._events_in_group == EVENTS_PER_GROUP:
                if self._group is not None:
                    self._group.finish()
                self._group, self._events_in_group = self._data.append_group(), 0
            self._group.write_frame(text)
        self._events_in_group += 1
        self._written_bytes += len(text)

    def send_packet(self, number: int, packet: bytes) -> None:
        """Write one object of the audio track, in the group of that number."""
        with _translated():
            if number == self._next_number:  # one call into the library instead of three
                self._audio.write_frame(packet)
            else:
                group = self._audio.create_group(number)
                group.write_frame(packet)
                group.finish()
        self._next_number = max(self._next_number, number + 1)
        self._written_bytes += len(packet)

    @property
    def unsent_bytes(self) -> int:
        """About how much of what was written has not left this machine."""
        return max(0, self._written_bytes - (self._sent_bytes - self._sent_before))

    @property
    def packets_received(self) -> int:
        """QUIC packets that came, acknowledgements included; stands still when the other side is gone."""
        return self._session.stats().packets_received or 0

    @property
    def _sent_bytes(self) -> int:
        return self._session.stats().bytes_sent or 0

    async def wait_closed(self) -> ConnectionLost:
        """Return when the connection is over, with what the other side said."""
        try:
            with _translated():
                await self._session.closed()
        except ConnectionLost as lost:
            return lost
        return ConnectionLost(None)

    def close(self, code: int) -> None:
        with suppress(ConnectionLost), _translated():
            # The session before its tracks: a browser may crash at tracks that end in a connection which ends too.
            self._session.cancel(code)
        with suppress(ConnectionLost), _translated():
            if self._group is not None:
                self._group.finish()
            self._data.finish()
            self._audio.finish()


class Incoming:
    """A client that wants to connect, and was not answered yet."""

    def __init__(self, request: moq.Request) -> None:
        self._request = request
        self.path = request.path
        self.query = request.query or ""
        """May hold a grant token: not for logs."""

    async def accept(self) -> MoqConnection:
        """Complete the handshake.

        Raises:
            ConnectionLost: the other side is gone.
        """
        import moq

        publishing, consuming = (moq.OriginProducer(cache_capacity_bytes=CACHE_BYTES) for _ in range(2))
        with _translated():
            self._request.set_publish(publishing)
            self._request.set_consume(consuming)
            # Before anybody can ask for it: a subscription to what is not there yet is refused.
            published = _publish(publishing, "server")
            return MoqConnection(await self._request.accept(), published, consuming)

    async def reject(self, code: int) -> None:
        """Refuse it; browsers see `code` + 64 as the close code of the WebTransport session."""
        with suppress(ConnectionLost), _translated():
            await self._request.reject(code)

    def drop(self) -> None:
        """Give up an answer that takes too long."""
        self._request.cancel()


class Listening:
    """A UDP port on which MoQ connections come in."""

    def __init__(self, server: moq.Server) -> None:
        self._server = server
        self.port = int(server.local_addr.rpartition(":")[2])

    async def incoming(self) -> AsyncIterator[Incoming]:
        """Yield clients that want to connect, until the port is closed."""
        async for request in self._server:
            yield Incoming(request)


@asynccontextmanager
async def listen(host: str, port: int, certificate: Path, key: Path) -> AsyncIterator[Listening]:
    """Listen on a UDP port; 0 lets the system choose. Certificate and key are read again when their files change.

    Raises:
        OSError: the port is in use or not ours, or a file cannot be read.
    """
    import moq

    _use_loop()
    bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    origins = {"publish": moq.OriginProducer(), "subscribe": moq.OriginProducer()}
    server = moq.Server(bind, tls_cert=[str(certificate)], tls_key=[str(key)], **origins)
    try:
        await server.__aenter__()
    except moq.Error as error:
        raise OSError(f"cannot listen on UDP {bind}: {error}") from error
    try:
        yield Listening(server)
    finally:
        await server.__aexit__(None, None, None)


def _publish(origin: moq.OriginProducer, name: str) -> _Published:
    import moq

    broadcast = origin.create_broadcast(name)
    audio = broadcast.publish_track(AUDIO, moq.TrackInfo(priority=AUDIO_PRIORITY, max_age_us=AUDIO_AGE_US))
    data = broadcast.publish_track(DATA, moq.TrackInfo(priority=DATA_PRIORITY, max_age_us=DATA_AGE_US))
    broadcast.announce()
    return broadcast, audio, data


def _use_loop() -> None:
    from moq_ffi._uniffi.moq import uniffi_set_event_loop

    uniffi_set_event_loop(_HandOver())


class _HandOver:
    """Way of the library's results to event loops. A result that is ready needs no trip through the loop's own socket,
    which costs more than the rest of the call."""

    def create_future(self) -> asyncio.Future[int]:
        return asyncio.get_running_loop().create_future()

    def call_soon_threadsafe(
        self, done: Callable[[asyncio.Future[int], int], None], future: asyncio.Future[int], code: int
    ) -> None:
        loop = future.get_loop()
        if asyncio._get_running_loop() is loop:
            done(future, code)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(done, future, code)


class _translated:
    """The library's errors as ours."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        import moq

        if isinstance(error, moq.Error):
            protocol = moq.protocol_error(error)
            raise ConnectionLost(None if protocol is None else protocol.code) from error
