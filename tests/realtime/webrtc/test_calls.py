"""Calls of OpenAI's clients from both sides: a server joins one and hangs it up, wherever it is held."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from openai import AsyncOpenAI, NotFoundError, PermissionDeniedError
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from tests.conftest import Member
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import PATIENCE_S
from tests.realtime.webrtc.caller import calling
from voiceapp.accounts.caller import Caller
from voiceapp.errors import NotFound
from voiceapp.realtime.calls import MOST_JOINED, CallName, read_call_name

TYPED = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is twelve times twelve?"}]}
REPLY = "12 times 12 is 144."


@pytest.fixture(scope="module")
def held(serve: Serve) -> Product:
    return serve()


@pytest.fixture(scope="module")
def front(serve: Serve, held: Product) -> Product:
    """Another process of the same installation; besides, it knows the first as a service to which calls are passed."""
    service = {"BASE_URL": f"{held.origin}/v1", "API_KEY": held.keys["good"], "REALTIME_MODEL": "voice"}
    variables = {f"UPSTREAM_{name}": value for name, value in service.items()}
    return serve(UPSTREAM_DIALECT="openai", UPSTREAM_MEDIA="direct", **variables)


def client(product: Product, key: str = "") -> AsyncOpenAI:
    return AsyncOpenAI(api_key=key or product.keys["good"], base_url=f"{product.origin}/v1", max_retries=0)


async def answer_of(server: Any) -> str:
    """Reply to the next response."""
    async for event in server:
        assert event.type != "error", event
        if event.type == "response.done":
            return str(event.response.output[0].content[0].transcript)
    raise AssertionError("the call ended before")


@pytest.mark.parametrize("where", ["same process", "another process", "service"])
async def test_a_server_joins_a_call_and_hangs_it_up(held: Product, front: Product, where: str) -> None:
    begun_at = front if where == "service" else held
    joined_at = held if where == "same process" else front
    names: list[str] = []

    async def post(offer: str) -> tuple[int, str, Any]:
        session: Any = {"type": "realtime", "model": "upstream" if where == "service" else "voice"}
        async with client(begun_at) as browser:
            secret = await browser.realtime.client_secrets.create(session=session)
        async with client(begun_at, secret.value) as browser:
            answer = await browser.realtime.calls.with_raw_response.create(sdp=offer)
            names.append(answer.headers["Location"].rpartition("/")[2])
            with pytest.raises(PermissionDeniedError):
                await browser.realtime.calls.hangup(names[0])
            with pytest.raises(InvalidStatus, match="403"):
                await browser.realtime.connect(call_id=names[0]).enter()
        return 200, answer.text if isinstance(answer.text, str) else answer.text(), {}

    async with (
        asyncio.timeout(2 * PATIENCE_S),
        client(joined_at) as api,
        calling(begun_at.origin, None, label="oai-events", post=post) as caller,
        api.realtime.connect(call_id=names[0]) as server,
    ):
        assert (await server.recv()).type == "session.created"
        await server.session.update(session={"type": "realtime", "max_output_tokens": 200})
        assert (await server.recv()).session.max_output_tokens == 200
        assert (await caller.wait("session.updated"))["session"]["max_output_tokens"] == 200
        await server.conversation.item.create(item=TYPED)
        await server.response.create()
        assert await answer_of(server) == REPLY
        assert (await caller.wait("response.done"))["response"]["output"][0]["content"][0]["transcript"] == REPLY
        await caller.wait_loud()
        await caller.ask("What is two plus two?")
        assert await answer_of(server) == "2 plus 2 is 4."

        await api.realtime.calls.hangup(names[0])
        with pytest.raises(AssertionError, match="ended before"):
            await answer_of(server)
        await caller.wait_closed()
        for again in (api.realtime.calls.hangup(names[0]), api.realtime.connect(call_id=names[0]).enter()):
            with pytest.raises((NotFoundError, InvalidStatus), match="404"):
                await again
    assert "Traceback" not in held.log + front.log
    if where == "service":
        assert await front.row("select ended_at is not null as ended from realtime_realtimesession") == {"ended": 1}


async def test_only_so_many_join_a_call_for_as_long_as_their_keys_are_good(held: Product) -> None:
    names: list[str] = []

    async def post(offer: str) -> tuple[int, str, Any]:
        async with client(held) as browser:
            answer = await browser.realtime.calls.with_raw_response.create(sdp=offer, session={"model": "voice"})
        names.append(answer.headers["Location"].rpartition("/")[2])
        return 200, answer.text if isinstance(answer.text, str) else answer.text(), {}

    async with (
        asyncio.timeout(PATIENCE_S),
        client(held, held.keys["doomed"]) as api,
        calling(held.origin, None, label="oai-events", post=post) as caller,
    ):
        joined = [await api.realtime.connect(call_id=names[0]).enter() for _ in range(MOST_JOINED)]
        with pytest.raises(InvalidStatus, match="429"):
            await api.realtime.connect(call_id=names[0]).enter()
        held.write("update accounts_apikey set revoked_at = CURRENT_TIMESTAMP where name = 'doomed'")
        for server in joined:
            with pytest.raises(ConnectionClosedError, match="4401"):
                await answer_of(server)
        await caller.ask("What is two plus two?")
        await caller.wait("response.done")


def test_a_name_leads_its_own_account_to_a_call(alice: Member, bob: Member) -> None:
    caller = Caller.of(alice.row)
    for there in ("", "rtc_u1_9C6CJHUkFRJxRVKPa"):
        name = CallName("sess_1", caller.account_id, there=there)
        assert read_call_name(str(name), caller).there == there
        for text in (str(name)[:-1], str(name).replace("sess_1", "sess_2"), "sess_1", "", "../x"):
            with pytest.raises(NotFound):
                read_call_name(text, caller)
        with pytest.raises(NotFound):
            read_call_name(str(name), replace(caller, account_id=caller.account_id + 1))
        assert read_call_name(str(name), Caller.of(bob.row)).session_id == "sess_1"
    assert read_call_name(str(CallName("sess_1", caller.account_id, there="a/../b")), caller).there == ""
