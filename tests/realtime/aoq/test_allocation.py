"""Requests for grants: what a grant is, which bodies count, and how a request is refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.realtime.aoq.peer import allocate, granted
from tests.realtime.product import Product
from voiceapp.realtime.aoq import relays
from voiceapp.realtime.aoq.allocation import client_ip_of
from voiceapp.realtime.aoq.models import AoqRelay

PATH = "/api/v1/webrtc/realtime?model=voice"


async def ask(product: Product, **options: Any) -> tuple[int, Any]:
    return await allocate(product.origin, product.keys["good"], **options)


async def test_a_grant_is_the_whole_body_and_has_the_shape_of_the_specification(product: Product) -> None:
    grant = await granted(product.origin, product.keys["good"])
    relay = {"endpoint": "127.0.0.1", "port": int(product.environment["AOQ_PORT"]), "route_index": 0}
    assert set(grant) == {
        *("sid", "aoqTokenForClient", "clientRelayEndpoints", "clientRelayCertFingerprint"),
        *("sidExpiresInSecs", "extraInfo"),
    }
    assert grant["clientRelayEndpoints"] == [relay]
    assert grant["sidExpiresInSecs"] == 7200
    assert len(bytes.fromhex(grant["clientRelayCertFingerprint"])) == 32
    assert len(bytes.fromhex(grant["extraInfo"]["workspaceIdHash"])) == 8


@pytest.mark.parametrize(
    "body", [None, b"", b"{}", b'{"clientIp": "203.0.113.9"}', b'{"clientIp": "2001:db8::1", "x": 1}']
)
async def test_the_body_may_be_left_out_and_may_have_more_in_it(product: Product, body: bytes | None) -> None:
    status, grant = await ask(product, body=body)
    assert status == 200, grant


@pytest.mark.parametrize("name", ["x-service-rtc-transport", "X-DashScope-RTC-Transport"])
@pytest.mark.parametrize("value", ["moq", "MOQ"])
async def test_either_header_asks_for_a_grant_in_any_case(product: Product, name: str, value: str) -> None:
    status, _ = await ask(product, headers={"x-service-rtc-transport": "", name: value})
    assert status == 200


async def test_eight_at_once_are_all_different(product: Product) -> None:
    grants = await asyncio.gather(*(granted(product.origin, product.keys["good"]) for _ in range(8)))
    assert len({grant["sid"] for grant in grants}) == len({grant["aoqTokenForClient"] for grant in grants}) == 8
    assert len({grant["extraInfo"]["workspaceIdHash"] for grant in grants}) == 1


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"7", b"\xff", b'{"clientIp": 7}', b'{"clientIp": ""}', b'{"clientIp": "here"}', b"[" * 50_000],
)
async def test_a_body_that_cannot_be_read_is_refused_with_a_sentence(product: Product, body: bytes) -> None:
    status, told = await ask(product, body=body)
    assert (status, told["code"]) == (400, "InvalidParameter")
    assert told["message"].endswith(".")


async def test_keys_and_models_are_refused_as_elsewhere(product: Product) -> None:
    assert (await allocate(product.origin, None))[0] == 401
    status, told = await ask(product, model="nobody")
    assert (status, told["code"]) == (404, "ModelNotFound")


async def test_without_the_header_it_is_an_offer(product: Product) -> None:
    assert (await ask(product, headers={"x-service-rtc-transport": ""}))[0] == 415


def test_no_address_is_an_empty_one() -> None:
    assert client_ip_of(b'{"clientIp": null}') == ""


# ── Which relays a grant names ───────────────────────────────────────────────────────────────────────────────────────


@sync_to_async
def relay(endpoint: str, **facts: Any) -> None:
    AoqRelay.objects.create(
        **{
            "endpoint": endpoint,
            "port": 8443,
            "fingerprint": "ab" * 32,
            "capacity": 10,
            "heartbeat_at": timezone.now(),
            "served_by": "somewhere:1:2",
            **facts,
        }
    )


async def endpoints(address: str) -> list[str]:
    return [found.endpoint for found in await relays.routes_for(address)]


async def test_relays_of_the_region_come_first_and_then_the_least_busy(db: None, settings: Settings) -> None:
    settings.AOQ_REGIONS = {"203.0.0.0/8": "eu", "203.0.113.0/24": "us"}
    await relay("busy.example", load=8)
    await relay("idle.example", load=1)
    await relay("full.example", load=10)
    await relay("eu.example", region="eu", load=9)
    await relay("us.example", region="us", load=9)
    await relay("draining.example", is_draining=True)
    await relay("dead.example", heartbeat_at=timezone.now() - relays.LIVE)
    await relay("other.example", fingerprint="cd" * 32, load=2)

    assert await endpoints("203.0.112.1") == ["eu.example", "idle.example", "busy.example"]
    assert (await endpoints("203.0.113.1"))[0] == "us.example"
    assert await endpoints("192.0.2.1") == ["idle.example", "busy.example", "eu.example"]


async def test_client_ip_prevails_over_the_address_of_the_request_for_that_alone(
    alice: Member, async_client: AsyncClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.AOQ_REGIONS = {"203.0.113.0/24": "us", "127.0.0.0/8": "here"}
    await relay("here.example", region="here")
    await relay("us.example", region="us")

    async def first(body: str) -> str:
        response = await async_client.post(
            PATH,
            body,
            content_type="application/json",
            headers={"Authorization": alice.authorization, "x-service-rtc-transport": "moq"},
        )
        assert response.status_code == 200, response.content
        found: str = json.loads(response.content)["clientRelayEndpoints"][0]["endpoint"]
        return found

    assert await first("{}") == "here.example"
    assert await first('{"clientIp": "203.0.113.9"}') == "us.example"


async def test_without_a_relay_there_is_no_grant(alice: Member, async_client: AsyncClient) -> None:
    headers = {"Authorization": alice.authorization, "x-service-rtc-transport": "moq"}
    response = await async_client.post(PATH, "{}", content_type="application/json", headers=headers)
    assert response.status_code == 503
    assert json.loads(response.content)["message"] == "No AOQ relay is running. Use WebRTC or a WebSocket."
