"""Tasks of recognition over AOQ: the messages of the inference socket on the data track, speech on the audio track."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.engines.speech import word_errors
from tests.realtime.aoq.peer import Peer, allocate, calling, granted
from tests.realtime.product import Product
from voiceapp.engines.interfaces import Samples

QUESTION = "What is twelve times twelve?"
SPELLINGS = (QUESTION, "What is 12 times 12?")
MODEL = "paraformer-realtime-v2"


@asynccontextmanager
async def connected(product: Product, model: str = MODEL) -> AsyncIterator[Peer]:
    grant = await granted(product.origin, product.keys["good"], operation="inference", model=model)
    async with calling(grant, awaits="ready") as peer:
        yield peer


def command(peer: Peer, action: str, task_id: str = "one", **payload: Any) -> None:
    header = {"action": action, "task_id": task_id, "streaming": "duplex"}
    peer.send_bytes(json.dumps({"header": header, "payload": {"input": {}, **payload}}).encode())


async def begin(peer: Peer, task_id: str = "one", *, count: int = 1, **parameters: Any) -> None:
    task = {"task_group": "audio", "task": "asr", "function": "recognition", "model": MODEL}
    command(peer, "run-task", task_id, **task, parameters=parameters)
    await peer.wait("task-started", count=count)


async def test_speech_is_recognised_in_tasks_one_after_the_other(
    product: Product, voices: Callable[[str], Samples]
) -> None:
    async with connected(product) as peer:
        for count, task_id in enumerate(("one", "two"), 1):
            await begin(peer, task_id, count=count, format="opus", sample_rate=48_000)
            await peer.say(voices(QUESTION))
            command(peer, "finish-task", task_id)
            done = await peer.wait("task-finished", count=count)
            assert done["header"]["task_id"] == task_id
            assert done["payload"]["usage"]["duration"] >= 1
    for task_id in ("one", "two"):
        results = [event for event in peer.all("result-generated") if event["header"]["task_id"] == task_id]
        (sentence,) = [
            event["payload"]["output"]["sentence"]
            for event in results
            if event["payload"]["output"]["sentence"]["sentence_end"]
        ]
        assert min(word_errors(spelling, sentence["text"]) for spelling in SPELLINGS) == 0
        assert 0 <= sentence["begin_time"] < sentence["end_time"]
    assert not peer.all("task-failed")  # of what the microphone heard beside the tasks
    assert not peer.packets


async def test_each_task_is_a_session_with_a_row(product: Product) -> None:
    before = len(product.rows("SELECT id FROM realtime_realtimesession"))
    async with connected(product) as peer:
        await begin(peer)
        command(peer, "finish-task")
        await peer.wait("task-finished")
        await begin(peer, "two", count=2)
    await product.row(
        f"SELECT count(*) AS n FROM realtime_realtimesession WHERE ended_at IS NOT NULL HAVING n = {before + 2}"
    )
    rows = product.rows("SELECT transport, close_code FROM realtime_realtimesession ORDER BY started_at DESC LIMIT 2")
    assert rows == [{"transport": "aoq", "close_code": 1001}, {"transport": "aoq", "close_code": 1000}]


async def test_what_is_refused_ends_with_a_sentence(product: Product) -> None:
    async with connected(product) as peer:
        command(peer, "run-task", task="tts", model="cosyvoice-v2")
        failed = await peer.wait("task-failed")
        assert (failed["header"]["task_id"], failed["header"]["error_code"]) == ("one", "InvalidParameter")
        assert "WebSocket" in failed["header"]["error_message"]
        assert (await peer.wait("close"))["code"] == 1000
        assert await peer.wait_closed() == 1000


async def test_an_offer_is_refused_with_the_way_to_go(product: Product) -> None:
    headers = {"x-service-rtc-transport": "", "Content-Type": "application/json"}
    status, told = await allocate(
        product.origin, product.keys["good"], model=MODEL, operation="inference", headers=headers
    )
    assert (status, told["code"]) == (400, "InvalidParameter")
    assert "x-service-rtc-transport: moq" in told["message"]
