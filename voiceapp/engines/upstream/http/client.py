"""HTTP requests to another service with this server's interface: one client for each service, which all of its models
share, with a circuit breaker and a budget of retries.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import aiohttp

from voiceapp.engines.interfaces import Provider
from voiceapp.engines.models.service_states import ServiceState
from voiceapp.engines.openai.client import Body, Busy, RemoteServer
from voiceapp.engines.upstream.http.breaker import Breaker, BreakerState
from voiceapp.engines.upstream.http.retries import PATIENCE_S, RetryBudget, pause_s
from voiceapp.errors import DataInspectionFailed, EngineError, EngineRefused, EngineUnavailable
from voiceapp.formats import one_line

logger = logging.getLogger(__name__)

COMPATIBLE = "/compatible-mode/v1"
CHAT_PATH = f"{COMPATIBLE}/chat/completions"
EMBEDDING_PATH = "/api/v1/services/embeddings/text-embedding/text-embedding"
RERANK_PATH = "/api/v1/services/rerank/text-rerank/text-rerank"
REPEATABLE = frozenset({EMBEDDING_PATH, RERANK_PATH})
"""Work whose result is the same however often it is done."""
INSPECTION_CODES = ("DataInspectionFailed", "data_inspection_failed")
"""Codes of content inspection, in the native style and in OpenAI's."""
MAX_ID_CHARS = 64
PROBED_S = 10.0
"""Time for which the result of a probe is used."""


class CircuitOpen(EngineUnavailable):
    """The service failed so often that it is not asked at present."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address and account of a service."""

    base_url: str
    """Root, before `/api/v1`."""
    api_key: str = field(repr=False)
    service: str = "upstream"
    """The operator's name for it."""
    settings: str = "UPSTREAM"
    """Prefix of its settings."""
    vendor: str = "DashScope"
    """The word in the names of its headers."""
    workspace: str = ""
    timeout_s: float = 60.0
    """Bounds each wait for bytes."""
    models_path: str = f"{COMPATIBLE}/models"
    """Path of its list of models, which probes request."""


class UpstreamServer(RemoteServer):
    """One service. See `RemoteServer` for how it is asked."""

    def __init__(self, address: Address, *, now: Callable[[], float] = time.monotonic) -> None:
        """`now` is the clock of the circuit breaker and of retries."""
        super().__init__(
            title="service that runs this model",
            settings=address.settings,
            base_url=address.base_url,
            api_key=address.api_key,
            timeout_s=address.timeout_s,
        )
        self.service = address.service
        self.probe_path = address.models_path
        self.vendor = address.vendor
        self._workspace = {f"X-{address.vendor}-WorkSpace": address.workspace} if address.workspace else {}
        self._now = now
        self._breaker = Breaker()
        self._trial = asyncio.Event()
        """Cleared while the request is out that tries whether the service is back."""
        self._budget = RetryBudget()
        self._random = Random()  # noqa: S311 - spreads retries, guards nothing
        self._probed_at = -math.inf

    @property
    def state(self) -> ServiceState:
        heard_s_ago = time.monotonic() - self._heard_at
        return ServiceState(
            self.service, self._breaker.state.value, self.trouble, heard_s_ago if math.isfinite(heard_s_ago) else None
        )

    async def probe(self) -> None:
        """Find out whether the service answers, unless that was done just now."""
        if time.monotonic() - self._probed_at >= PROBED_S:
            self._probed_at = time.monotonic()
            await super().probe()

    async def _good(self, method: str, path: str, body: Body | None, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Send as `RemoteServer` does, and again where that is safe; a connection that fails is an `EngineError` here.

        Raises:
            CircuitOpen: at once, while the service is not asked.
        """
        deadline, retries = self._now() + PATIENCE_S, 0
        is_repeatable = method == "GET" or path in REPEATABLE
        self._budget.add()
        while True:
            try:
                return await self._once(method, path, body, dict(headers))
            except CircuitOpen:
                raise
            except EngineError as error:
                wait_s = pause_s(error, retries, is_repeatable=is_repeatable, random=self._random)
                if wait_s is None or self._now() + wait_s > deadline or not self._budget.spend():
                    raise
                logger.info("service %s: asked again in %.1f s: %s", self.service, wait_s, error.message)
            retries += 1
            await asyncio.sleep(wait_s)

    async def _once(self, method: str, path: str, body: Body | None, headers: dict[str, str]) -> aiohttp.ClientResponse:
        number = await self._admitted()
        try:
            response = await super()._good(method, path, body, headers | self._workspace)
        except (EngineRefused, Busy):
            self._breaker.succeeded(number)
            raise
        except EngineError as error:
            if error.retryable:
                self._failed(number)
            else:
                self._breaker.succeeded(number)
            raise
        except (TimeoutError, aiohttp.ClientError) as error:
            self._failed(number)
            raise self.failure(error) from error
        except BaseException:
            self._breaker.abandoned(number)
            raise
        else:
            self._breaker.succeeded(number)
            return response
        finally:
            if self._breaker.state is not BreakerState.HALF_OPEN:
                self._trial.set()

    async def _admitted(self) -> int:
        """The breaker's number of a request that may go out; while a trial is out, the request waits for its end.

        Raises:
            CircuitOpen: if none may.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while (number := self._breaker.admit(self._now())) is None:
                    if self._breaker.state is not BreakerState.HALF_OPEN:
                        break
                    await self._trial.wait()
        if number is None:
            raise self._circuit_open()
        if self._breaker.state is BreakerState.HALF_OPEN:
            self._trial.clear()
        return number

    def _failed(self, number: int) -> None:
        before = self._breaker.state
        self._breaker.failed(number, self._now())
        if self._breaker.state is not before:
            logger.warning(
                "service %s: not asked for %.0f s after failures in a row",
                self.service,
                self._breaker.wait_s(self._now()),
            )

    def _circuit_open(self) -> CircuitOpen:
        wait_s = max(1, math.ceil(self._breaker.wait_s(self._now())))
        error = CircuitOpen(
            f"The {self.title} failed repeatedly and is not asked at present. Try again in {wait_s} seconds.",
            remedy=self.trouble.remedy if self.trouble else "",
        )
        error.retry_after_s = wait_s
        return error

    def _declined(self, found: object, message: str) -> EngineRefused:
        """Return the error as `RemoteServer` does; a refusal of the service's content inspection is one of ours."""
        error = found.get("error", found) if isinstance(found, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        return DataInspectionFailed(message) if code in INSPECTION_CODES else EngineRefused(message)

    async def _send(self, method: str, path: str, body: Body | None, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Send as `RemoteServer` does, and log the service's id of the request, by which its operators find it."""
        response = await super()._send(method, path, body, headers)
        request_id = self._shown(one_line(response.headers.get("X-Request-ID", "")))[:MAX_ID_CHARS]
        logger.log(
            logging.DEBUG if path == self.probe_path else logging.INFO,
            "service %s: %s %s: status %d, request %s",
            self.service,
            method,
            path.partition("?")[0],
            response.status,
            request_id or "without an id",
        )
        return response


class Services:
    def __init__(self) -> None:
        self._servers: dict[Address, UpstreamServer] = {}

    def at(self, address: Address) -> UpstreamServer:
        """The client of a service; the same one every time."""
        if address not in self._servers:
            self._servers[address] = UpstreamServer(address)
        return self._servers[address]

    def all(self) -> Sequence[UpstreamServer]:
        """Services for which a model was built."""
        return list(self._servers.values())


@cache
def services() -> Services:
    return Services()


class UpstreamModel(Provider):
    """A model of one service that is asked with single requests."""

    def __init__(self, *, model: str, **address: Any) -> None:
        """`model` is the name that the service knows; the rest is an `Address`."""
        self._server = services().at(Address(**address))
        self._model = model

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._server.close()
