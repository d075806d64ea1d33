"""An offer that is given up while it connects ends without an exception that nothing retrieves."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from aiortc import RTCConfiguration, RTCPeerConnection

from voiceapp.realtime.transports.webrtc import WebRtcTransport
from voiceapp.realtime.webrtc import sdp


async def test_an_offer_with_two_transports_is_given_up_while_the_first_connects() -> None:
    unretrieved: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unretrieved.append(context))
    caller = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    caller.addTransceiver("audio")
    caller.createDataChannel("svc-events")
    await caller.setLocalDescription(await caller.createOffer())
    offer = "\r\n".join(line for line in caller.localDescription.sdp.splitlines() if "BUNDLE" not in line) + "\r\n"
    transport = WebRtcTransport(RTCPeerConnection(RTCConfiguration(iceServers=[])))
    await transport.accept(await sdp.read_offer(offer.encode(), allow_private=True))
    await asyncio.sleep(0.1)  # the caller has set no answer: checks of the first transport go on
    await transport.hang_up()
    await caller.close()
    await asyncio.sleep(0.1)
    gc.collect()
    assert unretrieved == []
