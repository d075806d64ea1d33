"""Realtime models of services elsewhere that hear and think there, and speak here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from voiceapp.engines.interfaces import Call, Synthesizer, Voice
from voiceapp.engines.providers import in_use, provider_of
from voiceapp.engines.speech_choice import ChosenSynthesizer
from voiceapp.engines.upstream.line import EventLine
from voiceapp.engines.upstream.media import RelayedRealtime
from voiceapp.engines.upstream.openai_family import OpenAIRealtime
from voiceapp.engines.upstream.realtime import UpstreamStream
from voiceapp.engines.upstream.voiced_line import VoicedLine

SPOKEN = {"modalities": ["text", "audio"]}
"""Settings that each session begins with, if only so that the service is asked for text."""


class VoicedRealtime(RelayedRealtime):
    """One per process and model, of a service with this server's interface."""

    def __init__(self, **options: Any) -> None:
        """See `RelayedRealtime`."""
        super().__init__(**options)
        self._synthesizers: list[Synthesizer] = [provider_of(card) for card in in_use("tts")]

    @property
    def voices(self) -> Sequence[Voice]:  # type: ignore[override]
        """Those of this server."""
        return self._synthesizer("").voices

    @property
    def default_voice(self) -> str:  # type: ignore[override]
        return self._synthesizer("").default_voice

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> UpstreamStream:
        """See `RealtimeModel`."""
        if call.listens_only:
            return super().open(call, tasks)
        begun = replace(call, opening={**SPOKEN, **call.opening})
        synthesizer = self._synthesizer(call.session_id)

        async def dial() -> EventLine:
            return VoicedLine(await self._line(begun), begun, synthesizer, tasks)

        return UpstreamStream(begun, dial, session_limit_s=self._session_limit_s)

    def _synthesizer(self, session_id: str) -> Synthesizer:
        return ChosenSynthesizer(self._synthesizers, session_id=session_id)


class VoicedOpenAIRealtime(VoicedRealtime, OpenAIRealtime):
    """The same of a service of OpenAI's family."""

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> UpstreamStream:
        """See `RealtimeModel`. Words of the caller are asked for too."""
        if call.listens_only:
            return OpenAIRealtime.open(self, call, tasks)
        return super().open(replace(call, opening={"input_audio_transcription": {}, **call.opening}), tasks)
