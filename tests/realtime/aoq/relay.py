"""A relay of somebody else's in small: it knows a public key and nothing else of this product.

Tokens count as they do at `moq-relay`: root, put and get, an expiry, and no audience, because it is not told of one.
What one side publishes under a root the other side may subscribe to.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import jwt
import moq

from voiceapp.realtime.aoq.certificate import RelayCertificate

UNAUTHORIZED = 401


@dataclass
class StockRelay:
    """What runs, and where."""

    port: int
    fingerprint: str
    key: Any
    refused: list[str] = field(default_factory=list)
    _published: dict[str, moq.OriginProducer] = field(default_factory=lambda: defaultdict(moq.OriginProducer))
    _sessions: list[moq.Session] = field(default_factory=list)

    async def answer(self, request: moq.Request) -> None:
        token = parse_qs(request.query or "").get("jwt", [""])[0]
        path = request.path.strip("/")
        try:
            claims = jwt.decode(token, self.key, algorithms=["EdDSA"])
        except jwt.InvalidTokenError as error:
            self.refused.append(str(error))
            await request.reject(UNAUTHORIZED)
            return
        if path != claims["root"]:
            await request.reject(UNAUTHORIZED)
            return
        (put,), (get,) = claims["put"], claims["get"]
        request.set_consume(self._published[f"{path}/{put}"])
        request.set_publish(self._published[f"{path}/{get}"])
        self._sessions.append(await request.accept())


@asynccontextmanager
async def stock_relay(folder: Path, public_key: dict[str, Any]) -> AsyncIterator[StockRelay]:
    """One on a free port."""
    certificate = RelayCertificate(folder)
    certificate.renew("127.0.0.1", datetime.now(UTC))
    own = [str(certificate.path)]
    origins = {"publish": moq.OriginProducer(), "subscribe": moq.OriginProducer()}
    async with moq.Server("127.0.0.1:0", tls_cert=own, tls_key=own, **origins) as server:
        port = int(server.local_addr.rpartition(":")[2])
        relay = StockRelay(port, certificate.fingerprint, jwt.PyJWK(public_key).key)

        async def accept() -> None:
            async for request in server:
                await relay.answer(request)

        accepting = asyncio.create_task(accept())
        try:
            yield relay
        finally:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
