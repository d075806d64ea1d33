"""Nobody waits for somebody else's receiver, whatever that does."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from django.utils import timezone

from tests.webhooks.conftest import PATIENCE_S, Program, Receiver, receiving, sending
from tests.webhooks.test_delivery import dripping, endless, hanging
from voiceapp.accounts.models import Account, Workspace
from voiceapp.leases.rows import Lease
from voiceapp.outbound.addresses import Resolver
from voiceapp.webhooks.events import Event, EventKind, publish
from voiceapp.webhooks.models import Delivery, WebhookEndpoint
from voiceapp.webhooks.queue import (
    CAPACITY,
    NEW_CAPACITY,
    PER_ENDPOINT,
    SLOW_CAPACITY,
    SLOW_MS,
    DeliveryQueue,
    share_out,
)

pytestmark = pytest.mark.django_db(transaction=True)

LOCAL = "127.0.0.1"


async def copies(endpoint_id: str, count: int, url: str, workspace: Workspace | None = None) -> None:
    """More endpoints like this one, at another address, in its workspace or another."""
    row = await WebhookEndpoint.objects.aget(public_id=endpoint_id)
    alike = {
        "workspace_id": workspace.pk if workspace else row.workspace_id,
        "events": row.events,
        "secret_sealed": row.secret_sealed,
    }
    await WebhookEndpoint.objects.abulk_create([WebhookEndpoint(url=url, **alike) for _ in range(count)])


class NameServer(asyncio.DatagramProtocol):
    """Knows `good.example`, which is this machine, and says nothing at all of other names."""

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        question = data[12 : data.index(b"\0", 12) + 5]
        if question.startswith(b"\4good\7example\0"):
            is_a = question.endswith(b"\0\1\0\1")
            found = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1" if is_a else b""
            self._transport.sendto(data[:2] + b"\x81\x80\0\1\0" + bytes([is_a, 0, 0, 0, 0]) + question + found, addr)


@asynccontextmanager
async def name_server() -> AsyncIterator[str]:
    """Its address and port."""
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(NameServer, ("127.0.0.1", 0))
    yield f"127.0.0.1:{transport.get_extra_info('sockname')[1]}"
    transport.close()


async def test_bad_receivers_hurt_nobody(program: Program, stranger: Program) -> None:
    waits_s: list[float] = []
    arrived = asyncio.Semaphore(0)
    compressed = gzip.compress(bytes(50_000_000))

    async def good(request: web.Request) -> web.Response:
        happened = datetime.fromisoformat((await request.json())["created_at"])
        waits_s.append((timezone.now() - happened).total_seconds())
        arrived.release()
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
        for number in range(20):
            await copies(made["id"], 1, f"http://mute{number}.example/")
        ours = await program.subscribe(working)
        await WebhookEndpoint.objects.filter(public_id=ours["id"]).aupdate(url=working.replace(LOCAL, "good.example"))
        names = Resolver([await receivers.enter_async_context(name_server())])
        sender = await receivers.enter_async_context(sending(DeliveryQueue(resolver=names)))
        for _ in range(10):
            await stranger.happen()
        for number in range(60):
            if number == 50:
                tracemalloc.start()
            await program.happen()
            async with asyncio.timeout(PATIENCE_S):
                await arrived.acquire()
            await asyncio.sleep(0.03)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        sender.stop()
        await names.close()
    # Resolver that nobody knows are waited for for three seconds, receivers that hang for five.
    assert max(waits_s) < 3.0
    assert peak < 20_000_000


async def test_receivers_that_are_new_or_slow_leave_room_for_quick_ones(program: Program, receiver: Receiver) -> None:
    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(SLOW_MS / 1000)
        return web.Response(status=503)

    async def database(function: Callable[..., object], *args: object) -> object:
        return await sync_to_async(function)(*args)

    line = DeliveryQueue()
    quick = await program.subscribe(receiver.url)

    async def ours_among(leases: Sequence[Lease]) -> list[Lease]:
        rows = Delivery.objects.filter(endpoint__public_id=quick["id"]).values_list("pk", flat=True)
        keys = [key async for key in rows]
        return [lease for lease in leases if lease.row_id in keys]

    await program.happen()
    [known] = await sync_to_async(line.claim)("worker", CAPACITY)
    await line.work(known, database)
    async with receiving(slow) as url:
        for number in range(24):
            account = await Account.objects.acreate(name=f"Acme {number}")
            workspace = await Workspace.objects.acreate(account=account, name="Default")
            await copies(quick["id"], 4, url, workspace)
            for _ in range(PER_ENDPOINT):
                await sync_to_async(publish)(workspace.pk, [Event(EventKind.TASK_FINISHED, "task-1")])
        await program.happen()
        leases = await sync_to_async(line.claim)("worker", CAPACITY)
        [ours] = await ours_among(leases)
        assert SLOW_CAPACITY < len(leases) < CAPACITY - SLOW_CAPACITY
        await line.work(ours, database)  # alone, for among so many nobody is quick on a busy machine
        await asyncio.gather(*(line.work(lease, database) for lease in leases if lease is not ours))
    await line.close()

    await program.happen()
    leases = await sync_to_async(line.claim)("worker", CAPACITY)
    assert await ours_among(leases)
    assert len(leases) <= 1 + SLOW_CAPACITY


def test_calls_are_shared_out_to_those_with_the_fewest() -> None:
    assert share_out([(1, 9), (2, 9), (3, 9)], {}, {}, 8) == {1: 2, 2: 1, 3: 1}
    assert share_out([(1, 9), (2, 9)], {1: 3}, {9: 3}, 64) == {1: 1, 2: PER_ENDPOINT}
    assert share_out([(1, 9)], {1: PER_ENDPOINT}, {}, 60) == {}
    assert share_out([(1, 9), (2, 9)], {}, {}, 60) == {1: PER_ENDPOINT, 2: PER_ENDPOINT}


def test_however_much_hangs_there_is_room_for_one_more() -> None:
    under_way: Counter[int] = Counter()
    free = NEW_CAPACITY
    for account in range(7):
        many = [(1000 * account + endpoint, account) for endpoint in range(1000)]
        began = share_out(many, {}, under_way, free).total()
        assert began == free // 2
        assert share_out(many, {}, under_way + Counter({account: began}), free - began).total() == 0
        under_way[account] += began
        free -= began
    assert share_out([(9999, 9)], {}, under_way, free).total() == 1
