"""A realtime model of a service of OpenAI's family, hosted or one's own, with our key."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from voiceapp.engines.interfaces import Call
from voiceapp.engines.upstream.media import RelayedRealtime
from voiceapp.engines.upstream.openai_line import OpenAIDialler
from voiceapp.engines.upstream.realtime import UpstreamStream


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
        self._dialler = OpenAIDialler(
            ws_url=ws_url or base_url,
            api_key=api_key,
            model=model,
            settings=settings,
            headers=headers,
            is_beta=is_beta,
            transcription_model=transcription_model,
        )

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> UpstreamStream:
        """See `RealtimeModel`. Each session begins with settings, if only so that words of the caller are asked for."""
        begun = replace(call, opening={"input_audio_transcription": {}, **call.opening})
        return UpstreamStream(
            begun, lambda: self._line(begun), session_limit_s=self._session_limit_s, knows_heard=False
        )
