"""A realtime model of a service elsewhere that speaks WebRTC: we pass the offer on, with our key, and the answer back.

Sound and events then flow directly between the caller and that service; this server sees neither. What the exchange
looks like is in the interface specification, "WebRTC SDP exchange".
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NoReturn
from urllib.parse import urlencode

import aiohttp

from voiceapp.engines.interfaces import Call, Voice
from voiceapp.engines.openai.client import Server, read
from voiceapp.errors import EngineRefused, EngineUnavailable

PATH = "/api/v1/webrtc/realtime"
MAX_ANSWER_BYTES = 64 * 1024
ANSWER_TIMEOUT_S = 15.0
"""For the whole exchange; the other side gathers its candidates meanwhile."""


class RelayedRealtime:
    """One per process and model."""

    voices: Sequence[Voice] = ()

    def __init__(self, *, base_url: str, api_key: str, model: str, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        """`base_url` is what comes before `/api/v1`; `model` is the name that the service knows, empty for the caller's
        own spelling."""
        self._server = Server(
            title="service elsewhere", settings="UPSTREAM", base_url=base_url, api_key=api_key, timeout_s=timeout_s
        )
        self._api_key = api_key
        self._model = model
        self._timeout_s = timeout_s

    async def relay_offer(self, offer_sdp: str, model: str) -> str:
        """The service's answer to an offer, as it stands. Cancelling closes the connection.

        Raises:
            EngineUnavailable: the service cannot be reached, is busy, refuses our key or answers with something else.
            EngineTimeout: it takes too long.
            EngineRefused: it does not take this offer.
        """
        path = f"{PATH}?{urlencode({'model': self._model or model})}"
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._server.post(
                    path, offer_sdp, accept="application/sdp", content_type="application/sdp"
                )
                try:
                    answer = await read(response, MAX_ANSWER_BYTES + 1)
                finally:
                    response.close()
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self._server.failure(error) from error
        return self._checked(answer)

    def check(self) -> NoReturn:
        """There is no conversation to be had through this server: media flows past it.

        Raises:
            EngineRefused: always.
        """
        raise EngineRefused("This model is reached by WebRTC only.")

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> NoReturn:
        """As `check`."""
        self.check()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._server.close()

    def _checked(self, answer: bytes) -> str:
        """Raises EngineUnavailable: it is no answer that a browser should get."""
        if len(answer) > MAX_ANSWER_BYTES:
            raise EngineUnavailable(f"The service elsewhere answered with more than {MAX_ANSWER_BYTES} bytes.")
        text = answer.decode("utf-8", "replace")
        if not text.startswith("v=0") or (self._api_key and self._api_key in text):
            raise EngineUnavailable("The service elsewhere answered with something that is not a session description.")
        return text
