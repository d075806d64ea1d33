"""One Wyoming server: a connection for each request, and what its failures mean."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from voiceapp.engines.interfaces import Provider
from voiceapp.engines.models.addresses import Addresses
from voiceapp.errors import EngineError, EngineTimeout, EngineUnavailable

if TYPE_CHECKING:
    from wyoming.client import AsyncTcpClient
    from wyoming.event import Event
    from wyoming.info import Info

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 3.0
PROBE_S = 2.0
MAX_ERROR_CHARS = 200


@dataclass(eq=False)
class _Use:
    client: AsyncTcpClient
    closed: bool = False

    def close(self) -> None:
        self.closed = True


class WyomingServer:
    """Connection that the recognizer and the synthesizer share. One per process and model."""

    def __init__(self, *, title: str, settings: str, address: str, timeout_s: float) -> None:
        """`title` names it in messages, `settings` is how its settings begin; `address` is `tcp://HOST:PORT`, or
        several of them with commas between."""
        self.title = title
        self._settings = settings
        self._addresses = Addresses(address)
        self._timeout_s = timeout_s
        self.trouble: EngineUnavailable | EngineTimeout | None = None
        """Error of the latest contact; None while the server answers."""

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[AsyncTcpClient]:
        """A connection for one request.

        Raises:
            EngineUnavailable: if the server cannot be reached, breaks off, or sends what is not the protocol.
            EngineTimeout: if nothing comes in time.
        """
        use: _Use | None = None
        try:
            use = await self._addresses.ask(self._connect)
            yield use.client
        except TimeoutError as error:
            raise self._troubled(EngineTimeout(f"The {self.title} did not answer in time.")) from error
        except (OSError, asyncio.IncompleteReadError) as error:
            remedy = f"Check {self._settings}_BASE_URL and its server."
            raise self._troubled(EngineUnavailable(f"The {self.title} cannot be reached.", remedy=remedy)) from error
        except (ValueError, LookupError, TypeError) as error:
            raise self._troubled(EngineUnavailable(f"The {self.title} sent what is not understood.")) from error
        else:
            self._answered()
        finally:
            if use is not None:
                use.close()
                with suppress(OSError):
                    await use.client.disconnect()

    async def _connect(self, url: str) -> _Use:
        from wyoming.client import AsyncTcpClient

        parts, read_timeout_s = urlsplit(url), self._timeout_s
        client = AsyncTcpClient(
            parts.hostname or "127.0.0.1",
            parts.port or 10300,
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=read_timeout_s,
        )
        try:
            await client.connect()
        except BaseException:
            with suppress(OSError):
                await client.disconnect()
            raise
        return _Use(client)

    async def next_event(self, client: AsyncTcpClient) -> Event:
        """Return the server's next event.

        Raises:
            OSError: if it broke off.
            EngineUnavailable: if it says that it failed.
        """
        event = await client.read_event()
        if event is None:
            raise ConnectionResetError("the server closed the connection")
        if event.type == "error":
            said = " ".join(str(event.data.get("text", "")).split())[:MAX_ERROR_CHARS]
            raise self._troubled(EngineUnavailable(f"The {self.title} failed: {said}"))
        return event

    async def info(self) -> Info:
        """Return the server's description of itself.

        Raises:
            EngineUnavailable: if it cannot be asked.
            EngineTimeout: if it does not answer within 2 s.
        """
        from wyoming.info import Describe, Info

        async with self.connected() as client, asyncio.timeout(PROBE_S):
            await client.write_event(Describe().event())
            while not Info.is_type((event := await self.next_event(client)).type):
                pass
            return Info.from_event(event)
        raise AssertionError("the connection passes no error over")

    def _answered(self) -> None:
        if self.trouble is not None:
            logger.info("the %s answers again", self.title)
            self.trouble = None

    def _troubled(self, error: EngineUnavailable | EngineTimeout) -> EngineUnavailable | EngineTimeout:
        if self.trouble is None or self.trouble.message != error.message:
            logger.warning(error.for_operators)
        self.trouble = error
        return error


class WyomingProvider(Provider):
    title = ""
    settings = ""

    def __init__(self, *, base_url: str, api_key: str = "", model: str = "", timeout_s: float = 30.0) -> None:
        """`base_url` is `tcp://HOST:PORT`, or several. The protocol has no keys."""
        self._server = WyomingServer(title=self.title, settings=self.settings, address=base_url, timeout_s=timeout_s)
        self._model = model

    @property
    def trouble(self) -> EngineError | None:
        return self._server.trouble

    async def warm(self) -> None:
        await self.probe()
