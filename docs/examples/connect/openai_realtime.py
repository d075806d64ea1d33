import asyncio
import base64

from openai import AsyncOpenAI


async def main():
    client = AsyncOpenAI(base_url="http://localhost:8000/v1", api_key="sk-…")
    async with client.realtime.connect(model="voice") as connection:
        question = {"type": "input_text", "text": "What is two plus two?"}
        await connection.conversation.item.create(item={"type": "message", "role": "user", "content": [question]})
        await connection.response.create()
        sound = b""
        async for event in connection:
            if event.type == "response.output_audio_transcript.delta":
                print(event.delta, end="", flush=True)  # prints: 2 plus 2 is 4.
            elif event.type == "response.output_audio.delta":
                sound += base64.b64decode(event.delta)  # 16 bit PCM, mono, 24 kHz
            elif event.type == "response.done":
                break
        print(f" ({len(sound) / 48000:.1f} seconds)")


asyncio.run(main())
