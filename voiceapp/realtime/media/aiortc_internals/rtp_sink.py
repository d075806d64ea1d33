"""RTP past aiortc's senders, receivers and queues.

aiortc's own media path costs a decoder thread per caller, three queues and a task per direction; a voice server carries
three to four times as many calls without them.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import aioice
import pylibsrtp
from aiortc import RTCRtpTransceiver
from aiortc.rtcrtpreceiver import StreamStatistics
from aiortc.rtp import (
    RTCP_RTPFB_NACK,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtcpRtpfbPacket,
    RtcpSdesPacket,
    RtcpSenderInfo,
    RtcpSourceInfo,
    RtcpSrPacket,
)

from voiceapp.realtime.media import rtp

CLOCK_HZ = 48_000
CHECK_S = 1.0
"""From a caller of whom nothing comes, consent is asked for as often."""
CONSENT_S, CONSENT_LASTS_S = 5.0, 30.0
"""From all others (RFC 7675, 5.1)."""
COPIED_S = 15.0
"""After a report of loss, so long every packet carries a copy of the one before."""
HISTORY_PACKETS = 32
"""Packets that can be sent again: 0.6 s."""
REPORT_TICKS = 125
"""A report on what was sent and received every 2.5 s (RFC 3550, 6.2: not more often than 5 s for a whole session)."""
NTP_EPOCH_S = 2_208_988_800
FIRST_RTCP, LAST_RTCP = 192, 223
"""Second byte of control packets among media packets (RFC 5761, 4)."""


class RtpSink:
    """The RTP of one audio transceiver, both ways. Make it after the offer is set and before the answer is."""

    def __init__(
        self, transceiver: RTCRtpTransceiver, hear: Callable[[rtp.Packet], None], redundant_type: int | None
    ) -> None:
        """`redundant_type` is the payload type of packets with copies (RFC 2198) if the caller knows such."""
        self._hear = hear
        self._redundant_type = redundant_type
        self._copying_until = 0.0
        self._previous: tuple[int, bytes] | None = None
        """Timestamp and payload of the last packet sent."""
        self._history: dict[int, bytes] = {}
        """Packets that were sent, encrypted, by sequence number."""
        self._ssrc = transceiver.sender._ssrc
        """Under this name aiortc looks for the receiver of control packets."""
        self._dtls: Any = transceiver.receiver.transport
        self._connection: Any = self._dtls.transport._connection
        self._payload_type = int(transceiver._codecs[0].payloadType or 0)
        self._may_send = False
        self._sequence = secrets.randbelow(1 << 15)
        self._timestamp = secrets.randbelow(rtp.TIMESTAMPS)
        self._sent_packets = self._sent_octets = 0
        self._received: dict[int, Any] = {}
        self._sender_reports: dict[int, tuple[int, float]] = {}
        """Reports by source: the middle of the NTP time of the last one, and its arrival."""
        self._lost = 0.0
        """Share of our packets that did not reach the caller."""
        self._round_trip_s: float | None = None
        self._ticks = secrets.randbelow(REPORT_TICKS)
        self.signs_of_life = 0
        """Datagrams received, and answers to checks of consent; stands still when the caller is gone."""
        receiver: Any = transceiver.receiver
        sender: Any = transceiver.sender
        receiver.receive, sender.send = self._begin_receiving, self._begin_sending
        self._queue_datagram: Callable[[bytes, int], None] = self._connection.data_received
        self._connection.data_received = self._datagram  # type: ignore[method-assign]
        self._connection.query_consent = self._keep_consent  # type: ignore[method-assign]

    # ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def pass_time(self, ticks: int) -> None:
        """The media clock moves on by so many RTP ticks, whether or not anything is sent."""
        self._timestamp = (self._timestamp + ticks) % rtp.TIMESTAMPS

    def send(self, payload: bytes, *, marker: bool) -> None:
        """Send one packet now; nothing happens before the connection is up and after it is down."""
        if not self._may_send:
            return
        payload_type, content = self._with_copy(payload)
        packet = rtp.build(payload_type, self._sequence, self._timestamp, self._ssrc, content, marker=marker)
        datagram = self._dtls._tx_srtp.protect(packet)
        if self._transmit(datagram):
            self._history[self._sequence] = datagram
            self._history.pop((self._sequence - HISTORY_PACKETS) % rtp.SEQUENCES, None)
            self._previous = self._timestamp, payload
            self._sequence = (self._sequence + 1) % rtp.SEQUENCES
            self._sent_packets += 1
            self._sent_octets += len(content)

    def _with_copy(self, payload: bytes) -> tuple[int, bytes]:
        """Payload type and content of the next packet: with a copy of the last one if the caller's network loses."""
        if self._redundant_type is None or self._previous is None or time.monotonic() > self._copying_until:
            return self._payload_type, payload
        timestamp, previous = self._previous
        ticks = (self._timestamp - timestamp) % rtp.TIMESTAMPS
        if ticks > rtp.MAX_COPY_TICKS or len(previous) > rtp.MAX_COPY_BYTES:
            return self._payload_type, payload
        return self._redundant_type, rtp.redundant(self._payload_type, payload, previous, ticks)

    def _copy_if_lost(self, reports: Sequence[RtcpReceiverInfo]) -> None:
        if any(report.fraction_lost for report in reports):
            self._copying_until = time.monotonic() + COPIED_S

    def ask(self, numbers: list[int]) -> None:
        """Ask the caller to send these packets again (RFC 4585, 6.2.1); who does not know how does not listen."""
        if not self._may_send or not self._received:
            return
        (source,) = self._received
        request = RtcpRtpfbPacket(fmt=RTCP_RTPFB_NACK, ssrc=self._ssrc, media_ssrc=source, lost=sorted(numbers))
        report = RtcpRrPacket(ssrc=self._ssrc, reports=[])
        self._transmit(self._dtls._tx_srtp.protect_rtcp(bytes(report) + bytes(request)))

    def report(self) -> None:
        """Call once per tick: sends the control packets when they are due."""
        self._ticks += 1
        if self._ticks % REPORT_TICKS or not self._may_send:
            return
        now = time.time()
        reports = [self._reception(ssrc, statistics, now) for ssrc, statistics in self._received.items()]
        self._copy_if_lost(reports)  # networks seldom lose in one direction only
        if self._sent_packets:
            seconds, fraction = divmod(now + NTP_EPOCH_S, 1)
            sender = RtcpSenderInfo(
                ntp_timestamp=int(seconds) << 32 | int(fraction * (1 << 32)),
                rtp_timestamp=self._timestamp,
                packet_count=self._sent_packets,
                octet_count=self._sent_octets,
            )
            first: RtcpSrPacket | RtcpRrPacket = RtcpSrPacket(ssrc=self._ssrc, sender_info=sender, reports=reports)
        else:
            first = RtcpRrPacket(ssrc=self._ssrc, reports=reports)
        name = RtcpSdesPacket(chunks=[RtcpSourceInfo(ssrc=self._ssrc, items=[(1, b"voice")])])
        self._transmit(self._dtls._tx_srtp.protect_rtcp(bytes(first) + bytes(name)))

    def _transmit(self, datagram: bytes) -> bool:
        pair = self._connection._nominated.get(1)
        if pair is None:
            return False
        pair.protocol.transport.sendto(datagram, pair.remote_addr)
        return True

    def _reception(self, ssrc: int, statistics: Any, now: float) -> RtcpReceiverInfo:
        last, came_at = self._sender_reports.get(ssrc, (0, now))
        return RtcpReceiverInfo(
            ssrc=ssrc,
            fraction_lost=statistics.fraction_lost,
            packets_lost=statistics.packets_lost,
            highest_sequence=statistics.cycles + (statistics.max_seq or 0),
            jitter=statistics.jitter,
            lsr=last,
            dlsr=int((now - came_at) * 65536) & 0xFFFFFFFF if last else 0,
        )

    async def _begin_sending(self, parameters: Any) -> None:
        """Stands in the place of `RTCRtpSender.send`: the connection is up."""
        if not self._may_send:
            self._dtls._register_rtp_sender(self, parameters)
            self._may_send = True

    async def _keep_consent(self) -> None:
        """Stands in the place of aioice's checks, which find out after 30 s that the peer is gone."""
        now = asyncio.get_running_loop().time
        connection = self._connection
        consented_at = asked_at = now()
        while now() - consented_at < CONSENT_LASTS_S:
            seen = self.signs_of_life
            await asyncio.sleep(CHECK_S * (0.8 + 0.4 * secrets.randbelow(1000) / 1000))
            if self.signs_of_life != seen and now() - asked_at < CONSENT_S:
                continue
            asked_at = now()
            for pair in tuple(connection._nominated.values()):
                request = connection.build_request(pair, nominate=False)
                key = connection.remote_password.encode()
                with suppress(aioice.stun.TransactionError):
                    await pair.protocol.request(request, pair.remote_addr, integrity_key=key, retransmissions=0)
                    consented_at = now()
                    self.signs_of_life += 1
        connection._query_consent_task = None  # it would be waited for, and is this one
        await connection.close()

    # ── Receiving ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _begin_receiving(self, parameters: Any) -> None:
        """Stands in the place of `RTCRtpReceiver.receive`, which would start a thread."""
        self._dtls._register_rtp_receiver(self, parameters)

    def _datagram(self, data: bytes, component: int) -> None:
        """Stands in the place of the connection's queue: media is read here and now, everything else waits there."""
        self.signs_of_life += 1
        if len(data) < rtp.HEADER.size or not 127 < data[0] < 192 or FIRST_RTCP <= data[1] <= LAST_RTCP:
            self._queue_datagram(data, component)
            return
        session = self._dtls._rx_srtp
        payload_type = data[1] & 0x7F
        if session is None or payload_type not in (self._payload_type, self._redundant_type):
            return  # before the keys are known; or video, which is not used
        try:
            packet = rtp.parse(session.unprotect(data))
            if payload_type == self._redundant_type:
                packet = rtp.with_copies(packet, self._payload_type)
        except (pylibsrtp.Error, ValueError):
            return
        if packet.ssrc not in self._received:  # one source at a time; a new one follows a change of microphone
            self._received = {packet.ssrc: StreamStatistics(CLOCK_HZ)}
        statistics: Any = self._received[packet.ssrc]
        statistics.add(_Counted(packet.sequence, packet.timestamp))
        self._hear(packet)

    async def _handle_rtcp_packet(self, packet: Any) -> None:
        """aiortc's router hands control packets over."""
        if isinstance(packet, RtcpSrPacket):
            middle = packet.sender_info.ntp_timestamp >> 16 & 0xFFFFFFFF
            self._sender_reports = {packet.ssrc: (middle, time.time())}
        if isinstance(packet, RtcpSrPacket | RtcpRrPacket):
            about_us = [report for report in packet.reports if report.ssrc == self._ssrc]
            self._copy_if_lost(about_us)
            for report in about_us:
                self._note(report)
        elif isinstance(packet, RtcpRtpfbPacket) and packet.fmt == RTCP_RTPFB_NACK:
            for number in packet.lost[:HISTORY_PACKETS]:
                if (datagram := self._history.pop(number, None)) is not None:  # once: no amplifier of what is asked
                    self._transmit(datagram)

    def _note(self, report: RtcpReceiverInfo) -> None:
        """Take what the caller says of our packets (RFC 3550, 6.4.1)."""
        self._lost = max(0, report.packets_lost) / max(1, self._sent_packets)
        if report.lsr:
            now = int((time.time() + NTP_EPOCH_S) * 65536)
            self._round_trip_s = ((now - report.lsr - report.dlsr) & 0xFFFFFFFF) / 65536

    def quality(self) -> str:
        """Return loss, jitter and round trip in words; empty before the caller's first report."""
        if self._round_trip_s is None:
            return ""
        told = [f"lost on the way to the caller {self._lost:.1%}", f"round trip {self._round_trip_s * 1000:.0f} ms"]
        for statistics in self._received.values():
            lost = max(0, statistics.packets_lost) / max(1, statistics.packets_expected)
            jitter_ms = statistics.jitter * 1000 / CLOCK_HZ
            told[:0] = [f"lost on the way here {lost:.1%}", f"jitter {jitter_ms:.0f} ms"]
        return ", ".join(told)

    async def _handle_rtp_packet(self, packet: Any, arrival_time_ms: int) -> None:
        """aiortc's router would hand media over; none comes that far."""

    def _handle_disconnect(self) -> None:
        """aiortc says that the connection is gone."""
        self._may_send = False


class _Counted:
    """Fields of a packet that `StreamStatistics` reads."""

    __slots__ = ("sequence_number", "timestamp")

    def __init__(self, sequence_number: int, timestamp: int) -> None:
        self.sequence_number = sequence_number
        self.timestamp = timestamp
