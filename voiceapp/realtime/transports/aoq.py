"""An AOQ connection as a transport: events on the data track, sound on the audio track each way."""

from __future__ import annotations

from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.aoq.tracks import AoqTracks
from voiceapp.realtime.transports.interface import text_of
from voiceapp.realtime.transports.limits import PLAYED_S


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
