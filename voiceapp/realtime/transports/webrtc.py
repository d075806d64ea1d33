"""The WebRTC door: events on a data channel, sound on an audio track each way.

A request brings the offer and takes the answer away; `peers` has the conversation, which begins when the channel opens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from aiortc import RTCDataChannel, RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription
from aiortc.exceptions import InternalError, InvalidAccessError, InvalidStateError, OperationError
from django.conf import settings

from voiceapp.engines import opus
from voiceapp.errors import EngineUnavailable, FloodError, InvalidParameter
from voiceapp.formats import identifier
from voiceapp.protocol import events as ev
from voiceapp.protocol.audio import Meter
from voiceapp.realtime import bridge, places, sdp
from voiceapp.realtime.media import inside, rtp
from voiceapp.realtime.media.ticker import PERIOD_S, ticker
from voiceapp.realtime.media.tracks import TICKS_PER_PACKET, Microphone, Speaker
from voiceapp.realtime.records import ABANDONED
from voiceapp.realtime.transports.interface import Disconnected, text_of

logger = logging.getLogger(__name__)

LABEL = "svc-events"
"""Of the channel that this server opens when the caller opens none."""
OWN_NUMBER = 100
"""Of that channel, or the next (RFC 8832, 6); the first ones belong to channels that callers take as agreed upon."""
PROBE = 65_534
"""Number of a channel that is never used; the highest there may be."""
ANSWER_S = 10.0
"""To gather candidates: 3 s for each relay that does not answer, and some; 5 s for a STUN server."""
SILENT_S = 3.5
"""Nothing at all from a caller for this long, not even an answer to a check of consent each second: gone without a
word, and told so within 5 s."""
STALL_PERIODS = 5
"""More of them at once are this server's own silence, not the caller's."""
CLOSE_S = 2.0
PLAYED_S = {bridge.NORMAL: 60.0, bridge.SERVER_STOPPING: 1.0}
"""Longest rest of an answer that is still played at an end that comes after it."""
SENT_S = 2.5
"""For the last words to arrive."""
MESSAGES_PER_S = 100
WAITING_EVENTS = 1000
MAX_BUFFERED_BYTES = 1024 * 1024
SLOW_S = 10.0
"""A caller who does not read for this long has lost the conversation."""
GONE = 1001
"""The caller closed the connection, or their page is gone (RFC 6455, 7.4.1, has the word for it)."""
FORMATS = ("input_audio_format", "output_audio_format")

_Arrival = str | bytes | Exception
Refused = (OperationError, InternalError, InvalidStateError, InvalidAccessError)


class WebRtcTransport:
    """An accepted peer connection as a `Transport`."""

    def __init__(self, connection: RTCPeerConnection) -> None:
        self._connection = connection
        self._now = asyncio.get_running_loop().time
        self._meter = Meter(rate_per_s=MESSAGES_PER_S)
        self._arrivals: asyncio.Queue[_Arrival] = asyncio.Queue()
        self._waiting_texts = 0
        self._channel: RTCDataChannel | None = None
        self._is_unused = False
        """The channel is this server's own, and the caller has said nothing yet."""
        self._created: ev.SessionCreated | None = None
        self._writable = asyncio.Event()
        self._line: inside.Line | None = None
        self._microphone = Microphone(self._hear, self._ask)
        self._speaker = Speaker()
        self._is_open = True
        self._is_slow = False
        self._is_flooded = False
        self._is_answering = False
        self._may_interrupt = True
        self._is_begun = False
        self._signs_seen = 0
        self._silent_ticks = 0
        self._closing: asyncio.Task[None] | None = None
        self.connected = asyncio.Event()
        """Channels can be opened. Set as well when the connection ends before."""
        self.opened = asyncio.Event()
        """The channel is open: the conversation can begin. Set as well when the connection ends before."""
        connection.on("datachannel", self._channel_came)
        connection.on("connectionstatechange", self._state_changed)

    # ── Making the call ──────────────────────────────────────────────────────────────────────────────────────────────

    async def accept(self, offer: str) -> str:
        """The answer to an offer that `sdp.read_offer` let pass, all candidates in it.

        Raises:
            InvalidParameter: aiortc cannot make sense of the offer.
            EngineUnavailable: no way for media leads to this server now.
        """
        connection = self._connection
        audio = connection.addTransceiver("audio", direction="sendrecv")
        codecs = RTCRtpReceiver.getCapabilities("audio")
        assert codecs is not None
        audio.setCodecPreferences([codec for codec in codecs.codecs if codec.mimeType == "audio/opus"])
        redundant = sdp.redundant_type(offer)
        try:
            async with asyncio.timeout(ANSWER_S):
                await connection.setRemoteDescription(RTCSessionDescription(sdp.sound_and_channel(offer), "offer"))
                self._line = inside.Line(audio, self._receive_packet, redundant)
                inside.bound_messages(connection, self._message_too_large)
                if settings.RTC_FORCE_RELAY:
                    inside.use_relays(connection, places.relays.in_order(), places.relays.prefer)
                elif ports := places.ports():
                    inside.use_ports(connection, *ports)
                await connection.setLocalDescription(await connection.createAnswer())
        except (*sdp.MALFORMED, *Refused) as error:
            raise InvalidParameter(f"The offer is refused: {str(error)[:200] or 'it cannot be read'}.") from error
        except TimeoutError:
            raise _unreachable() from None
        answer = sdp.finish_answer(
            connection.localDescription.sdp, offer, public_address=settings.RTC_PUBLIC_ADDRESS, redundant=redundant
        )
        if "a=candidate:" not in answer:
            raise _unreachable()
        ticker().join(self._tick)
        return answer

    def open_channel(self) -> None:
        """Open the channel from this side."""
        if self._channel is None and self._is_open:
            self._is_unused = True
            sctp = self._connection.sctp
            assert sctp is not None
            self._adopt(self._connection.createDataChannel(LABEL, id=OWN_NUMBER + sctp.is_server))

    def _channel_came(self, channel: RTCDataChannel) -> None:
        """The caller opened a channel. One is enough, whatever its label; what comes on others is not read."""
        if self._channel is None:
            self._adopt(channel)
        elif self._is_unused:  # the caller's was on its way, and is the one they listen to
            self._is_unused = False
            self._adopt(channel)
            if self._created is not None:
                self._write(self._created)

    def _adopt(self, channel: RTCDataChannel) -> None:
        self._channel = channel
        channel.on("message", self._message)
        channel.on("close", lambda: self._closed(channel))
        channel.on("bufferedamountlow", self._writable.set)
        channel.on("open", self.opened.set)
        if channel.readyState == "open":
            self.opened.set()

    def _state_changed(self) -> None:
        state = self._connection.connectionState
        if state == "connected":
            self._await_channels()
        elif state in ("failed", "closed"):
            self._lost(GONE if state == "closed" else ABANDONED)

    def _await_channels(self) -> None:
        """Only a channel says that channels can be opened: this one, which the caller is not told of."""
        probe = self._connection.createDataChannel("", negotiated=True, id=PROBE)
        probe.on("open", self.connected.set)
        if probe.readyState == "open":
            self.connected.set()

    def _closed(self, channel: RTCDataChannel) -> None:
        if channel is self._channel:
            self._lost(GONE)

    def _lost(self, code: int) -> None:
        if self._is_open:
            self._is_open = False
            self._arrivals.put_nowait(Disconnected(code))
        self._writable.set()
        self.connected.set()
        self.opened.set()

    @property
    def is_open(self) -> bool:
        return self._is_open

    # ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def receive(self) -> ev.ClientEvent:
        while True:
            arrival = await self._arrivals.get()
            if isinstance(arrival, Exception):
                raise arrival
            if isinstance(arrival, bytes):
                return ev.AudioAppend(audio=arrival)
            self._waiting_texts -= 1
            return _of_a_call(ev.parse_client_event(arrival))

    def _message(self, message: str | bytes) -> None:
        if not self._is_open or self._is_flooded:
            return
        self._is_unused = False
        if not self._meter.accept(1, self._now()) or self._waiting_texts >= WAITING_EVENTS:
            self._flooded(FloodError(f"More than {MESSAGES_PER_S} messages a second.", code="too_many_messages"))
            return
        if isinstance(message, bytes):
            self._arrivals.put_nowait(
                ev.EventError("Send JSON text: binary messages are not understood.", code="invalid_frame")
            )
            return
        self._waiting_texts += 1
        self._arrivals.put_nowait(message)

    def _message_too_large(self) -> None:
        self._flooded(FloodError("A message is too large, or never ends.", code="message_too_large"))

    def _flooded(self, error: FloodError) -> None:
        """Say it once: nobody reads what comes behind it."""
        if not self._is_flooded:
            self._is_flooded = True
            self._arrivals.put_nowait(error)

    async def send(self, event: ev.ServerEvent) -> None:
        if isinstance(event, ev.AudioDelta):
            self._speaker.push(event.audio)
            return
        self._follow(event)
        channel = self._channel
        if not self._is_open or self._is_slow or channel is None:
            return
        if channel.bufferedAmount > MAX_BUFFERED_BYTES:
            await self._wait_writable(channel)
        self._write(event)

    def _write(self, event: ev.ServerEvent) -> None:
        """Say it on the channel, or that it is larger than what the caller's offer said they take."""
        channel = self._channel
        assert channel is not None
        with suppress(InvalidStateError, ConnectionError):  # it closed just now
            try:
                channel.send(text_of(event))
            except ValueError:
                with suppress(ValueError):
                    channel.send(text_of(_too_large(event)))

    async def _wait_writable(self, channel: RTCDataChannel) -> None:
        channel.bufferedAmountLowThreshold = MAX_BUFFERED_BYTES // 2
        self._writable.clear()
        try:
            async with asyncio.timeout(SLOW_S):
                while self._is_open and channel.bufferedAmount > channel.bufferedAmountLowThreshold:
                    await self._writable.wait()
                    self._writable.clear()
        except TimeoutError:
            self._is_slow = True
            raise FloodError("The connection is too slow for this conversation.", code="too_slow") from None

    def _follow(self, event: ev.ServerEvent) -> None:
        """Keep the track in step with what the session says: an interrupted answer falls silent at once."""
        if isinstance(event, ev.ResponseCreated):
            self._is_answering = True
        elif isinstance(event, ev.ResponseDone):
            self._is_answering = False
            if event.response["status"] in ("cancelled", "failed"):
                self._speaker.cut()
        elif isinstance(event, ev.SpeechStarted):
            # The session has handed everything out already, and the caller speaks into the last words.
            if not self._is_answering and self._may_interrupt:
                self._speaker.cut()
        elif isinstance(event, ev.SessionCreated | ev.SessionUpdated):
            if isinstance(event, ev.SessionCreated):
                self._created = event
            detection = event.session.get("turn_detection") or {}
            self._may_interrupt = bool(detection.get("interrupt_response", True))
            self._is_begun = True

    async def close(self, code: int, reason: str) -> None:
        if code in PLAYED_S and self._is_open:  # the last words are on their way
            with suppress(TimeoutError):
                async with asyncio.timeout(PLAYED_S[code]):
                    await self._either(self._speaker.wait_empty())
        if self._channel is not None and self._is_open:
            with suppress(TimeoutError):
                async with asyncio.timeout(SENT_S):
                    await self._either(inside.wait_delivered(self._connection))
        self._is_open = False
        await self.hang_up()

    async def _either(self, wait: Coroutine[Any, Any, None]) -> None:
        """Wait, or until the caller is gone."""
        tasks = [asyncio.create_task(wait), asyncio.create_task(self._until_lost())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _until_lost(self) -> None:
        while self._is_open:
            await self._writable.wait()
            self._writable.clear()

    async def hang_up(self) -> None:
        """Close the connection and leave the clock; harmless when that was done."""
        ticker().leave(self._tick)
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_connection(), name="closing a peer connection")
        # Not cancelled when it takes long: what closes later in it would never be closed.
        await asyncio.wait((self._closing,), timeout=CLOSE_S)
        if not self._closing.done():
            logger.warning("a peer connection did not close within %g s: its relay does not answer", CLOSE_S)
            inside.drop_relays(self._connection)
            await asyncio.wait((self._closing,), timeout=CLOSE_S)
        if self._closing.done():
            self._closing.result()

    async def _close_connection(self) -> None:
        try:
            await self._connection.close()
        except AttributeError:  # aiortc trips over what it left behind when it broke off in the middle of an offer
            logger.info("a peer connection was never whole", exc_info=True)

    # ── Sound ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _receive_packet(self, packet: rtp.Packet) -> None:
        if self._is_begun and self._is_open:  # what came before session.created is dropped
            self._microphone.receive(packet, self._now())

    def _ask(self, numbers: list[int]) -> None:
        if self._line is not None:
            self._line.ask(numbers)

    def _hear(self, pcm: bytes) -> None:
        if self._arrivals.qsize() < WAITING_EVENTS:
            self._arrivals.put_nowait(pcm)

    def _tick(self, periods: int) -> None:
        line = self._line
        assert line is not None
        line.pass_time(TICKS_PER_PACKET * periods)
        if self._is_open:
            self._microphone.pass_time(opus.FRAME_MS * periods, self._now())
        found = self._speaker.take()
        if found is not None:
            line.send(found[0], marker=found[1])
        line.report()
        if line.signs_of_life != self._signs_seen:
            self._signs_seen, self._silent_ticks = line.signs_of_life, 0
        elif self.opened.is_set():
            self._silent_ticks += min(periods, STALL_PERIODS)
            if self._silent_ticks * PERIOD_S > SILENT_S:
                self._lost(ABANDONED)


def _unreachable() -> EngineUnavailable:
    logger.warning("no way for media leads here: %s", places.why_unreachable())
    return EngineUnavailable("No way for media leads to this server now. Use a WebSocket.")


def _too_large(event: ev.ServerEvent) -> ev.ErrorEvent:
    return ev.ErrorEvent(
        event_id=identifier("event"),
        code="event_too_large",
        message=f"An event '{event.type}' was not sent: it is larger than the max-message-size of your offer.",
    )


def _of_a_call(event: ev.ClientEvent) -> ev.ClientEvent:
    """Sound has its own way here: formats that a client asks for are those of WebSockets, and audio is no event.

    Raises:
        EventError: for an event that carries audio.
    """
    if isinstance(event, ev.AudioAppend):
        raise ev.EventError(
            "Over WebRTC, audio comes on the track.", code="invalid_event", param="audio", event_id=event.event_id
        )
    if isinstance(event, ev.SessionUpdate):
        return replace(event, session=_without_formats(event.session))
    if isinstance(event, ev.ResponseCreate):
        return replace(event, response=_without_formats(event.response))
    return event


def _without_formats(patch: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in patch.items() if name not in FORMATS}
    if isinstance(audio := kept.get("audio"), dict):
        kept["audio"] = {
            side: {name: value for name, value in of.items() if name != "format"} if isinstance(of, dict) else of
            for side, of in audio.items()
        }
    return kept
