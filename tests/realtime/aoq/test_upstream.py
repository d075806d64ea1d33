"""Sessions behind a relay of somebody else's, which callers and this server both connect to."""

from __future__ import annotations

import json
from pathlib import Path

import jwt
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.ports import free_udp_port
from tests.realtime.aoq.peer import calling, granted
from tests.realtime.aoq.relay import stock_relay
from tests.realtime.aoq.test_tasks import begin, command
from tests.realtime.conftest import Serve
from voiceapp.realtime.aoq import tokens
from voiceapp.realtime.aoq.upstream import upstream

QUESTION = "What is twelve times twelve?"
SECRET = "the secret of a server"


async def test_callers_and_the_server_meet_at_the_relay(serve: Serve, settings: Settings, tmp_path: Path) -> None:
    settings.SECRET_KEY = SECRET
    async with stock_relay(tmp_path, tokens.public_jwk()) as relay:
        address = f"https://127.0.0.1:{relay.port}"
        product = serve(
            SECRET_KEY=SECRET, AOQ_UPSTREAM_RELAY=address, AOQ_UPSTREAM_FINGERPRINT=relay.fingerprint.upper()
        )
        good = product.keys["good"]
        grant = await granted(product.origin, good)
        assert grant["clientRelayEndpoints"] == [{"endpoint": "127.0.0.1", "port": relay.port, "route_index": 0}]
        assert grant["clientRelayCertFingerprint"] == relay.fingerprint
        assert grant["sidExpiresInSecs"] == 120

        async with calling(grant) as peer:
            await peer.ask(QUESTION)
            assert (await peer.wait("response.done"))["response"]["status"] == "completed"
            await peer.send("session.finish")
            assert (await peer.wait("close"))["code"] == 1000
            assert peer.packets
        row = await product.row("SELECT transport, close_code FROM realtime_realtimesession WHERE ended_at IS NOT NULL")
        assert row == {"transport": "aoq", "close_code": 1000}

        async with calling(await granted(product.origin, good)) as peer:
            assert peer.all("session.created")
        left = "SELECT close_code FROM realtime_realtimesession WHERE close_code != 1000"
        assert (await product.row(left))["close_code"] in (1001, 1006)

        model = "paraformer-realtime-v2"
        async with calling(
            await granted(product.origin, good, model=model, operation="inference"), awaits="ready"
        ) as peer:
            await begin(peer)
            command(peer, "finish-task")
            await peer.wait("task-finished")
        assert relay.refused == []
        assert product.stop() == 0


async def test_without_the_relay_there_is_no_grant(
    alice: Member, async_client: AsyncClient, settings: Settings
) -> None:
    settings.AOQ_UPSTREAM_RELAY = f"https://127.0.0.1:{free_udp_port()}"
    headers = {"Authorization": alice.authorization, "x-service-rtc-transport": "moq"}
    path = "/api/v1/webrtc/realtime?model=voice"
    response = await async_client.post(path, "{}", content_type="application/json", headers=headers)
    assert response.status_code == 503
    assert json.loads(response.content)["message"].endswith(".")
    await upstream().close()


def test_a_token_is_one_that_a_relay_verifies_which_knows_of_no_audience(settings: Settings) -> None:
    settings.SECRET_KEY = SECRET
    key = jwt.PyJWK(tokens.public_jwk()).key
    token = tokens.sign("5" * 32, issued_at=1_000, expires_at=4_000_000_000, is_upstream=True)
    assert "aud" not in jwt.decode(token, key, algorithms=["EdDSA"])
    server = jwt.decode(
        tokens.sign_server("5" * 32, issued_at=1_000, expires_at=4_000_000_000), key, algorithms=["EdDSA"]
    )
    assert (server["root"], server["put"], server["get"]) == (f"aoq/{'5' * 32}", ["server"], ["client"])
