import asyncio

from agents.realtime import RealtimeAgent, RealtimeRunner


async def main():
    agent = RealtimeAgent(name="Assistant", instructions="Be brief.")
    url = "ws://localhost:8000/v1/realtime?model=voice"
    sound = b""
    async with await RealtimeRunner(agent).run(model_config={"url": url, "api_key": "sk-…"}) as session:
        await session.send_message("What is two plus two?")
        async for event in session:
            if event.type == "audio":
                sound += event.audio.data  # 16 bit PCM, mono, 24 kHz
            elif event.type == "raw_model_event" and event.data.type == "transcript_delta":
                print(event.data.delta, end="", flush=True)  # prints: 2 plus 2 is 4.
            elif event.type == "error":
                raise RuntimeError(event.error)
            elif event.type == "agent_end":
                break
    print(f" ({len(sound) / 48000:.1f} seconds)")


asyncio.run(main())
