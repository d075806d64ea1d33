"""Ask a question over AOQ and keep the spoken reply: pip install moq-rs==0.5.1 moq-ffi==0.4.18 av"""

import asyncio
import json
import sys
from urllib.request import urlopen

import av
import moq


async def listen(sound: moq.TrackConsumer) -> None:
    with av.open("reply.wav", "w") as file:
        track, decoder = file.add_stream("pcm_s16le", rate=48000, layout="mono"), av.CodecContext.create("opus", "r")
        while group := await sound.recv_group():
            for frame in decoder.decode(av.Packet((await group.read_frame()).payload)):
                file.mux(track.encode(frame))


async def ask(grant: dict, question: str) -> None:
    relay, pinned = grant["clientRelayEndpoints"][0], grant["clientRelayCertFingerprint"]
    url = f"https://{relay['endpoint']}:{relay['port']}/aoq/{grant['sid']}?jwt={grant['aoqTokenForClient']}"
    async with moq.Client(url, tls_fingerprints=[pinned] if pinned else None) as connection:
        client = connection.create_broadcast("client")
        tracks = client.publish_track("audio"), client.publish_track("data")
        client.announce()
        server = await connection.announced_broadcast("server")
        events = await server.subscribe_track("data", moq.Subscription(max_age_us=30_000_000))
        listening = asyncio.create_task(listen(await server.subscribe_track("audio")))
        await tracks[1].used()  # the server can hear what is said on it
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": question}]}
        for name in ("ready", "conversation.item.create", "response.create", "session.finish"):
            tracks[1].write_frame(json.dumps({"type": name} | ({} if name == "ready" else {"item": item})).encode())
        async for event in (json.loads(frame.payload) async for group in events async for frame in group):
            print(event.get("transcript", ""), end="")
            if event["type"] == "close":
                return listening.cancel()


asyncio.run(ask(json.load(urlopen(sys.argv[1], b"{}")), sys.argv[2]))
