"""One installation with a database, a Redis and a disk that a test takes away and gives back."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable

from tests.realtime.conftest import home, serve
from tests.realtime.product import Product, Reply
from tests.realtime.talker import Talker

__all__ = ["home", "serve"]

OUTAGE_S = float(os.environ.get("OUTAGE_S", "8"))
"""How long something is away: longer than a session waits for its rows; `make soak` has it last longer still."""
PATIENCE_S = 120.0 + 2 * OUTAGE_S
TEXT = "The quick brown fox jumps over the lazy dog. "
SPEECH = "services/audio/tts/synthesis"


def create(product: Product, sentences: int = 5) -> Reply:
    """Ask for speech of so many sentences, as a task."""
    return product.ask(f"/api/v1/{SPEECH}", {"model": "tts-1", "input": {"text": TEXT * sentences}})


def accepted(product: Product, sentences: int = 5) -> str:
    reply = create(product, sentences)
    assert reply.status == 200, reply
    return str(reply.body["output"]["task_id"])


async def in_writing(talker: Talker) -> str:
    """Let replies be text alone, which does not take as long as it sounds; returns the session's id."""
    await talker.send("session.update", session={"modalities": ["text"]})
    return str(talker.all("session.created")[0]["session"]["id"])


async def converse(talker: Talker, turns: Iterable[int]) -> None:
    """Ask and be answered, once for each number; they count the conversation's turns from 1."""
    for turn in turns:
        await talker.ask("Spell necessary.")
        done = await talker.wait("response.done", count=turn, timeout_s=PATIENCE_S)
        assert done["response"]["status"] == "completed", done


async def until_accepted(product: Product) -> str:
    """The id of a task that a caller creates who tries again for as long as they are told to."""
    deadline = time.monotonic() + PATIENCE_S
    while (reply := await asyncio.to_thread(create, product)).status != 200:
        assert (reply.status, reply.retry_after is not None) == (503, True), reply
        assert time.monotonic() < deadline, f"it never came back:\n{product.log}"
        await asyncio.sleep(0.5)
    return str(reply.body["output"]["task_id"])


async def until_over(product: Product, tasks: Iterable[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    left = set(tasks)
    while left:
        assert time.monotonic() < deadline, f"{left} never ended:\n{product.log}"
        for task in sorted(left):
            reply = await asyncio.to_thread(product.ask, f"/api/v1/tasks/{task}")
            status = reply.body["output"]["task_status"] if reply.status == 200 else "not known"
            assert status != "FAILED", reply.body
            if status == "SUCCEEDED":
                left.discard(task)
        await asyncio.sleep(0.2)


async def until_written(product: Product, session_id: str, turns: int) -> None:
    """The rows of a session that is over: its end, each of its turns, and what each of them used."""
    row = await product.row(
        "SELECT turn_count, close_code FROM realtime_realtimesession WHERE id = ? AND ended_at IS NOT NULL",
        session_id,
        within_s=PATIENCE_S,
    )
    assert row["turn_count"] == turns
    written = product.rows("SELECT ordinal FROM realtime_turn WHERE session_id = ? ORDER BY ordinal", session_id)
    assert [row["ordinal"] for row in written] == list(range(1, turns + 1))
    billed = product.rows("SELECT request_id, unit FROM accounts_usagerecord WHERE operation = 'realtime'")
    requests = {row["request_id"] for row in billed if row["request_id"].startswith(session_id)}
    assert requests == {f"{session_id}:{ordinal}" for ordinal in range(1, turns + 1)}
    assert len(billed) == len({(row["request_id"], row["unit"]) for row in billed})
