"""One conversation with a server that scripts started: `python -m tests.deploy.talk http://127.0.0.1:8000 sk-…`."""

from __future__ import annotations

import asyncio
import sys

from tests.realtime.talker import call


async def talk(origin: str, key: str) -> None:
    async with call(f"{origin.replace('http', 'ws', 1)}/api-ws/v1/realtime", key) as talker:
        await talker.ask("What is two plus two?")
        assert (await talker.wait("response.done"))["response"]["status"] == "completed"
        assert talker.all("response.audio_transcript.done")[0]["transcript"] == "2 plus 2 is 4."
        assert talker.audio()


if __name__ == "__main__":
    asyncio.run(talk(*sys.argv[1:]))
    print("It talks.")
