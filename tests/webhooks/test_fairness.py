"""Nobody waits for somebody else's receiver, whatever that does."""

from __future__ import annotations

import asyncio
import gzip
import time
import tracemalloc
from collections import Counter
from contextlib import AsyncExitStack
from datetime import datetime

import pytest
from aiohttp import web
from django.utils import timezone

from tests.webhooks.conftest import Program, Receiver, receiving
from tests.webhooks.test_delivery import dripping, endless, hanging
from voiceapp.leases.loop import Loop
from voiceapp.webhooks.events import Kind
from voiceapp.webhooks.line import CAPACITY, PER_ENDPOINT, share_out
from voiceapp.webhooks.models import WebhookEndpoint

pytestmark = pytest.mark.django_db(transaction=True)


async def test_no_endpoint_has_more_calls_than_its_share_and_none_waits_for_another(
    program: Program, receiver: Receiver, sender: Loop
) -> None:
    at_once = Counter[str]()
    most = Counter[str]()
    stuck = asyncio.Event()

    async def hanging(request: web.Request) -> web.Response:
        at_once[request.path] += 1
        most[request.path] = max(most[request.path], at_once[request.path])
        await stuck.wait()
        at_once[request.path] -= 1
        return web.Response()

    async with receiving(hanging) as url:
        for name in "abcdefgh":
            await program.subscribe(f"{url}{name}", Kind.SESSION_CREATED)
        for _ in range(10):
            await program.happen(Kind.SESSION_CREATED)
        quick = await program.subscribe(receiver.url)
        began = time.monotonic()
        for _ in range(12):
            await program.happen()
        await program.until(quick, "SUCCEEDED")
        assert time.monotonic() - began < 2.0
        assert set(most.values()) == {PER_ENDPOINT}
        stuck.set()


async def copies(endpoint_id: str, count: int, url: str) -> None:
    """More endpoints like this one, at another address."""
    row = await WebhookEndpoint.objects.aget(public_id=endpoint_id)
    alike = {"workspace_id": row.workspace_id, "events": row.events, "secret_sealed": row.secret_sealed}
    await WebhookEndpoint.objects.abulk_create([WebhookEndpoint(url=url, **alike) for _ in range(count)])


async def test_bad_receivers_hurt_nobody(program: Program, stranger: Program, sender: Loop) -> None:
    came: list[float] = []
    all_came = asyncio.Event()
    compressed = gzip.compress(bytes(50_000_000))

    async def good(request: web.Request) -> web.Response:
        happened = datetime.fromisoformat((await request.json())["created_at"])
        came.append((timezone.now() - happened).total_seconds())
        if len(came) == 60:
            all_came.set()
        return web.Response()

    async def bomb(_: web.Request) -> web.Response:
        return web.Response(body=compressed, headers={"Content-Encoding": "gzip"})

    async with AsyncExitStack() as receivers:
        bad = [await receivers.enter_async_context(receiving(one)) for one in (bomb, endless, dripping)]
        working = await receivers.enter_async_context(receiving(good))
        for url in bad:
            for number in range(3):
                made = await stranger.subscribe(f"{url}{number}")
        stuck = await receivers.enter_async_context(receiving(hanging))
        await copies(made["id"], 300, stuck)
        await program.subscribe(working)
        for _ in range(10):
            await stranger.happen()
        tracemalloc.start()
        for _ in range(60):
            await program.happen()
            await asyncio.sleep(0.03)
        await asyncio.wait_for(all_came.wait(), 20)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        sender.stop()
    assert sorted(came)[-1] < 2.0
    assert peak < 20_000_000


def test_calls_are_shared_out_to_those_with_the_fewest() -> None:
    assert share_out([(1, 9), (2, 9), (3, 9)], {}, {}, 8) == {1: 2, 2: 1, 3: 1}
    assert share_out([(1, 9), (2, 9)], {1: 3}, {9: 3}, 64) == {1: 1, 2: PER_ENDPOINT}
    assert share_out([(1, 9)], {1: PER_ENDPOINT}, {}, 60) == {}
    assert share_out([(1, 9), (2, 9)], {}, {}, 60) == {1: PER_ENDPOINT, 2: PER_ENDPOINT}


def test_however_much_hangs_there_is_room_for_one_more() -> None:
    under_way: Counter[int] = Counter()
    free = CAPACITY
    for account in range(6):
        many = [(1000 * account + endpoint, account) for endpoint in range(1000)]
        began = share_out(many, {}, under_way, free).total()
        assert began == free // 2
        assert share_out(many, {}, under_way + Counter({account: began}), free - began).total() == 0
        under_way[account] += began
        free -= began
    assert share_out([(9999, 9)], {}, under_way, free).total() == 1
