"""A realtime model of a service of OpenAI's family, hosted or one's own, with our key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from voiceapp.engines.interfaces import Call
from voiceapp.engines.upstream.realtime.openai import OpenAIDialler
from voiceapp.engines.upstream.realtime.provider import RelayedRealtime
from voiceapp.engines.upstream.realtime.session import UpstreamStream
from voiceapp.protocol.openai_realtime.asking import call_there

CALLS = "/realtime/calls"
SDP_TYPE = "application/sdp"


class OpenAIRealtime(RelayedRealtime):
    """One per process and model. Sessions there are held over WebSockets, whatever the caller's transport is."""

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        model: str,
        is_beta: bool = False,
        transcription_model: str = "",
        ws_url: str = "",
        settings: str = "UPSTREAM",
        headers: Mapping[str, str] = MappingProxyType({}),
        session_limit_s: float = 0.0,
    ) -> None:
        """See `RelayedRealtime`. `base_url` and `ws_url` are what comes before `/realtime`; `is_beta`: the service
        knows the older dialect only; `transcription_model` is what it transcribes with, empty: what a caller names."""
        super().__init__(
            base_url=base_url, api_key=api_key, model=model, settings=settings, session_limit_s=session_limit_s
        )
        self._transcription_model = transcription_model
        self._dialler = OpenAIDialler(
            ws_url=ws_url or base_url,
            api_key=api_key,
            model=model,
            settings=settings,
            headers=headers,
            is_beta=is_beta,
            transcription_model=transcription_model,
        )

    async def relay_call(self, offer_sdp: str, model: str, opening: Mapping[str, Any]) -> str:
        """The service's answer, as it stands, to the offer of a caller who speaks its dialect; `opening` is as in
        `Call`. Cancelling closes the connection.

        Raises:
            EngineUnavailable: the service cannot be reached, is busy, refuses our key or answers with something else.
            EngineTimeout: it takes too long.
            EngineRefused: it does not take this offer.
        """
        session = {**call_there(opening, self._transcription_model), "model": self._model or model}
        body, content_type = _form(sdp=(SDP_TYPE, offer_sdp), session=("application/json", json.dumps(session)))
        return self._description(await self._exchange(model, body, content_type, path=CALLS, accept=SDP_TYPE))

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> UpstreamStream:
        """See `RealtimeModel`. Each session begins with settings, if only so that words of the caller are asked for."""
        begun = replace(call, opening={"input_audio_transcription": {}, **call.opening})
        return UpstreamStream(
            begun, lambda: self._line(begun), session_limit_s=self._session_limit_s, knows_heard=False
        )


def _form(**fields: tuple[str, str]) -> tuple[bytes, str]:
    """A form of fields, each of a media type, and its own media type."""
    boundary = uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\nContent-Type: {media_type}\r\n\r\n{text}\r\n'
        for name, (media_type, text) in fields.items()
    ]
    return f"{''.join(parts)}--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"
