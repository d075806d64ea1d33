"""A model that a service elsewhere runs, here a second installation of this product: the grant is asked for there and
passed on, and the caller talks to the relay of that service.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.speech import word_errors
from tests.ports import free_udp_port
from tests.realtime.aoq.peer import calling, granted
from tests.realtime.aoq.test_tasks import begin, command
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from voiceapp.engines.interfaces import Samples

MODEL = "qwen3-omni-flash-realtime"
QUESTION = "What is twelve times twelve?"


@pytest.fixture(scope="module")
def service(serve: Serve) -> Product:
    return serve(AOQ_PORT=str(free_udp_port()))


@pytest.fixture(scope="module")
def ours(serve: Serve, service: Product) -> Product:
    return serve(
        AOQ_PORT="0",
        UPSTREAM_BASE_URL=service.origin,
        UPSTREAM_API_KEY=service.keys["good"],
        UPSTREAM_REALTIME_MODEL=MODEL,
        UPSTREAM_MEDIA="direct",
    )


async def test_a_caller_talks_to_the_relay_of_the_service(ours: Product, service: Product) -> None:
    grant = await granted(ours.origin, ours.keys["good"], model="upstream")
    relay = {"endpoint": "127.0.0.1", "port": int(service.environment["AOQ_PORT"]), "route_index": 0}
    assert grant["clientRelayEndpoints"] == [relay]
    (issued,) = service.rows("SELECT sid, model FROM realtime_aoqgrant")
    assert issued == {"sid": grant["sid"], "model": MODEL}
    assert ours.rows("SELECT sid FROM realtime_aoqgrant") == []

    async with calling(grant) as peer:
        await peer.ask(QUESTION)
        assert (await peer.wait("response.done"))["response"]["status"] == "completed"
        await peer.send("session.finish")
        assert await peer.wait_closed() == 1000
        assert peer.packets
    there = await service.row("SELECT transport, model FROM realtime_realtimesession WHERE ended_at IS NOT NULL")
    assert there == {"transport": "aoq", "model": MODEL}
    here = await ours.row("SELECT transport, model FROM realtime_realtimesession")
    assert here == {"transport": "relayed", "model": "upstream"}


async def test_tasks_of_recognition_run_there_as_well(
    ours: Product, service: Product, voices: Callable[[str], Samples]
) -> None:
    grant = await granted(ours.origin, ours.keys["good"], model="upstream", operation="inference")
    async with calling(grant, awaits="ready") as peer:
        await begin(peer)
        await peer.say(voices(QUESTION))
        command(peer, "finish-task")
        await peer.wait("task-finished")
        sentence = peer.all("result-generated")[-1]["payload"]["output"]["sentence"]
    assert min(word_errors(text, sentence["text"]) for text in (QUESTION, "What is 12 times 12?")) == 0
