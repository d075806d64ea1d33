"""The relay of this process: a client that connects with a grant talks to the session that the grant is for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.utils import timezone

from voiceapp.accounts.seats import seats
from voiceapp.database.thread import DatabaseUnavailable
from voiceapp.drain import drain_event
from voiceapp.realtime.aoq import moq_adapter, relays
from voiceapp.realtime.aoq.certificate import RelayCertificate
from voiceapp.realtime.aoq.grants import GrantRejected, Rejection
from voiceapp.realtime.aoq.moq_adapter import ConnectionLost, Incoming, Listening
from voiceapp.realtime.aoq.visits import admit_visit

logger = logging.getLogger(__name__)

HANDSHAKE_S = 5.0
MAX_HANDSHAKES = 64
"""Connections whose grants are looked at, at once; further ones are rejected unread."""
RENEW_S = 3600.0
NOT_STARTED = 4408
"""Close code of a caller who connects and does not begin."""


@dataclass(frozen=True, slots=True)
class RelayPlace:
    """Address that a relay listens on, and the one that callers are told."""

    bind: str
    port: int
    endpoint: str
    """Host name or address under which callers reach it."""

    @classmethod
    def of(cls, host: str, port: int) -> RelayPlace | None:
        """Beside a server that listens on `host`; None where it is not known how callers would reach it."""
        is_local = host in ("127.0.0.1", "::1", "localhost")
        if settings.AOQ_ENDPOINT:
            return cls("0.0.0.0" if is_local or host == "0.0.0.0" else host, port, settings.AOQ_ENDPOINT)  # noqa: S104
        if is_local:
            return cls("127.0.0.1" if host == "localhost" else host, port, host) if settings.DEBUG else None
        if host in ("0.0.0.0", "::"):  # noqa: S104
            return cls(host, port, settings.RTC_PUBLIC_ADDRESS) if settings.RTC_PUBLIC_ADDRESS else None
        return cls(host, port, host)


class RelayListener:
    """Answers connections, one task each; they outlive their handshake and are ended by `close`."""

    def __init__(self, place: RelayPlace, *, clock: Callable[[], datetime] = timezone.now) -> None:
        self._place = place
        self._clock = clock
        self._minted = RelayCertificate(Path(settings.VAR_DIR) / "aoq")
        self._tasks: set[asyncio.Task[None]] = set()
        self._handshakes = 0
        self.port = place.port

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the certificate that callers are shown; empty for one that a public authority has signed."""
        return "" if settings.AOQ_TLS_CERT else self._minted.fingerprint

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        """Answer connections until the end of the block.

        Raises:
            OSError: the port is in use, or the certificate cannot be read or written.
        """
        own = Path(settings.AOQ_TLS_CERT), Path(settings.AOQ_TLS_KEY)
        if not settings.AOQ_TLS_CERT:
            self.renew()
            own = self._minted.path, self._minted.path
        async with moq_adapter.listen(self._place.bind, self._place.port, *own) as listening:
            self.port = listening.port
            logger.info("AOQ relay on %s, UDP port %d, for %s", self._place.bind, self.port, self._place.endpoint)
            beside = [
                asyncio.create_task(self._accept(listening), name="AOQ relay"),
                asyncio.create_task(self._tell(), name="AOQ heartbeat"),
                asyncio.create_task(self._renew(), name="AOQ certificate"),
            ]
            try:
                yield
            finally:
                self.end_sessions()
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, *self._tasks, return_exceptions=True)
                await self._withdraw()

    def end_sessions(self) -> None:
        """End every session now; each tells its caller that the server is stopping."""
        for task in self._tasks:
            task.cancel()

    def renew(self) -> None:
        """Mint a certificate if it is time. Sessions that run keep theirs."""
        if not settings.AOQ_TLS_CERT and self._minted.renew(self._place.endpoint, self._clock()):
            logger.info("AOQ relay: certificate minted, fingerprint %s", self._minted.fingerprint)

    # ── Beside the connections ───────────────────────────────────────────────────────────────────────────────────────

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                self.renew()
            except OSError as error:
                logger.error("AOQ relay: the certificate cannot be replaced: %s", error)

    async def _tell(self) -> None:
        while not drain_event().begun:
            await self.announce()
            with suppress(TimeoutError):
                async with asyncio.timeout(relays.HEARTBEAT_S):
                    await drain_event().wait_begun()
        await self.announce()  # that it drains; the row of a relay that stops need not be fresh

    async def announce(self) -> None:
        """Tell the other processes that this relay lives."""
        state = relays.RelayState(
            endpoint=self._place.endpoint,
            port=self.port,
            fingerprint=self.fingerprint,
            load=seats().open_sessions,
            capacity=settings.MAX_SESSIONS,
            is_draining=drain_event().begun,
        )
        try:
            await relays.announce(state)
        except (DatabaseFailure, DatabaseUnavailable) as error:
            logger.warning("AOQ relay: the heartbeat cannot be written: %s", error)

    async def _withdraw(self) -> None:
        try:
            await relays.withdraw(self._place.endpoint, self.port)
        except (DatabaseFailure, DatabaseUnavailable) as error:
            logger.warning("AOQ relay: its row stays until it is out of date: %s", error)

    # ── Connections ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _accept(self, listening: Listening) -> None:
        async for incoming in listening.incoming():
            # In a context of its own: this task's names a thread for rows which would be everybody's.
            task = asyncio.create_task(self._answer(incoming), name="AOQ connection", context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, incoming: Incoming) -> None:
        if self._handshakes >= MAX_HANDSHAKES:
            await self._reject(incoming, Rejection.BUSY)
            return
        self._handshakes += 1
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                visit = await admit_visit(incoming, self._clock())
                connection = await incoming.accept()
        except GrantRejected as rejected:
            await self._reject(incoming, rejected.rejection)
            return
        except (TimeoutError, ConnectionLost):
            incoming.drop()
            return
        except Exception:
            logger.exception("AOQ relay: a handshake failed with an unexpected error")
            incoming.drop()
            return
        finally:
            self._handshakes -= 1
        with drain_event().work():
            try:
                await visit.run(connection)
            finally:
                connection.close(NOT_STARTED)

    async def _reject(self, incoming: Incoming, rejection: Rejection) -> None:
        logger.info("AOQ relay: connection rejected, %s", rejection.name)
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                await incoming.reject(int(rejection))
        except TimeoutError:
            incoming.drop()


@asynccontextmanager
async def relay_beside(host: str, port: int) -> AsyncIterator[None]:
    """The relay of a serving process that listens on `host`, for as long as the block runs; none where it cannot be."""
    async with AsyncExitStack() as running:
        place = RelayPlace.of(host, port)
        if port == 0:
            logger.info("AOQ: switched off by AOQ_PORT=0 or RTC_ENABLED=0")
        elif not moq_adapter.is_installed():
            logger.info("AOQ: off, because requirements-aoq.txt is not installed")
        elif place is None:
            logger.info("AOQ: off, because AOQ_ENDPOINT does not say under which address callers reach this server")
        else:
            try:
                await running.enter_async_context(RelayListener(place).listen())
            except OSError as error:
                logger.warning("AOQ: off, because the relay cannot start: %s", error)
        yield
