"""The WebRTC door: events on a data channel, sound on an audio track each way.

A request brings the offer and takes the answer away; `peers` has the conversation, which begins when the channel opens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from aiortc import RTCDataChannel, RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription
from aiortc.exceptions import InternalError, InvalidAccessError, InvalidStateError, OperationError
from django.conf import settings

from voiceapp.errors import EngineUnavailable, FloodError, InvalidParameter
from voiceapp.protocol.states import step
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.close_codes import ABANDONED, NORMAL
from voiceapp.realtime.media.aiortc_internals import gathering
from voiceapp.realtime.media.aiortc_internals.connecting import give_up_quietly
from voiceapp.realtime.media.aiortc_internals.rtp_sink import RtpSink
from voiceapp.realtime.media.aiortc_internals.sctp import bound_messages, wait_delivered
from voiceapp.realtime.media.arrivals import Arrivals
from voiceapp.realtime.media.leg import MediaLeg
from voiceapp.realtime.transports.interface import OWN, Dialect, text_of, texts_of
from voiceapp.realtime.transports.limits import MAX_UNSENT_BYTES, PLAYED_S, SLOW_READER_S
from voiceapp.realtime.webrtc import ice_config, sdp
from voiceapp.realtime.webrtc.states import LIVE, PEER_STEPS, PeerState

logger = logging.getLogger(__name__)

LABEL = "svc-events"
"""Label of the channel that this server opens when the caller opens none."""
OWN_NUMBER = 100
"""Number of that channel, or the next (RFC 8832, 6); the first ones belong to channels that callers negotiate."""
PROBE = 65_534
"""Number of a channel that is never used; the highest there may be."""
ANSWER_S = 10.0
"""Time to gather candidates: 3 s for each relay that does not answer, and some."""
CLOSE_S = 2.0
SENT_S = 2.5
"""Time for the last words to arrive."""
GONE = 1001
"""The caller closed the connection, or their page is gone (RFC 6455, 7.4.1, has the word for it)."""

Refused = (OperationError, InternalError, InvalidStateError, InvalidAccessError)


class WebRtcTransport:
    """An accepted peer connection as a `Transport`."""

    def __init__(self, connection: RTCPeerConnection, dialect: Dialect = OWN) -> None:
        self._connection = connection
        self._dialect = dialect
        self._arrivals = Arrivals(dialect)
        self._channel: RTCDataChannel | None = None
        self._is_unused = False
        """The channel is this server's own, and the caller has said nothing yet."""
        self._greeting: ev.SessionCreated | ev.SessionResumed | None = None
        self._writable = asyncio.Event()
        self._leg = MediaLeg(self._arrivals.hear, lambda: self._lost(ABANDONED))
        self._sink: RtpSink | None = None
        self._state = PeerState.NEGOTIATING
        self._is_slow = False
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
        give_up_quietly(connection)
        audio = connection.addTransceiver("audio", direction="sendrecv")
        codecs = RTCRtpReceiver.getCapabilities("audio")
        assert codecs is not None
        audio.setCodecPreferences([codec for codec in codecs.codecs if codec.mimeType == "audio/opus"])
        redundant = sdp.redundant_type(offer)
        try:
            async with asyncio.timeout(ANSWER_S):
                await connection.setRemoteDescription(RTCSessionDescription(sdp.sound_and_channel(offer), "offer"))
                sink = RtpSink(audio, self._leg.receive, redundant)
                bound_messages(connection, self._message_too_large)
                if settings.RTC_FORCE_RELAY:
                    gathering.use_relays(connection, ice_config.relays.in_order(), ice_config.relays.prefer)
                else:
                    if ports := ice_config.ports():
                        gathering.use_ports(connection, *ports)
                    gathering.limit_stun(connection)
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
        self._sink = sink
        self._leg.connect(sink)
        return answer

    def quality(self) -> str:
        """Return what is known of the caller's network, in words; empty before there was any report."""
        return self._sink.quality() if self._sink is not None else ""

    def open_channel(self) -> None:
        if self._channel is None and self.is_open:
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
            if self._greeting is not None:
                self._write(self._greeting)

    def _adopt(self, channel: RTCDataChannel) -> None:
        self._channel = channel
        channel.on("message", self._message)
        channel.on("close", lambda: self._closed(channel))
        channel.on("bufferedamountlow", self._writable.set)
        channel.on("open", self._channel_open)
        if channel.readyState == "open":
            self._channel_open()

    def _channel_open(self) -> None:
        if self.is_open:
            self._state = step(PEER_STEPS, self._state, "open")
            self._leg.watch()
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
        probe.on("open", self._can_open)
        if probe.readyState == "open":
            self._can_open()

    def _can_open(self) -> None:
        if self.is_open:
            self._state = step(PEER_STEPS, self._state, "connect")
        self.connected.set()

    def _closed(self, channel: RTCDataChannel) -> None:
        if channel is self._channel:
            self._lost(GONE)

    def _lost(self, code: int) -> None:
        if self.is_open:
            self._end("lose")
            self._arrivals.lost(code)
        self._writable.set()
        self.connected.set()
        self.opened.set()

    def _end(self, name: str) -> None:
        self._state = step(PEER_STEPS, self._state, name)
        self._leg.stop_listening()

    @property
    def is_open(self) -> bool:
        """Return whether the caller is connected, as far as this side knows."""
        return self._state in LIVE

    # ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def receive(self) -> ev.ClientEvent:
        return await self._arrivals.receive()

    def _message(self, message: str | bytes) -> None:
        if self.is_open:
            self._is_unused = False
            self._arrivals.message(message)

    async def message(self, text: str) -> None:
        """Another connection says something in the caller's place; waits while there is no room."""
        await self._arrivals.wait_room()
        if self.is_open:
            self._arrivals.message(text)

    def leave(self) -> None:
        """End the session as if the caller had left."""
        self._lost(NORMAL)

    def _message_too_large(self) -> None:
        self._arrivals.flooded(FloodError("A message is too large, or never ends.", code="message_too_large"))

    async def send(self, event: ev.ServerEvent) -> None:
        if isinstance(event, ev.AudioDelta):
            self._leg.play(event.audio)
            if self._dialect is OWN:
                return
        elif isinstance(event, ev.ReplyDucked | ev.ReplyRestored | ev.SpeechStarted):
            self._leg.duck(is_on=isinstance(event, ev.ReplyDucked))
        if isinstance(event, (ev.SessionCreated, ev.SessionResumed)):
            self._greeting = event
            self._leg.listen()
        channel = self._channel
        if not self.is_open or self._is_slow or channel is None:
            return
        if channel.bufferedAmount > MAX_UNSENT_BYTES:
            await self._wait_writable(channel)
        self._write(event)

    def _write(self, event: ev.ServerEvent) -> None:
        """Say it on the channel, or that it is larger than what the caller's offer said they take."""
        channel = self._channel
        assert channel is not None
        with suppress(InvalidStateError, ConnectionError):  # it closed just now
            for text in texts_of(event, self._dialect):
                try:
                    channel.send(text)
                except ValueError:
                    with suppress(ValueError):
                        channel.send(text_of(_too_large(event)))

    async def _wait_writable(self, channel: RTCDataChannel) -> None:
        channel.bufferedAmountLowThreshold = MAX_UNSENT_BYTES // 2
        self._writable.clear()
        try:
            async with asyncio.timeout(SLOW_READER_S):
                while self.is_open and channel.bufferedAmount > channel.bufferedAmountLowThreshold:
                    await self._writable.wait()
                    self._writable.clear()
        except TimeoutError:
            self._is_slow = True
            raise FloodError("The connection is too slow for this conversation.", code="too_slow") from None

    def cut_playout(self) -> None:
        self._leg.cut()

    async def close(self, code: int, reason: str) -> None:
        if code in PLAYED_S and self.is_open:  # the last words are on their way
            with suppress(TimeoutError):
                async with asyncio.timeout(PLAYED_S[code]):
                    await self._either(self._leg.wait_played())
        if self._channel is not None and self.is_open:
            with suppress(TimeoutError):
                async with asyncio.timeout(SENT_S):
                    await self._either(wait_delivered(self._connection))
        await self.hang_up()

    async def _either(self, wait: Coroutine[Any, Any, None]) -> None:
        """Wait, or until the caller is gone."""
        tasks = [
            asyncio.create_task(wait, name="peer: wait"),
            asyncio.create_task(self._until_lost(), name="peer: lost"),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _until_lost(self) -> None:
        while self.is_open:
            await self._writable.wait()
            self._writable.clear()

    async def hang_up(self) -> None:
        """Close the connection and leave the clock; harmless when that was done."""
        if self._state is not PeerState.CLOSED:
            self._end("close")
        self._leg.disconnect()
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_connection(), name="closing a peer connection")
        # Not cancelled when it takes long: what closes later in it would never be closed.
        await asyncio.wait((self._closing,), timeout=CLOSE_S)
        if not self._closing.done():
            logger.warning("a peer connection did not close within %g s: its relay does not answer", CLOSE_S)
            gathering.drop_relays(self._connection)
            await asyncio.wait((self._closing,), timeout=CLOSE_S)
        if self._closing.done():
            self._closing.result()

    async def _close_connection(self) -> None:
        try:
            await self._connection.close()
        except AttributeError as error:  # aiortc trips over what it left behind when it broke off within an offer
            logger.info("a peer connection was never whole: %s", error)


def _unreachable() -> EngineUnavailable:
    logger.warning("no way for media leads here: %s", ice_config.why_unreachable())
    return EngineUnavailable("No way for media leads to this server now. Use a WebSocket.")


def _too_large(event: ev.ServerEvent) -> ev.ErrorEvent:
    return ev.ErrorEvent(
        event_id=event.event_id,
        code="event_too_large",
        message=f"An event '{event.type}' was not sent: it is larger than the max-message-size of your offer.",
    )
