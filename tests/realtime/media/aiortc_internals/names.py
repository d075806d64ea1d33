"""The private attributes of aiortc and aioice that `aiortc_internals` relies on, and the versions that have them."""

from __future__ import annotations

from collections.abc import Sequence

import aioice
from aioice.ice import StunProtocol
from aiortc import RTCPeerConnection, RTCRtpTransceiver

VERSIONS = {"aiortc": "1.16.0", "aioice": "0.13.0", "pylibsrtp": "1.0.0"}

INSIDE: dict[type, Sequence[str]] = {
    aioice.Connection: (
        "_nominated",
        "_protocols",
        "_query_consent_task",
        "build_request",
        "data_received",
        "get_component_candidates",
        "query_consent",
    ),
    StunProtocol: ("local_candidate", "transport"),
    RTCPeerConnection: ("_RTCPeerConnection__connect",),
    RTCRtpTransceiver: ("_codecs",),
}
"""Class → names that are not part of its documented interface. What is set in constructors is in INSIDE_INSTANCES."""
INSIDE_INSTANCES = {
    "RTCIceTransport": ("_connection",),
    "RTCDtlsTransport": ("_rx_srtp", "_tx_srtp", "_register_rtp_receiver", "_register_rtp_sender"),
    "RTCRtpSender": ("_ssrc",),
    "RTCSctpTransport": (
        "_data_channel_queue",
        "_get_inbound_stream",
        "_inbound_streams",
        "_outbound_queue",
        "_sack_misordered",
        "_sent_queue",
    ),
    "TurnTransport": ("_TurnTransport__close_task", "_TurnTransport__inner_protocol", "_TurnTransport__send_tasks"),
}
