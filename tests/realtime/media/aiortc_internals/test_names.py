"""What is used of aiortc beyond its documented interface; fails where a new version took something away."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aiortc
import pytest
from aioice.turn import TurnClientUdpProtocol, TurnTransport
from aiortc import RTCPeerConnection

from tests.realtime.media.aiortc_internals.names import INSIDE, INSIDE_INSTANCES, VERSIONS
from voiceapp.realtime.media import aiortc_internals
from voiceapp.realtime.media.aiortc_internals import sctp as _timers_are_set  # noqa: F401
from voiceapp.realtime.media.aiortc_internals.rtp_sink import RtpSink

ROOT = Path(__file__).resolve().parent.parent.parent.parent.parent
PACKAGE = Path(aiortc_internals.__file__).parent


@pytest.mark.parametrize("package", sorted(VERSIONS))
def test_the_version_is_the_one_it_was_written_for(package: str) -> None:
    assert version(package) == VERSIONS[package]
    assert f"{package}=={VERSIONS[package]}" in (ROOT / "requirements.txt").read_text()


async def test_everything_it_reaches_for_is_there() -> None:
    connection = RTCPeerConnection()
    transceiver = connection.addTransceiver("audio")
    dtls = transceiver.receiver.transport
    connection.createDataChannel("any")
    instances = {
        "RTCIceTransport": dtls.transport,
        "RTCDtlsTransport": dtls,
        "RTCRtpSender": transceiver.sender,
        "RTCSctpTransport": connection.sctp,
        "TurnTransport": TurnTransport(TurnClientUdpProtocol(("127.0.0.1", 1), None, None, 600, 500)),
    }
    assert instances.keys() == INSIDE_INSTANCES.keys()
    for kind, names in INSIDE_INSTANCES.items():
        assert type(instances[kind]).__name__ == kind
        assert [name for name in names if not hasattr(instances[kind], name)] == []
    assert type(dtls.transport._connection) in INSIDE
    for owner, inside in INSIDE.items():
        of_class = {name for base in owner.__mro__ for name in (*vars(base), *getattr(base, "__annotations__", ()))}
        missing = set(inside) - of_class - set(vars(transceiver)) - set(vars(dtls.transport._connection))
        assert missing <= {"local_candidate"}
    await connection.close()


async def test_lost_events_are_sent_again_as_soon_as_by_browsers() -> None:
    connection = RTCPeerConnection()
    connection.createDataChannel("any")
    sctp: Any = connection.sctp
    assert sctp._rto == 0.5
    sctp._update_rto(0.01)
    assert sctp._rto == 0.4
    await connection.close()


def test_no_other_file_reaches_inside() -> None:
    private = {name for names in (*INSIDE.values(), *INSIDE_INSTANCES.values()) for name in names if name[0] == "_"}
    pattern = re.compile(r"\.(?:" + "|".join(sorted(private - {"_connection", "_ssrc"})) + r")\b")
    others = [path for path in (ROOT / "voiceapp").rglob("*.py") if path.parent != PACKAGE]
    assert [path.name for path in others if pattern.search(path.read_text())] == []


def test_its_names_are_all_it_uses() -> None:
    text = "\n".join(path.read_text() for path in PACKAGE.glob("*.py"))
    used = set(re.findall(r"\.(_[a-z]\w+)\b", text))
    known = {name for names in (*INSIDE.values(), *INSIDE_INSTANCES.values()) for name in names}
    own = {name for name in vars(RtpSink) if name[0] == "_"}
    own |= set(re.findall(r"self\.(_\w+)(?::[^=\n]+)? = ", text))
    own |= {"_sent_packets", "_sent_octets"}  # assigned together
    assert used - own - known == set()
    assert aiortc.__version__ == VERSIONS["aiortc"]
