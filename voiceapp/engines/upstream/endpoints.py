"""Webhook endpoints of a service elsewhere that has the same interface."""

from __future__ import annotations

import json
import re
from typing import Any

from voiceapp.engines.upstream.client import Address, UpstreamServer, services
from voiceapp.errors import EngineRefused, EngineUnavailable, NotFound

PATH = "/api/v1/agentsvc/webhook_endpoints"
MAX_RESPONSE_BYTES = 64 * 1024
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""What leads to an endpoint, and to no other operation of the service."""


class EndpointsElsewhere:
    """Those of the account that our key there belongs to."""

    def __init__(self, address: Address) -> None:
        self._server: UpstreamServer = services().at(address)

    async def retrieve(self, endpoint_id: str) -> dict[str, Any]:
        """The record of an endpoint, as the service sends it.

        Raises:
            NotFound: if the service does not have it.
            EngineUnavailable: if the service cannot serve now, or sends something else.
            EngineTimeout: if the service takes too long.
            EngineRefused: if the service does not accept the request.
        """
        path = self._path(endpoint_id)
        try:
            found = await self._server.ask(path, None, limit=MAX_RESPONSE_BYTES)
        except EngineRefused as refused:
            raise _meaning(refused) from None
        if not isinstance(found, dict) or found.get("id") != endpoint_id or self._server.is_leaking(json.dumps(found)):
            raise EngineUnavailable("The service elsewhere sent something that is not this webhook endpoint.")
        return found

    async def delete(self, endpoint_id: str) -> None:
        """Delete an endpoint.

        Raises:
            NotFound: if the service does not have it.
            EngineUnavailable: if the service cannot serve now.
            EngineTimeout: if the service takes too long.
            EngineRefused: if the service does not accept the request.
        """
        path = self._path(endpoint_id)
        try:
            await self._server.delete(path, limit=MAX_RESPONSE_BYTES)
        except EngineRefused as refused:
            raise _meaning(refused) from None

    def _path(self, endpoint_id: str) -> str:
        if not _ID.fullmatch(endpoint_id):
            raise NotFound("The webhook endpoint does not exist.")
        return f"{PATH}/{endpoint_id}"


def _meaning(refused: EngineRefused) -> EngineRefused | NotFound:
    return NotFound("The webhook endpoint does not exist.") if refused.status_elsewhere == 404 else refused
