"""Wake-ups from other processes, by way of PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from tests.postgres import PostgresServer
from voiceapp.leases.wake import CHANNEL, listen

PATIENCE_S = 60.0


@asynccontextmanager
async def listening(url: str) -> AsyncIterator[asyncio.Queue[str]]:
    heard: asyncio.Queue[str] = asyncio.Queue()
    parameters: dict[str, Any] = {"conninfo": url, "autocommit": True, "application_name": "listening"}
    task = asyncio.create_task(listen(parameters, ["a", "b"], heard.put_nowait))
    async with asyncio.timeout(PATIENCE_S):
        yield heard
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_it_arrives_with_the_commit_and_not_before(postgres: PostgresServer) -> None:
    url = postgres.fresh()
    async with listening(url) as heard, await psycopg.AsyncConnection.connect(url) as other:
        assert [await heard.get(), await heard.get()] == ["a", "b"]  # whatever was there before it listened
        await other.execute(f"NOTIFY {CHANNEL}, 'a elsewhere'")
        await other.rollback()
        await other.execute(f"NOTIFY {CHANNEL}, 'b elsewhere'")
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as third:
            await third.execute(f"NOTIFY {CHANNEL}, 'c elsewhere'")
        assert await heard.get() == "c"
        await other.commit()
        assert await heard.get() == "b"


async def test_a_lost_connection_is_made_again_and_nothing_is_missed(postgres: PostgresServer) -> None:
    url = postgres.fresh()
    async with listening(url) as heard, await psycopg.AsyncConnection.connect(url, autocommit=True) as other:
        assert [await heard.get(), await heard.get()] == ["a", "b"]
        await other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'listening' "
            "AND datname = current_database()"
        )
        await other.execute(f"NOTIFY {CHANNEL}, 'a elsewhere'")  # to nobody
        assert [await heard.get(), await heard.get()] == ["a", "b"]
        await other.execute(f"NOTIFY {CHANNEL}, 'a elsewhere'")
        assert await heard.get() == "a"
