"""Every reason for which a relay rejects a connection, and that a grant is good for one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import RequestFactory
from pytest_django.fixtures import Settings

from tests.clock import Clock
from tests.conftest import Member
from tests.ports import free_udp_port
from tests.realtime.aoq.peer import calling, close_code, granted, url_of
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from voiceapp.accounts.auth import Caller, guest_caller
from voiceapp.errors import Throttled
from voiceapp.realtime.admission import admit
from voiceapp.realtime.aoq import grants, relays, tokens
from voiceapp.realtime.aoq.grants import Rejection
from voiceapp.realtime.aoq.listener import RelayListener, RelayPlace
from voiceapp.realtime.aoq.models import AoqGrant
from voiceapp.realtime.doors import API_GRANT, PAGE_GRANT
from voiceapp.realtime.lifetime.resume import arrive_by_request

SHOWN = 64
"""What the library adds to the code of a rejection."""


async def test_tokens_that_do_not_count(product: Product) -> None:
    grant = await granted(product.origin, product.keys["good"])
    fingerprint, token = grant["clientRelayCertFingerprint"], grant["aoqTokenForClient"]
    header, claims, signature = token.split(".")
    attempts = {
        url_of(grant, token=""): Rejection.NO_TOKEN,
        url_of(grant, token="nonsense"): Rejection.BAD_TOKEN,
        url_of(grant, token=f"{header}.{claims}.{'A' * len(signature)}"): Rejection.BAD_TOKEN,
        url_of(grant, token=f"{header}.{claims[:-4]}AAAA.{signature}"): Rejection.BAD_TOKEN,
        url_of(grant, token="A" * 4000): Rejection.BAD_TOKEN,
        url_of(grant, sid="0" * 32): Rejection.OTHER_SESSION,
    }
    assert {url: await close_code(url, fingerprint) for url in attempts} == {
        url: rejection + SHOWN for url, rejection in attempts.items()
    }
    async with calling(grant):  # none of them has used it up
        assert await close_code(url_of(grant), fingerprint) == Rejection.USED + SHOWN
    await product.logged("connection rejected, USED")
    assert [part for part in (claims, signature) if part in product.log] == []


async def test_of_eight_connections_at_one_instant_one_gets_in(product: Product) -> None:
    grant = await granted(product.origin, product.keys["good"])
    url, fingerprint = url_of(grant), grant["clientRelayCertFingerprint"]
    attempts = [asyncio.create_task(close_code(url, fingerprint)) for _ in range(8)]
    seven = [await attempt for attempt in itertools.islice(asyncio.as_completed(attempts), 7)]
    assert seven == [Rejection.USED + SHOWN] * 7
    assert [attempt.cancel() for attempt in attempts].count(True) == 1


async def test_a_full_relay_and_one_that_drains_reject_and_use_nothing_up(serve: Serve) -> None:
    product = serve(AOQ_PORT=str(free_udp_port()), MAX_SESSIONS="1")
    first, second = [await granted(product.origin, product.keys["good"]) for _ in range(2)]
    url, fingerprint = url_of(second), second["clientRelayCertFingerprint"]
    async with calling(first) as peer:
        assert await close_code(url, fingerprint) == Rejection.BUSY + SHOWN
        await peer.ask("What time is it?")
        await peer.wait("response.created")
        product.signal()
        assert (await peer.wait("session.closing"))["code"] == 4012
        assert await close_code(url, fingerprint) == Rejection.BUSY + SHOWN
        assert (await peer.wait("response.done"))["response"]["status"] == "completed"
        assert await peer.wait_closed() == 4012
    assert product.stop() == 0


async def test_a_key_that_was_revoked_since_opens_nothing(product: Product) -> None:
    grant = await granted(product.origin, product.keys["doomed"])
    product.write("UPDATE accounts_apikey SET revoked_at = created_at WHERE name = 'doomed'")
    code = await close_code(url_of(grant), grant["clientRelayCertFingerprint"])
    assert code == Rejection.NOT_ADMITTED + SHOWN


# ── With a clock of our own ──────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def listening(clock: Clock[datetime], settings: Settings, folder: Path) -> AsyncIterator[RelayListener]:
    settings.VAR_DIR = folder
    listener = RelayListener(RelayPlace("127.0.0.1", 0, "127.0.0.1"), clock=clock)
    async with listener.listen():
        await listener.announce()
        yield listener


async def url_for(member: Member, listener: RelayListener) -> tuple[str, str]:
    """Where to connect with a fresh grant of this member's, and the fingerprint to expect."""
    admitted = await admit(Caller.of(member.row), API_GRANT, "voice", "")
    issued = await grants.issue(admitted, await relays.routes_for(""), session_key="")
    grant = issued.to_wire()
    return url_of(grant, port=listener.port), grant["clientRelayCertFingerprint"]


async def test_a_guest_with_many_grants_takes_none_from_others(
    db: None, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grants, "MAX_UNUSED", 2)
    settings.PUBLIC_PAGE, settings.RATE_LIMITS = "guest", {"default": "off"}
    async with listening(Clock(datetime.now(UTC)), settings, tmp_path):
        for address in ("192.0.2.1", *["192.0.2.2"] * 4):
            admitted = await admit(await guest_caller(address), PAGE_GRANT, "voice", address)
            await grants.issue(admitted, await relays.routes_for(""), session_key="")
    left = [address async for address in AoqGrant.objects.values_list("client_address", flat=True)]
    assert sorted(left) == ["192.0.2.1", "192.0.2.2", "192.0.2.2"]


async def test_guests_of_one_address_ask_only_so_often(db: None, settings: Settings) -> None:
    settings.RATE_LIMITS = {"default": "off", "guests": "2/60"}
    for address in ("192.0.2.1", "192.0.2.2"):
        request = RequestFactory().post("/voice/aoq", REMOTE_ADDR=address)
        for number in range(3):
            arriving = arrive_by_request(request, await guest_caller(f"{address} {number}"), PAGE_GRANT, "voice")
            with nullcontext() if number < 2 else pytest.raises(Throttled):
                await arriving


async def test_an_expired_grant_opens_nothing(alice: Member, settings: Settings, tmp_path: Path) -> None:
    clock = Clock(datetime.now(UTC))
    async with listening(clock, settings, tmp_path) as listener:
        url, fingerprint = await url_for(alice, listener)
        clock.now += timedelta(seconds=settings.SESSION_LIFETIME_S + 2)
        assert await close_code(url, fingerprint) == Rejection.EXPIRED + SHOWN


async def test_a_replaced_certificate_needs_a_new_grant(alice: Member, settings: Settings, tmp_path: Path) -> None:
    clock = Clock(datetime.now(UTC))
    async with listening(clock, settings, tmp_path) as listener:
        url, fingerprint = await url_for(alice, listener)
        listener.renew()
        assert listener.fingerprint == fingerprint
        clock.now += timedelta(days=10)
        listener.renew()
        assert listener.fingerprint != fingerprint
        await listener.announce()
        _, current = await url_for(alice, listener)
        assert current == listener.fingerprint
        async with asyncio.timeout(10):  # until the library has read the file again
            while await close_code(url, fingerprint) is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await close_code(url, current) == Rejection.EXPIRED + SHOWN


async def test_tokens_of_the_secret_before_count(settings: Settings) -> None:
    settings.SECRET_KEY = "a secret"
    token = tokens.sign("5" * 32, issued_at=1_000, expires_at=2_000)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", ["a secret"]
    assert tokens.verify(token).sid == "5" * 32
