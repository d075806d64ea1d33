"""`POST /api/v1/tokens`: a key's rights for a little while."""

from __future__ import annotations

import time

import pytest
from channels.testing import WebsocketCommunicator
from django.http import HttpResponse
from django.test import AsyncClient
from pytest_django import Settings

from tests.conftest import Member
from voiceapp.accounts.auth import caller_from_bearer
from voiceapp.accounts.models import ApiKey
from voiceapp.asgi import application

TOKENS = "/api/v1/tokens"


async def ask(authorization: str, query: str = "", *, path: str = TOKENS) -> HttpResponse:
    return await AsyncClient().post(path + query, headers={"Authorization": authorization})


async def token_of(member: Member, seconds: int = 60) -> str:
    answer = await ask(member.authorization, f"?expire_in_seconds={seconds}")
    assert answer.status_code == 200
    return str(answer.json()["token"])


@pytest.mark.parametrize(
    ("query", "seconds"), [("", 60), ("?expire_in_seconds=1", 1), ("?expire_in_seconds=1800", 1800)]
)
async def test_it_makes_a_token_with_the_rights_of_the_key(alice: Member, query: str, seconds: int) -> None:
    before = int(time.time())
    answer = await ask(alice.authorization, query)
    assert answer.status_code == 200
    assert set(answer.json()) == {"token", "expires_at"}
    assert before + seconds <= answer.json()["expires_at"] <= time.time() + seconds
    assert answer.headers["Cache-Control"] == "no-store"
    if seconds > 1:  # which may be over by now
        caller = await caller_from_bearer(f"Bearer {answer.json()['token']}")
        assert (caller.key_id, caller.is_temporary) == (alice.row.pk, True)
    assert await ApiKey.objects.acount() == 1, "a token is not listed"


@pytest.mark.parametrize("seconds", ["0", "-1", "1801", "1.5", "soon", "", "9" * 40])
async def test_it_refuses_a_time_out_of_range(alice: Member, seconds: str) -> None:
    answer = await ask(alice.authorization, f"?expire_in_seconds={seconds}")
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParameter")
    assert "expire_in_seconds" in answer.json()["message"]


async def test_a_token_makes_no_token(alice: Member) -> None:
    answer = await ask(f"Bearer {await token_of(alice)}")
    assert (answer.status_code, answer.json()["code"]) == (403, "AccessDenied")


async def test_it_holds_an_account_to_its_rate(alice: Member, bob: Member, charlie: Member, settings: Settings) -> None:
    settings.RATE_LIMITS = {"default": "off", "tokens": "3/60"}
    statuses = [(await ask(member.authorization)).status_code for member in (alice, bob, alice, bob, alice)]
    assert statuses == [200, 200, 200, 429, 429]
    refused = await ask(alice.authorization)
    assert refused.json()["code"] == "Throttling.RateQuota"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert (await ask(charlie.authorization)).status_code == 200


async def test_the_realtime_door_takes_it_for_a_key(alice: Member) -> None:
    async def knock(credentials: str) -> str:
        headers = [(b"authorization", f"Bearer {credentials}".encode())]
        socket = WebsocketCommunicator(application, "/api-ws/v1/realtime?model=voice", headers=headers)
        await socket.send_input({"type": "websocket.connect"})
        answer = await socket.receive_output(30)
        await socket.disconnect(timeout=30)
        return str(answer["type"])

    assert await knock(await token_of(alice)) == "websocket.accept"
    assert await knock("st-" + "A" * 103) != "websocket.accept"
