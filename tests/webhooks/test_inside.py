"""Whatever an address meant when it was entered, no call of ours leads inside."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from pytest_django.fixtures import Settings

from tests.outbound.test_client import HOSTILE, Names, serving
from tests.webhooks.conftest import PATIENCE_S, Program, Receiver, sending
from voiceapp.leases.loop import Loop
from voiceapp.webhooks import store
from voiceapp.webhooks.models import Delivery, WebhookEndpoint
from voiceapp.webhooks.queue import DeliveryQueue

pytestmark = pytest.mark.django_db(transaction=True)

SETTLED = ("FAILED", "WAITING_RETRY", "CANCELED")


@contextlib.asynccontextmanager
async def canary() -> AsyncIterator[tuple[int, list[str]]]:
    """A server that nobody must call: its port, and who did."""
    reached: list[str] = []

    async def take(request: web.BaseRequest) -> web.Response:
        reached.append(request.path)
        return web.Response()

    async with serving(take) as port:
        yield port, reached


async def settled() -> None:
    """Until every delivery was tried."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if not await Delivery.objects.exclude(status__in=SETTLED).aexists():
                return
            await asyncio.sleep(0.05)


async def test_addresses_that_slipped_in_are_neither_called_nor_called_again(
    program: Program, sender: Loop, settings: Settings
) -> None:
    made = await program.subscribe("http://127.0.0.1:9/")
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    async with canary() as (port, reached):
        row = await WebhookEndpoint.objects.aget(public_id=made["id"])
        hostile = [
            WebhookEndpoint(
                workspace=program.member.workspace,
                url=template.format(port=port),
                events=row.events,
                secret_sealed=row.secret_sealed,
            )
            for template in HOSTILE
        ]
        await WebhookEndpoint.objects.abulk_create(hostile)
        await program.happen()
        await settled()
        inside = [one async for one in WebhookEndpoint.objects.filter(disabled_reason="SSRF_VALIDATION_FAILED")]
        # The others are no names of anything here.
        assert len(inside) > len(HOSTILE) * 0.8

        for one in inside:
            await sync_to_async(store.enable)(one)
        assert await sync_to_async(store.resend)(Delivery.objects.all()) >= len(inside)
        await settled()
        for one in hostile:
            await program.call("POST", f"/{one.public_id}/enable")
            status, _, _ = await program.bad("POST", f"/{one.public_id}/test")
            assert status == 502
    assert reached == []


@pytest.mark.parametrize(
    "answers", [(["192.0.2.1"], ["127.0.0.1"]), (["127.0.0.1", "192.0.2.1"],)], ids=["in turn", "together"]
)
async def test_a_name_that_changes_its_mind_leads_nowhere(
    program: Program, settings: Settings, answers: tuple[list[str], ...]
) -> None:
    made = await program.subscribe("http://127.0.0.1:9/")
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    settings.WEBHOOK_RETRY_SCHEDULE = [0.05]
    async with canary() as (port, reached), sending(DeliveryQueue(resolver=Names(*answers))):
        await WebhookEndpoint.objects.aupdate(url=f"http://receiver.example:{port}/")
        await program.happen()
        await program.until(made, "FAILED")
    record = await program.good("GET", f"/{made['id']}")
    assert (record["status"], record["disabled_reason"]) == ("DISABLED", "SSRF_VALIDATION_FAILED")
    assert reached == []


async def test_a_redirect_leads_nowhere(program: Program, receiver: Receiver, sender: Loop) -> None:
    async with canary() as (port, reached):
        receiver.statuses = [307]
        receiver.headers = {"Location": f"http://127.0.0.1:{port}/"}
        made = await program.subscribe(receiver.url)
        await program.happen()
        await program.until(made, "FAILED")
    record = await program.good("GET", f"/{made['id']}")
    assert record["disabled_reason"] == "REDIRECT_RESPONSE"
    assert reached == []
