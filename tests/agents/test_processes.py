"""Two server processes of one installation: what is published holds for new conversations in both."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from tests.agents.conftest import Apply
from tests.realtime.chat_server import KEY, ChatServer
from tests.realtime.conftest import Serve
from tests.realtime.talker import Talker, call

VERSIONS, IN_EACH = 3, 2


async def test_a_conversation_keeps_its_version_while_others_are_published(
    serve: Serve, chat_server: ChatServer, apply: Apply
) -> None:
    options = {"CHAT_BASE_URL": chat_server.base_url, "CHAT_API_KEY": KEY, "MAX_SESSIONS_PER_ACCOUNT": "100"}
    first = serve(**options)
    both = (first, serve(**options, DATABASE_URL=first.environment["DATABASE_URL"]))
    began: dict[Talker, int] = {}

    async def ask(talker: Talker, number: int) -> None:
        before = len(talker.all("response.done"))
        await talker.ask(f"I am caller {number}.")
        await talker.wait("response.done", count=before + 1)

    async with AsyncExitStack() as calls:
        for version in range(1, VERSIONS + 1):
            async with asyncio.TaskGroup() as together:
                text = f'instructions = "This is version {version}."'
                published = together.create_task(asyncio.to_thread(apply, first, desk=text))
                for number, talker in enumerate(began):
                    together.create_task(ask(talker, number))
            assert f"desk@{version}: published" in published.result()[1]
            for product in both * IN_EACH:
                opened = call(product.url, product.keys["good"], model="desk")
                began[await calls.enter_async_context(opened)] = version
        await asyncio.gather(*(ask(talker, number) for number, talker in enumerate(began)))

    told = [str(request["messages"]) for request in chat_server.requests]
    for number, version in enumerate(began.values()):
        of_it = [text for text in told if f"I am caller {number}." in text]
        assert len(of_it) == VERSIONS + 1 - version
        assert all(text.count("This is version") == 1 and f"This is version {version}." in text for text in of_it)
    named = "select count(*) as number from realtime_realtimesession where model = 'desk' and agent_version = ?"
    for version in range(1, VERSIONS + 1):
        assert first.rows(named, version) == [{"number": IN_EACH * len(both)}]
