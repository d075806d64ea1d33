"""A caller to be killed: says the id of its session, then waits. `python -m tests.realtime.webrtc.victim ORIGIN KEY`"""

from __future__ import annotations

import asyncio
import sys

from tests.realtime.webrtc.caller import calling

LONGEST_S = 60.0


async def _call(origin: str, key: str) -> None:
    async with calling(origin, key) as caller:
        print(caller.heard[0].event["session"]["id"], flush=True)
        await asyncio.sleep(LONGEST_S)


if __name__ == "__main__":
    asyncio.run(_call(*sys.argv[1:]))
