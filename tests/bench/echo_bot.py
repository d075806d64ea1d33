"""A bot on this product's WebRTC transport, without any engine: hears at 16 kHz, speaks a clip at 24 kHz."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from aiohttp import web  # noqa: E402
from aiortc import RTCPeerConnection  # noqa: E402

from voiceapp.engines.sound.opus import FRAME_BYTES  # noqa: E402
from voiceapp.protocol.wire import events as ev  # noqa: E402
from voiceapp.realtime.transports.interface import Disconnected, Transport  # noqa: E402
from voiceapp.realtime.transports.webrtc import WebRtcTransport  # noqa: E402
from voiceapp.realtime.webrtc import ice_config, sdp  # noqa: E402
from voiceapp.realtime.webrtc.peers import peers  # noqa: E402

LEAD_FRAMES = 5


async def talk(transport: Transport, pcm: bytes) -> None:
    """Say the next 20 ms for every frame heard, a little ahead."""
    position = 0
    owed = LEAD_FRAMES
    await transport.send(ev.SessionCreated(event_id="", session={}))  # what comes before is not heard
    try:
        while True:
            event = await transport.receive()
            if isinstance(event, ev.AudioAppend):
                for _ in range(owed):
                    at = position % (len(pcm) - FRAME_BYTES)
                    position += FRAME_BYTES
                    await transport.send(
                        ev.AudioDelta(
                            response_id="",
                            item_id="",
                            output_index=0,
                            content_index=0,
                            audio=pcm[at : at + FRAME_BYTES],
                        )
                    )
                owed = 1
    except Disconnected:
        await transport.close(1001, "")


def main() -> None:
    pcm = Path(sys.argv[2]).read_bytes()

    async def offer(request: web.Request) -> web.Response:
        asked = await request.json()
        transport = WebRtcTransport(RTCPeerConnection(ice_config.configuration(3600)))
        text = await transport.accept(await sdp.read_offer(asked["sdp"].encode(), allow_private=True))
        peers().keep(talk(transport, pcm), "bot")
        return web.json_response({"sdp": text, "type": "answer"})

    application = web.Application()
    application.router.add_post("/offer", offer)
    asyncio.set_event_loop(asyncio.new_event_loop())
    web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=lambda text: None)


if __name__ == "__main__":
    main()
