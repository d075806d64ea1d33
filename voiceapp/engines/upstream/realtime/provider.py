"""A realtime model of a service elsewhere, with our key.

Two ways lead to it. This server holds a WebSocket to the service for each session, and its own transports for the
caller. Or it passes an SDP offer, or a request for a grant, on and the response back; sound and events then flow
directly between the caller and that service, and this server sees neither. What is said is in the interface
specification, "WebSocket connection", "WebRTC SDP exchange" and "AOQ session allocation".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from urllib.parse import urlencode

import aiohttp

from voiceapp.engines.interfaces import Call, Provider, Voice
from voiceapp.engines.openai.client import RemoteServer, read
from voiceapp.engines.upstream.realtime.connection import Dialler, ServiceLine
from voiceapp.engines.upstream.realtime.session import UpstreamStream
from voiceapp.errors import EngineUnavailable

PATH = "/api/v1/webrtc/realtime"
TASK_PATH = "/api/v1/webrtc/inference"
MAX_ANSWER_BYTES = 64 * 1024
GRANT_HEADERS = {"x-service-rtc-transport": "moq", "x-dashscope-rtc-transport": "moq"}
CLAIM_S = 15.0
"""How long a line that was dialled waits for its session to begin."""
GRANT_FIELDS = {"sid": str, "aoqTokenForClient": str, "clientRelayEndpoints": list}
ANSWER_TIMEOUT_S = 15.0
"""For the whole exchange; the other side gathers its candidates meanwhile."""


class RelayedRealtime(Provider):
    """One per process and model."""

    voices: Sequence[Voice] = ()
    default_voice = ""

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        model: str,
        timeout_s: float = ANSWER_TIMEOUT_S,
        ws_url: str = "",
        settings: str = "UPSTREAM",
        headers: Mapping[str, str] = MappingProxyType({}),
        session_limit_s: float = 0.0,
    ) -> None:
        """`base_url` is what comes before `/api/v1`, `ws_url` what comes before `/api-ws/v1`, where that differs;
        `model` is the name that the service knows, empty for the caller's own spelling; `settings` is how the names of
        the service's settings begin, and `headers` go with each request; `session_limit_s` is how long a session of its
        lasts, 0: that is not known."""
        self._server = RemoteServer(
            title="service that runs this model",
            settings=settings,
            base_url=base_url,
            api_key=api_key,
            timeout_s=timeout_s,
        )
        self._api_key = api_key
        self._model = model
        self._timeout_s = timeout_s
        self._session_limit_s = session_limit_s
        self._headers = dict(headers)
        self._dialler = Dialler(
            ws_url=ws_url or base_url, api_key=api_key, model=model, settings=settings, headers=self._headers
        )
        self._prepared: dict[str, ServiceLine] = {}
        """By session: lines that were dialled before the session began."""
        self._closing: set[asyncio.Task[None]] = set()

    async def relay_offer(self, offer_sdp: str, model: str) -> str:
        """The service's answer to an offer, as it stands. Cancelling closes the connection.

        Raises:
            EngineUnavailable: the service cannot be reached, is busy, refuses our key or answers with something else.
            EngineTimeout: it takes too long.
            EngineRefused: it does not take this offer.
        """
        return self._description(await self._exchange(model, offer_sdp, "application/sdp"))

    def _description(self, answer: bytes) -> str:
        """The session description in an answer.

        Raises:
            EngineUnavailable: if there is none in it, or something that nobody else may see.
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
        body: str | bytes,
        content_type: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        path: str = PATH,
        accept: str = "",
    ) -> bytes:
        """What the service answers to a request for a session, of at most MAX_ANSWER_BYTES."""
        address = f"{path}?{urlencode({'model': self._model or model})}"
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._server.post(
                    address,
                    body,
                    accept=accept or content_type,
                    content_type=content_type,
                    headers={**self._headers, **headers},
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

    async def prepare(self, call: Call) -> None:
        """See `Provider`: dial, so that a refusal of the service's is ours."""
        self._prepared[call.session_id] = await self._dialler.dial(call)
        asyncio.get_running_loop().call_later(CLAIM_S, self._give_up, call.session_id)

    def abandon(self, call: Call) -> None:
        """See `Provider`: hang up."""
        self._give_up(call.session_id)

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> UpstreamStream:
        """See `RealtimeModel`."""
        return UpstreamStream(call, lambda: self._line(call), session_limit_s=self._session_limit_s)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        for session_id in tuple(self._prepared):
            self._give_up(session_id)
        await asyncio.gather(*self._closing)
        await self._dialler.close()
        await self._server.close()

    async def _line(self, call: Call) -> ServiceLine:
        prepared = self._prepared.pop(call.session_id, None)
        return prepared or await self._dialler.dial(call)

    def _give_up(self, session_id: str) -> None:
        """Close the line of a session that did not begin."""
        line = self._prepared.pop(session_id, None)
        if line is not None:
            task = asyncio.create_task(line.close(), name=f"session {session_id}: was not begun")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _is_leaking(self, text: str) -> bool:
        """Whether our key is in it, which nobody else may see."""
        return bool(self._api_key) and self._api_key in text
