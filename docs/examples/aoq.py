"""Ask a question over AOQ and keep the spoken reply: pip install moq-rs==0.5.1 moq-ffi==0.4.18 av"""

import asyncio
import json
import sys
import urllib.request
import wave

import av
import moq


def grant(server: str, key: str) -> dict:
    """What your own backend does, which alone knows the key."""
    headers = {"Authorization": f"Bearer {key}", "x-service-rtc-transport": "moq"}
    request = urllib.request.Request(f"{server}/api/v1/webrtc/realtime?model=voice", b"{}", headers)
    return json.load(urllib.request.urlopen(request))


async def talk(given: dict, question: str) -> None:
    relay, fingerprint = given["clientRelayEndpoints"][0], given["clientRelayCertFingerprint"]
    url = f"https://{relay['endpoint']}:{relay['port']}/aoq/{given['sid']}?jwt={given['aoqTokenForClient']}"
    origin, packets = moq.OriginProducer(), {}
    client = origin.create_broadcast("client")
    tracks = {name: client.publish_track(name) for name in ("audio", "data")}  # held, or the library drops them
    client.announce()

    def send(**event) -> None:
        tracks["data"].write_frame(json.dumps(event).encode())

    async def listen(track) -> None:
        while group := await track.recv_group():
            packets[group.sequence] = (await group.read_frame()).payload

    options = {"websocket_enabled": False, "reconnect": False, "publish": origin, "subscribe": moq.OriginProducer()}
    async with moq.Client(url, tls_fingerprints=[fingerprint] if fingerprint else None, **options) as connection:
        server = await connection.announced_broadcast("server")
        events = await server.subscribe_track("data", moq.Subscription(priority=255, max_age_us=30_000_000))
        sound = await server.subscribe_track("audio", moq.Subscription(priority=200, max_age_us=1_000_000))
        listening = asyncio.create_task(listen(sound))
        await tracks["data"].used()
        send(type="ready")
        async for group in events:
            async for frame in group:
                event = json.loads(frame.payload)
                if event["type"] == "session.created":
                    content = [{"type": "input_text", "text": question}]
                    item = {"type": "message", "role": "user", "content": content}
                    send(type="conversation.item.create", item=item)
                    send(type="response.create")
                    send(type="session.finish")
                elif event["type"] == "response.audio_transcript.done":
                    print(event["transcript"])
                elif event["type"] == "close":
                    listening.cancel()
                    return save(packets)


def save(packets: dict) -> None:
    """The Opus packets as a WAV file: group numbers count frames of 20 ms."""
    decoder = av.CodecContext.create("opus", "r")
    with wave.open("reply.wav", "wb") as file:
        file.setparams((1, 2, 48000, 0, "NONE", ""))
        resampler = av.AudioResampler(format="s16", layout="mono", rate=48000)
        for number in sorted(packets):
            for frame in decoder.decode(av.Packet(packets[number])):
                file.writeframes(b"".join(part.to_ndarray().tobytes() for part in resampler.resample(frame)))


asyncio.run(talk(grant(sys.argv[1], sys.argv[2]), sys.argv[3]))
