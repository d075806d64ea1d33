"""Calls whose media flow between the caller and another service: offers and requests for grants are passed on with our
key, and this server sees neither sound nor events. Interface specification, "WebRTC SDP exchange" and "AOQ session
allocation".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import aiohttp

from voiceapp.engines.interfaces import Provider
from voiceapp.engines.openai.client import RemoteServer, read
from voiceapp.engines.openai.forms import MultipartForm
from voiceapp.engines.upstream.realtime.connection import ServedModel
from voiceapp.errors import EngineRefused, EngineUnavailable, NotFound
from voiceapp.protocol.openai_realtime.asking import call_there

PATH = "/api/v1/webrtc/realtime"
TASK_PATH = "/api/v1/webrtc/inference"
CALLS = "/realtime/calls"
SDP_TYPE = "application/sdp"
CALL_GONE = "The service that holds this call has it no more."
MAX_ANSWER_BYTES = 64 * 1024
GRANT_HEADERS = {"x-service-rtc-transport": "moq", "x-dashscope-rtc-transport": "moq"}
GRANT_FIELDS = {"sid": str, "aoqTokenForClient": str, "clientRelayEndpoints": list}


class MediaRelay(Provider):
    """A realtime model of another service, for callers who reach its media themselves."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model
        self._server = RemoteServer(
            title="service that runs this model",
            settings=model.settings,
            base_url=model.base_url,
            api_key=model.api_key,
            timeout_s=model.timeout_s,
        )

    async def relay_offer(self, offer_sdp: str, model: str) -> str:
        """The service's answer to an offer, as it stands. Cancelling closes the connection.

        Raises:
            EngineUnavailable: the service cannot be reached, is busy, refuses our key or answers with something else.
            EngineTimeout: it takes too long.
            EngineRefused: it does not take this offer.
        """
        answer, _ = await self._exchange(model, offer_sdp, SDP_TYPE)
        return self._description(answer)

    def _description(self, answer: bytes) -> str:
        """The session description in an answer.

        Raises:
            EngineUnavailable: if it has none, or holds the key of this server.
        """
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
        grant, _ = await self._exchange(model, body, "application/json", GRANT_HEADERS, path=path)
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
        body: str | bytes,
        content_type: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        path: str = PATH,
        accept: str = "",
    ) -> tuple[bytes, str]:
        """Return the response to a request about a session, of at most MAX_ANSWER_BYTES, and its `Location`."""
        address = f"{path}?{urlencode({'model': self._model.name or model})}"
        try:
            async with asyncio.timeout(self._model.timeout_s):
                response = await self._server.post(
                    address,
                    body,
                    accept=accept or content_type,
                    content_type=content_type,
                    headers={**self._model.headers, **headers},
                )
                location = response.headers.get("Location", "")
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
        return answer, location

    async def relay_call(self, offer_sdp: str, model: str, opening: Mapping[str, Any]) -> tuple[str, str]:
        """The service's answer, as it stands, to the offer of a caller who speaks its dialect, and its name of the
        call; `opening` is as in `Call`. Cancelling closes the connection.

        Raises:
            EngineUnavailable: the service cannot be reached, is busy, refuses our key or answers with something else.
            EngineTimeout: it takes too long.
            EngineRefused: it does not take this offer.
        """
        session = {**call_there(opening, self._model.transcription_model), "model": self._model.name or model}
        form = MultipartForm({})
        form.add_content("sdp", "", SDP_TYPE, offer_sdp.encode())
        form.add_content("session", "", "application/json", json.dumps(session).encode())
        answer, location = await self._exchange(model, form.body(), form.content_type, path=CALLS, accept=SDP_TYPE)
        return self._description(answer), location.rpartition("/")[2]

    async def hang_up_call(self, call_id: str) -> None:
        """End a call that the service holds.

        Raises:
            NotFound: the call does not exist.
            EngineError: the service does not end it.
        """
        try:
            await self._exchange("", b"", "application/json", path=f"{CALLS}/{call_id}/hangup")
        except EngineRefused:
            raise NotFound(CALL_GONE) from None

    def _is_leaking(self, text: str) -> bool:
        """True when our key is in it."""
        return bool(self._model.api_key) and self._model.api_key in text
