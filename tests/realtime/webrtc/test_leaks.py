"""What calls leave behind in a process: nothing."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from pathlib import Path
from typing import cast

from aioice import stun
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from pytest_django import Settings

from voiceapp.realtime.media.ticker import ticker
from voiceapp.realtime.transports.webrtc import WebRtcTransport
from voiceapp.realtime.webrtc import ice_config, sdp

AT_ONCE = 5
WARM_UP = 50
CALLS = 50
GROWTH_KB = 5000
"""50 calls that stay would hold some 12 MB. Alone, 300 calls leave less than 0.2 MB; pytest keeps their log."""
ROUNDS = 3
"""What leaks, leaks in every round; what other tests of the process left to be tidied up grows it once."""


async def one() -> None:
    caller = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    transport = WebRtcTransport(RTCPeerConnection(RTCConfiguration(iceServers=[])))
    try:
        caller.addTransceiver("audio")
        channel = caller.createDataChannel("any")
        opened = asyncio.Event()
        channel.on("open", opened.set)
        await caller.setLocalDescription(await caller.createOffer())
        offer = await sdp.read_offer(caller.localDescription.sdp.encode(), allow_private=True)
        await caller.setRemoteDescription(RTCSessionDescription(await transport.accept(offer), "answer"))
        async with asyncio.timeout(20):
            await opened.wait()
    finally:
        await transport.hang_up()
        await caller.close()


async def some(count: int) -> None:
    for _ in range(count // AT_ONCE):
        await asyncio.gather(*(one() for _ in range(AT_ONCE)))
    await asyncio.sleep(0.5)  # timers of transactions that were cut short


def resident_kb() -> int:
    """Memory of this process, when the allocator has given back what it holds in reserve."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def peers_alive() -> int:
    # By `type`: `isinstance` asks an object for its class, and a lazy one of Django's comes to be by that.
    return sum(issubclass(type(thing), RTCPeerConnection | WebRtcTransport) for thing in gc.get_objects())


async def test_calls_leave_no_memory_task_or_file_behind() -> None:
    await some(WARM_UP)
    for _ in range(ROUNDS):
        before = (resident_kb(), len(asyncio.all_tasks()), open_files(), peers_alive())
        await some(CALLS)
        after = (resident_kb(), len(asyncio.all_tasks()), open_files(), peers_alive())
        # Fewer, when the end of something before was late.
        assert all(now <= then for now, then in zip(after[1:], before[1:], strict=True)), (before, after)
        assert after[3] == 0
        if after[0] - before[0] < GROWTH_KB:
            break
    assert after[0] - before[0] < GROWTH_KB
    assert ticker().is_resting


class FallingSilent(asyncio.DatagramProtocol):
    """A relay that takes callers in and then answers nothing more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        request = stun.parse_message(data)
        if request.message_method == stun.Method.ALLOCATE:
            answer = stun.Message(stun.Method.ALLOCATE, stun.Class.RESPONSE, request.transaction_id)
            answer.attributes["LIFETIME"] = 600
            answer.attributes["XOR-MAPPED-ADDRESS"] = answer.attributes["XOR-RELAYED-ADDRESS"] = address
            self.transport.sendto(bytes(answer), address)


async def test_a_relay_that_fell_silent_keeps_no_socket_or_task(settings: Settings, offer: str) -> None:
    relay, _ = await asyncio.get_running_loop().create_datagram_endpoint(FallingSilent, local_addr=("127.0.0.1", 0))
    settings.RTC_FORCE_RELAY, settings.TURN_SECRET = True, "secret"
    settings.TURN_URLS = [f"turn:127.0.0.1:{relay.get_extra_info('sockname')[1]}?transport=udp"]
    checked = await sdp.read_offer(offer.encode(), allow_private=True)
    before = asyncio.all_tasks(), open_files()
    transport = WebRtcTransport(RTCPeerConnection(ice_config.configuration(60)))
    assert "typ relay" in await transport.accept(checked)
    await transport.hang_up()
    await asyncio.sleep(0)  # tasks that were cancelled
    assert asyncio.all_tasks() <= before[0]
    assert open_files() <= before[1]
    relay.close()
