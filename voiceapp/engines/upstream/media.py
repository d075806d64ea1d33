"""A realtime model of a service elsewhere that speaks WebRTC or AOQ: we pass the offer, or the request for a grant, on
with our key, and the response back.

Sound and events then flow directly between the caller and that service; this server sees neither. What the exchange
looks like is in the interface specification, "WebRTC SDP exchange" and
"AOQ session allocation".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NoReturn
from urllib.parse import urlencode

import aiohttp

from voiceapp.engines.interfaces import Call, Provider, Voice
from voiceapp.engines.openai.client import RemoteServer, read
from voiceapp.errors import EngineRefused, EngineUnavailable

PATH = "/api/v1/webrtc/realtime"
TASK_PATH = "/api/v1/webrtc/inference"
MAX_ANSWER_BYTES = 64 * 1024
GRANT_HEADERS = {"x-service-rtc-transport": "moq", "x-dashscope-rtc-transport": "moq"}
GRANT_FIELDS = {"sid": str, "aoqTokenForClient": str, "clientRelayEndpoints": list}
ANSWER_TIMEOUT_S = 15.0
"""For the whole exchange; the other side gathers its candidates meanwhile."""


class RelayedRealtime(Provider):
    """One per process and model."""

    voices: Sequence[Voice] = ()
    default_voice = ""

    def __init__(self, *, base_url: str, api_key: str, model: str, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        """`base_url` is what comes before `/api/v1`; `model` is the name that the service knows, empty for the caller's
        own spelling."""
        self._server = RemoteServer(
            title="service that runs this model",
            settings="UPSTREAM",
            base_url=base_url,
            api_key=api_key,
            timeout_s=timeout_s,
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
        answer = await self._exchange(model, offer_sdp, "application/sdp")
        text = answer.decode("utf-8", "replace")
        if not text.startswith("v=0") or self._is_leaking(text):
            raise EngineUnavailable(
                "The service that runs this model answered with something that is not a session description."
            )
        return text

    async def request_grant(self, model: str, client_ip: str, *, runs_tasks: bool = False) -> str:
        """The service's grant for a caller at this Internet address (empty: unknown), as it stands, in JSON: for one
        session, or for a connection with tasks of recognition.

        Raises:
            EngineUnavailable: the service cannot be reached, is busy, refuses our key or answers with something else.
            EngineTimeout: it takes too long.
            EngineRefused: it gives no grant for this model.
        """
        body = json.dumps({"clientIp": client_ip} if client_ip else {})
        path = TASK_PATH if runs_tasks else PATH
        grant = await self._exchange(model, body, "application/json", GRANT_HEADERS, path=path)
        text = grant.decode("utf-8", "replace")
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        is_grant = isinstance(found, dict) and all(isinstance(found.get(name), of) for name, of in GRANT_FIELDS.items())
        if not is_grant or self._is_leaking(text):
            raise EngineUnavailable("The service that runs this model answered with something that is not a grant.")
        return text

    async def _exchange(
        self,
        model: str,
        body: str,
        content_type: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        path: str = PATH,
    ) -> bytes:
        """What the service answers to a request for a session, of at most MAX_ANSWER_BYTES."""
        address = f"{path}?{urlencode({'model': self._model or model})}"
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._server.post(
                    address, body, accept=content_type, content_type=content_type, headers=headers
                )
                try:
                    answer = await read(response, MAX_ANSWER_BYTES + 1)
                finally:
                    response.close()
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self._server.failure(error) from error
        if len(answer) > MAX_ANSWER_BYTES:
            raise EngineUnavailable(
                f"The service that runs this model answered with more than {MAX_ANSWER_BYTES} bytes."
            )
        return answer

    def check(self) -> None:
        """Nothing is needed on this server; whether the service can serve shows when it is asked."""

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> NoReturn:
        """Media flows past this server.

        Raises:
            EngineRefused: always.
        """
        raise EngineRefused("This model is reached by WebRTC or AOQ only.")

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._server.close()

    def _is_leaking(self, text: str) -> bool:
        """Whether our key is in it, which nobody else may see."""
        return bool(self._api_key) and self._api_key in text
