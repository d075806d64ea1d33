"""Temporary keys: what one is worth, and how it ends."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from tests.conftest import Member
from tests.web import words_of
from voiceapp.accounts import temporary_keys
from voiceapp.accounts.auth import caller_from_bearer, key_directory, mint_temporary_key
from voiceapp.accounts.models import Account, ApiKey, MintedKey
from voiceapp.accounts.temporary_keys import TemporaryKey
from voiceapp.errors import InvalidApiKey

DIGEST = bytes(range(32))
END = 1_800_000_000


def token_of(member: Member, *, seconds: int = 60) -> str:
    return temporary_keys.mint(bytes(member.row.digest), int(time.time()) + seconds)


def test_it_leads_to_its_key_until_its_time_is_over() -> None:
    token = temporary_keys.mint(DIGEST, END)
    assert token.startswith("st-")
    found = temporary_keys.read(token, now=END - 0.1)
    assert found == TemporaryKey(DIGEST, datetime.fromtimestamp(END, UTC))
    assert temporary_keys.read(token, now=END) is None


def test_no_two_are_the_same() -> None:
    assert len({temporary_keys.mint(DIGEST, END) for _ in range(50)}) == 50


def test_it_is_worth_nothing_when_a_character_changes() -> None:
    token = temporary_keys.mint(DIGEST, END)
    for place in range(3, len(token) - 1):  # of the last character, two bits carry nothing
        other = "A" if token[place] != "A" else "B"
        assert temporary_keys.read(token[:place] + other + token[place + 1 :], now=END - 1) is None


@pytest.mark.parametrize("text", ["", "st-", "st-" + "A" * 103, "st-" + "A" * 102, "st-" + "é" * 103, "st-\x00"])
def test_it_takes_nothing_else_for_a_token(text: str) -> None:
    assert temporary_keys.read(text, now=0) is None


def test_it_is_worth_nothing_to_another_installation(settings: Settings) -> None:
    token, own = temporary_keys.mint(DIGEST, END), settings.SECRET_KEY
    settings.SECRET_KEY = "another"
    assert temporary_keys.read(token, now=END - 1) is None
    settings.SECRET_KEY_FALLBACKS = [own]
    assert temporary_keys.read(token, now=END - 1) is not None


async def test_it_expires_by_itself_or_with_its_key(alice: Member) -> None:
    header = f"Bearer {token_of(alice, seconds=60)}"
    by_itself = (await caller_from_bearer(header)).expires_at
    key_ends = timezone.now() + timedelta(seconds=30)
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(expires_at=key_ends)
    key_directory.forget()
    assert by_itself is not None
    assert by_itself > key_ends
    assert (await caller_from_bearer(header)).expires_at == key_ends


@pytest.mark.parametrize("cause", ["over", "revoked", "expired", "deleted", "inactive", "forged"])
async def test_it_is_refused_like_any_wrong_key(alice: Member, cause: str) -> None:
    header = f"Bearer {token_of(alice, seconds=-1 if cause == 'over' else 60)}"
    if cause != "over":
        await caller_from_bearer(header)
    keys, now = ApiKey.objects.filter(pk=alice.row.pk), timezone.now()
    if cause == "revoked":
        await keys.aupdate(revoked_at=now)
    elif cause == "expired":
        await keys.aupdate(created_at=now - timedelta(days=1), expires_at=now)
    elif cause == "deleted":
        await keys.adelete()
    elif cause == "inactive":
        await Account.objects.filter(pk=alice.account.pk).aupdate(is_active=False)
    elif cause == "forged":
        header = header[:-20] + "AAAAAAAAAAAAAAAAAAAA"
    key_directory.forget()
    with pytest.raises(InvalidApiKey) as refused:
        await caller_from_bearer(header)
    assert refused.value.message == InvalidApiKey().message


CHAT = {"model": "assistant", "messages": [{"role": "user", "content": "Hello"}]}
CLOSED = ("/api/v1/tasks", "/api/v1/uploads?action=getPolicy&model=m", "/api/v1/agentstudio/webhook_endpoints")
OFFERS = ("/v1/realtime/calls", "/api/v1/webrtc/realtime?model=voice")


@pytest.mark.django_db(transaction=True)
async def test_a_client_secret_opens_realtime_sessions_and_nothing_else(
    async_client: AsyncClient, alice: Member
) -> None:
    headers = {"Authorization": alice.authorization}
    made = await async_client.post("/v1/realtime/client_secrets", {}, "application/json", headers=headers)
    secret = made.json()["value"]
    for key in (secret, temporary_keys.read_client_secret(secret)[0]):
        with_secret = {"Authorization": f"Bearer {key}"}
        for path in CLOSED:
            assert (await async_client.get(path, headers=with_secret)).status_code == 403, path
        chat = await async_client.post("/v1/chat/completions", CHAT, "application/json", headers=with_secret)
        assert chat.status_code == 403
        for path in OFFERS:
            offer = await async_client.post(path, b"no offer", "application/sdp", headers=with_secret)
            assert offer.status_code == 400, path
    with_temporary_key = {"Authorization": f"Bearer {token_of(alice)}"}
    assert (await async_client.get("/api/v1/tasks", headers=with_temporary_key)).status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("allowed", "status"), [("voice", 200), ("text-embedding-v4", 403)])
async def test_a_client_secret_is_for_models_of_its_key(
    async_client: AsyncClient, alice: Member, allowed: str, status: int
) -> None:
    alice.row.allowed_models = [allowed]
    await alice.row.asave()
    headers = {"Authorization": alice.authorization}
    made = await async_client.post("/v1/realtime/client_secrets", {}, "application/json", headers=headers)
    assert made.status_code == status


async def test_people_see_those_that_live(alice: Member) -> None:
    caller = await caller_from_bearer(alice.authorization)
    await mint_temporary_key(caller, 600)
    await MintedKey.objects.aupdate(expires_at=timezone.now())
    await mint_temporary_key(caller, 600, realtime_only=True)
    (row,) = [row async for row in MintedKey.objects.select_related("key")]
    assert (row.key, row.realtime_only) == (alice.row, True)
    desk = AsyncClient()
    await desk.aforce_login(await User.objects.acreate(username="olga", is_staff=True, is_superuser=True))
    address = reverse("admin:accounts_mintedkey_changelist")
    assert "realtime only" in words_of((await desk.get(address)).content.decode())
    await ApiKey.objects.aupdate(revoked_at=timezone.now())
    assert "realtime only" not in words_of((await desk.get(address)).content.decode())
