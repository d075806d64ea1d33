"""One table of refusals, through every door: the same code, the same status, the same sentence."""

from __future__ import annotations

import asyncio
import urllib.request
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings
from websockets.exceptions import InvalidStatus

from tests.conftest import Member
from tests.ports import free_udp_port
from tests.realtime.conftest import Serve
from tests.realtime.doors import (
    LET_IN,
    OF_PROGRAMS,
    OF_THE_PAGE,
    Outcome,
    Visitor,
    api_socket,
    guest,
    member,
    page_socket,
    program,
)
from tests.realtime.product import Product
from tests.realtime.talker import PATIENCE_S, Talker, call
from voiceapp.accounts.auth import KEY_WANTED, Caller
from voiceapp.catalogue.lookup import catalogue
from voiceapp.realtime.admission import admit
from voiceapp.realtime.answering import MOST_LANGUAGES
from voiceapp.realtime.doors import API_GRANT, API_OFFER, API_SOCKET, HELD_OFFER, OPENAI_OFFER, PAGE_SOCKET, Door

UPSTREAM = {"UPSTREAM_BASE_URL": "http://127.0.0.1:9", "UPSTREAM_API_KEY": "secret", "UPSTREAM_MEDIA": "direct"}
"""A service that nobody reaches: who gets so far was not refused here."""
BAD_KEY = (401, "InvalidApiKey", "Invalid API-key provided.")
BUSY = "Throttling.Concurrency"
OURS = [knock for door, knock in OF_PROGRAMS.items() if not door.startswith("forwarded")]


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    """A server that is soon full, behind a proxy that tells it where guests come from."""
    return serve(
        **UPSTREAM,
        TRUST_PROXY="1",
        MAX_SESSIONS="3",
        MAX_SESSIONS_PER_ACCOUNT="1",
        PUBLIC_PAGE="guest",
        GUEST_SESSIONS_TOTAL="2",
        GUEST_SESSIONS_PER_ADDRESS="1",
        GUEST_SESSIONS_PER_HOUR="1",
        LEDGER_PRICES='{"realtime": {"audio_seconds": 1}}',
    )


async def by_programs(product: Product, key: str | None, offer: str, model: str | None = "voice") -> dict[str, Outcome]:
    """What becomes of a program's attempts, by door."""
    return {door: await knock(product, program(key), model, offer) for door, knock in OF_PROGRAMS.items()}


async def by_page(product: Product, visitor: Visitor, offer: str, model: str | None = "voice") -> dict[str, Outcome]:
    """What becomes of a page's attempts, by door."""
    return {door: await knock(product, visitor, model, offer) for door, knock in OF_THE_PAGE.items()}


async def by_all(product: Product, offer: str, model: str | None = "voice") -> dict[str, Outcome]:
    """What becomes of attempts with a good key, and of a signed-in person of the same account."""
    person = await member(product)
    return await by_programs(product, product.keys["good"], offer, model) | await by_page(product, person, offer, model)


def everywhere(outcomes: dict[str, Outcome], status: int, code: str, message: str) -> None:
    assert outcomes == dict.fromkeys(outcomes, (status, code, message))


def room(product: Product) -> float:
    """How many sessions may begin at once, as Prometheus is told."""
    with urllib.request.urlopen(f"{product.origin}/metrics", timeout=30) as response:
        families = text_string_to_metric_families(response.read().decode())
        return next(each.samples[0].value for each in families if each.name == "voiceapp_admission_room")


async def holding(calls: AsyncExitStack, url: str, visitor: Visitor) -> Talker:
    """A conversation that goes on, as soon as there is a place for it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await calls.enter_async_context(call(url, headers=visitor.headers, origin=visitor.origin))
            except InvalidStatus as refused:
                if refused.response.status_code not in (429, 503):
                    raise
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("door", "model", "rate_hz"),
    [
        (API_SOCKET, "voice", 16_000),
        (PAGE_SOCKET, "gpt-realtime", 24_000),
        (API_OFFER, "gpt-realtime", 16_000),
        (API_GRANT, "gpt-realtime", 16_000),
    ],
)
async def test_the_card_says_what_pcm_means_and_a_door_that_decodes_says_so_itself(
    alice: Member, door: Door, model: str, rate_hz: int
) -> None:
    admitted = await admit(Caller.of(alice.row), door, model, "")
    assert admitted.call.input_rate_hz == rate_hz


@pytest.mark.parametrize("door", [API_OFFER, OPENAI_OFFER, HELD_OFFER, API_SOCKET])
@pytest.mark.parametrize("way", ["forwards_offers", "forwards_calls", "forwards_events"])
def test_a_service_holds_only_sessions_of_callers_who_speak_its_dialect(door: Door, way: str) -> None:
    card = replace(catalogue().default("realtime"), **{way: True})  # type: ignore[arg-type]
    is_passed_on = (door, way) in ((API_OFFER, "forwards_offers"), (OPENAI_OFFER, "forwards_calls"))
    assert door.transport_of(card) == ("relayed" if is_passed_on else door.transport)


async def test_a_time_zone_that_does_not_exist_is_the_server_s(alice: Member, settings: Settings) -> None:
    settings.LOCAL_TIME_ZONE = "Asia/Kathmandu"
    caller = Caller.of(alice.row)
    for given, taken in (
        ("Europe/Vienna", "Europe/Vienna"),
        ("Middle/Earth", "Asia/Kathmandu"),
        ("", "Asia/Kathmandu"),
    ):
        assert (await admit(caller, API_SOCKET, "voice", "", time_zone=given)).call.time_zone == taken


@pytest.mark.parametrize(
    ("header", "languages"),
    [
        ("de-AT, en;q=0.5", ("de", "en")),
        ("en;q=0.5,es,pt;q=0", ("es", "en")),
        ("de", ("de", "en")),
        ("de, *;q=0.1", ()),
        ("", ()),
        ("quite: wrong", ()),
        (", ".join(f"{letter}{other}" for letter in "abcdef" for other in "xyzuvw"), None),
        ("x" * 100_000, ()),
    ],
)
async def test_a_caller_speaks_the_languages_of_the_header_or_english(
    alice: Member, header: str, languages: tuple[str, ...] | None
) -> None:
    found = (await admit(Caller.of(alice.row), API_SOCKET, "voice", "", languages=header)).call.languages
    assert found == languages if languages is not None else len(found) == MOST_LANGUAGES + 1


@pytest.mark.parametrize("key", [None, "sk-nonsense", "revoked", "expired"])
async def test_a_key_that_is_missing_or_wrong(product: Product, offer: str, key: str | None) -> None:
    text = product.keys.get(key, key) if key else None
    sentence = BAD_KEY[2] if key else KEY_WANTED
    everywhere(await by_programs(product, text, offer), *BAD_KEY[:2], sentence)


async def test_a_key_without_the_right(product: Product, offer: str) -> None:
    outcomes = await by_programs(product, product.keys["elsewhere"], offer)
    everywhere(outcomes, 403, "AccessDenied", "This API key may not be used for realtime.")


async def test_a_key_for_other_models(product: Product, offer: str) -> None:
    outcomes = await by_programs(product, product.keys["narrow"], offer)
    assert {outcome[:2] for outcome in outcomes.values()} == {(403, "AccessDenied")}
    assert [outcome[2] for outcome in outcomes.values()] == [
        f"This API key may not be used for the model '{model}'."
        for model in ("voice", "voice", "upstream", "voice", "upstream")
    ]


async def test_a_key_whose_budget_is_used_up(product: Product, offer: str) -> None:
    outcomes = await by_programs(product, product.keys["spent"], offer)
    message = "This API key's budget for this month does not allow the call. Ask an operator."
    everywhere(outcomes, 403, "AccessDenied", message)


@pytest.mark.parametrize("model", [None, ""])
async def test_no_model(product: Product, offer: str, model: str | None) -> None:
    everywhere(await by_all(product, offer, model), 400, "InvalidParameter", "The query parameter 'model' is missing.")


@pytest.mark.parametrize("model", ["nobody", "text-embedding-v4"])
async def test_an_unknown_model(product: Product, offer: str, model: str) -> None:
    message = f"There is no realtime model '{model}' on this server."
    everywhere(await by_all(product, offer, model), 404, "ModelNotFound", message)


async def test_no_cookie(product: Product, offer: str) -> None:
    stranger = Visitor({}, product.origin)
    with_a_key = Visitor(program(product.keys["good"]).headers, product.origin)
    assert await page_socket(product, with_a_key, "voice", offer) == (403, "AccessDenied", "Sign in to talk.")
    assert await by_page(product, stranger, offer) == {
        "page socket": (403, "AccessDenied", "Sign in to talk."),
        **{
            door: (403, "AccessDenied", "Load the page again: CSRF cookie not set.")
            for door in ("page offer", "forwarded page offer", "page grant", "forwarded page grant")
        },
    }


NOT_OURS = (403, "AccessDenied", "This page may not open a conversation here: its origin is not ours.")


async def test_another_page(product: Product, offer: str) -> None:
    visitor = await guest(product)
    outcomes = await by_page(product, Visitor(visitor.headers, "https://evil.example"), offer)
    everywhere(outcomes, *NOT_OURS)
    for origin in (
        f"https://{product.address}",
        "http://127.0.0.1:1",
        f"http://localhost:{product.port}",
        f"http://127.0.0.1.example.org:{product.port}",
        "null",
        None,
    ):
        assert await page_socket(product, Visitor(visitor.headers, origin), "voice", offer) == NOT_OURS, origin
    outcomes = await by_page(product, Visitor({**visitor.headers, "X-CSRFToken": "x" * 64}, product.origin), offer)
    del outcomes["page socket"]  # which has no token
    assert {outcome[:2] for outcome in outcomes.values()} == {(403, "AccessDenied")}


async def test_a_host_that_is_not_ours_even_when_the_origin_agrees(product: Product) -> None:
    url, origin, headers = "ws://evil.example/voice/socket", "http://evil.example", (await guest(product)).headers
    with pytest.raises(InvalidStatus) as refused:
        async with call(url, headers=headers, origin=origin, address=product.address):
            pass
    assert refused.value.response.status_code == 403


async def test_a_page_that_is_switched_off_has_no_doors_and_programs_talk(serve: Serve, offer: str) -> None:
    product = serve(PUBLIC_PAGE="off")
    outcomes = await by_page(product, Visitor({}, product.origin), offer)
    assert {outcome[:2] for outcome in outcomes.values()} == {(404, "NotFound")}
    assert await api_socket(product, program(product.keys["good"]), "voice", offer) == LET_IN


async def test_people_talk_in_their_own_name_and_programs_by_their_key(product: Product) -> None:
    """The word before a key counts in any case, and a path may end in a slash."""
    key = Visitor({"Authorization": f"bEaReR {product.keys['good']}"})
    for url, visitor, expected in (
        (product.page_url, (await guest(product)).from_address("192.0.2.9"), ("page", True, False)),
        (product.page_url, await member(product), ("page", False, True)),
        (f"{product.url}/", key, ("program", False, False)),
    ):
        async with AsyncExitStack() as calls:
            created = (await holding(calls, url, visitor)).heard[0].event["session"]
        row = await product.row("select * from realtime_realtimesession where id = ?", created["id"])
        assert (row["entrance"], bool(row["is_guest"]), row["user_id"] is not None) == expected
        assert (created["model"], created["object"], row["transport"]) == ("voice", "realtime.session", "websocket")


async def test_an_unknown_path(product: Product) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with call(f"ws://{product.address}/api-ws/v2/realtime", product.keys["good"]):
            pass
    assert refused.value.response.status_code == 404


async def test_an_account_that_is_full(product: Product, offer: str) -> None:
    async with AsyncExitStack() as calls:
        await holding(calls, product.url, program(product.keys["good"]))
        outcomes = await by_all(product, offer)
    message = "Your account has 1 conversations open already. End one of them first."
    everywhere(outcomes, 429, BUSY, message)


async def test_guests_of_an_address_of_all_addresses_and_within_an_hour(product: Product, offer: str) -> None:
    here, there, last = [(await guest(product)).from_address(f"192.0.2.{number}") for number in (1, 2, 3)]
    async with AsyncExitStack() as calls:
        async with AsyncExitStack() as first:
            await holding(first, product.page_url, here)
            everywhere(
                await by_page(product, here, offer),
                *(429, BUSY),
                "Guests may have 1 conversations open at once from one address. End one of them first, or sign in.",
            )
            await holding(calls, product.page_url, there)
            everywhere(
                await by_page(product, last, offer),
                *(429, BUSY),
                "Too many guests are talking just now. Try again shortly, or sign in.",
            )
            await holding(calls, product.url, program(product.keys["good"]))
            full = await by_all(product, offer) | await by_page(product, last, offer)
            message = "This server is at capacity: too many conversations are open. Try again shortly."
            everywhere(full, 503, BUSY, message)  # a proxy then asks another process
        async with asyncio.timeout(PATIENCE_S):  # until the server has seen that the first one left
            while (await page_socket(product, here, "voice", offer))[1] == BUSY:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        everywhere(
            await by_page(product, here, offer),
            *(429, "Throttling.RateQuota"),
            "Guests may begin 1 conversations an hour from one address. Try again later, or sign in.",
        )


async def test_a_server_whose_turns_wait_too_long(serve: Serve, offer: str) -> None:
    """Any lateness of its event loop is too long for this budget; one session it holds always."""
    tight = {"AOQ_PORT": str(free_udp_port()), "VOICE_THREADS": "1", "TURN_BUDGET_MS": "0.000001"}
    product = serve(**UPSTREAM, PUBLIC_PAGE="guest", **tight)
    visitor, good = await guest(product), product.keys["good"]

    async def waits() -> list[dict[str, Any]]:
        async with (
            aiohttp.ClientSession(headers=visitor.headers) as page,
            page.get(f"{product.origin}/voice/config?waits=1") as response,
        ):
            reasons: list[dict[str, Any]] = (await response.json())["reasons"]
            return [{name: reason[name] for name in ("code", "position")} for reason in reasons]

    async with asyncio.timeout(PATIENCE_S):  # until it has measured something
        while await asyncio.to_thread(room, product) > 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    async with AsyncExitStack() as calls:
        await holding(calls, product.url, program(good))
        outcomes = await by_programs(product, good, offer) | await by_page(product, visitor, offer)
        assert await waits() == [{"code": "at_capacity", "position": 1}]
        assert await asyncio.to_thread(room, product) == 0
    theirs = {outcomes.pop(door)[1] for door in list(outcomes) if door.startswith("forwarded")}
    assert theirs == {"ModelUnavailable"}, "refused for load of ours, which they do not add to"
    everywhere(outcomes, 503, BUSY, "This server is at capacity: too many conversations are open. Try again shortly.")
    async with asyncio.timeout(PATIENCE_S):
        for knock, caller in ((page_socket, visitor), *((knock, program(good)) for knock in OURS)):
            while (outcome := await knock(product, caller, "voice", offer)) != LET_IN:
                assert outcome[1] == BUSY  # until the server has seen that the one before left
                await asyncio.sleep(0.05)
        assert await waits() == []


async def test_a_server_that_stops(serve: Serve, offer: str) -> None:
    product = serve(**UPSTREAM, PUBLIC_PAGE="guest")
    good, visitor = product.keys["good"], await guest(product)
    async with call(product.url, good) as talker:
        await talker.ask("What can you do?")
        await talker.wait("response.audio.delta")
        product.signal()
        await talker.wait("session.closing")
        outcomes = await by_programs(product, good, offer) | await by_page(product, visitor, offer)
        assert talker.close_code is None, "the server had stopped before it was asked"
    message = "The server is stopping; connect again in a moment."
    everywhere(outcomes, 503, "ServiceUnavailable", message)


async def test_a_server_that_is_not_ready(serve: Serve, offer: str, tmp_path: Path) -> None:
    product = serve(**UPSTREAM, PUBLIC_PAGE="guest", is_ready=False, MODELS_DIR=str(tmp_path))
    outcomes = await by_programs(product, product.keys["good"], offer)
    outcomes |= await by_page(product, await guest(product), offer)
    theirs = {door: outcomes.pop(door) for door in list(outcomes) if door.startswith("forwarded")}
    everywhere(theirs, 503, "ModelUnavailable", "The service that runs this model cannot be reached.")
    (outcome,) = set(outcomes.values())
    assert outcome[:2] == (503, "ModelUnavailable")
    assert outcome[2].startswith("The voice models are not on this server yet.")
