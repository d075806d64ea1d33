"""What calls leave behind in a process: nothing."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from pathlib import Path

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from voiceapp.realtime import sdp
from voiceapp.realtime.media.ticker import ticker
from voiceapp.realtime.transports.webrtc import WebRtcTransport

AT_ONCE = 5
WARM_UP = 100
CALLS = 200
GROWTH_KB = 5000
"""200 calls that stay would hold some 50 MB. Alone, 300 calls leave less than 0.2 MB; pytest keeps their log."""
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
    return sum(isinstance(thing, RTCPeerConnection | WebRtcTransport) for thing in gc.get_objects())


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
