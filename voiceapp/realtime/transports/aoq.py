"""An AOQ connection as a transport: events on the data track, sound on the audio track each way."""

from __future__ import annotations

from voiceapp.protocol import events as ev
from voiceapp.realtime.aoq.tracks import AoqTracks
from voiceapp.realtime.close_codes import BUDGET_USED_UP, NORMAL, SERVER_STOPPING
from voiceapp.realtime.transports.interface import text_of

PLAYED_S = {NORMAL: 60.0, SERVER_STOPPING: 1.0, BUDGET_USED_UP: 5.0}
"""Longest rest of an answer that is still played at an end that comes after it."""


class AoqTransport:
    """An open connection, its tracks, as a `Transport`."""

    def __init__(self, tracks: AoqTracks) -> None:
        self._tracks = tracks

    async def receive(self) -> ev.ClientEvent:
        return await self._tracks.arrivals.receive()

    async def send(self, event: ev.ServerEvent) -> None:
        leg = self._tracks.leg
        if isinstance(event, ev.AudioDelta):
            leg.play(event.audio)
            return
        if isinstance(event, ev.ReplyDucked | ev.ReplyRestored | ev.SpeechStarted):
            leg.duck(is_on=isinstance(event, ev.ReplyDucked))
        await self._tracks.write(text_of(event))
        if isinstance(event, (ev.SessionCreated, ev.SessionResumed)):
            leg.listen()
            leg.watch()

    def cut_playout(self) -> None:
        self._tracks.leg.cut()

    async def close(self, code: int, reason: str) -> None:
        await self._tracks.close(code, reason, played_s=PLAYED_S.get(code, 0.0))
