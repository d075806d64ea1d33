"""Minting, checking without the database, and the directory of keys."""

from __future__ import annotations

import hashlib
import string
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.clock import Clock
from tests.conftest import Member
from voiceapp.accounts.keys import KeyDirectory, mint, new_key, parse
from voiceapp.accounts.models import ApiKey


def digest_of(member: Member) -> bytes:
    digest = parse(member.key)
    assert digest is not None
    return digest


def test_it_mints_keys_of_the_documented_form() -> None:
    key = mint()
    assert len(key) == 52
    assert key.startswith("sk-")
    assert set(key[3:46]) <= set(string.ascii_letters + string.digits + "-_")
    assert set(key[46:]) <= set(string.ascii_letters + string.digits)


def test_it_never_mints_a_key_twice() -> None:
    assert len({mint() for _ in range(1000)}) == 1000


def test_it_parses_a_key_into_its_sha256() -> None:
    key = mint()
    assert parse(key) == hashlib.sha256(key.encode()).digest()


@pytest.mark.parametrize("position", [0, 3, 10, 45, 46, 51])
def test_it_notices_one_wrong_character_without_the_database(position: int) -> None:
    key = mint()
    wrong = "A" if key[position] != "A" else "B"
    assert parse(key[:position] + wrong + key[position + 1 :]) is None


@pytest.mark.parametrize("text", ["", "sk-", "sk-\x00", "sk-" + "é" * 49, "a" * 100_000, "\ud800"])
def test_it_refuses_what_cannot_be_a_key(text: str) -> None:
    assert parse(text) is None


def test_it_keeps_only_the_digest_and_both_ends(alice: Member) -> None:
    row = ApiKey.objects.get(pk=alice.row.pk)
    assert bytes(row.digest) == hashlib.sha256(alice.key.encode()).digest()
    assert (row.prefix, row.last_four) == (alice.key[:7], alice.key[-4:])
    stored = " ".join(str(value) for value in ApiKey.objects.filter(pk=row.pk).values().get().values())
    assert alice.key[7:-4] not in stored


def test_it_tells_a_key_by_its_ends_and_no_more(alice: Member) -> None:
    for text in (repr(alice.row), str(alice.row)):
        assert alice.key[:7] in text
        assert alice.key[3:] not in text
        assert alice.key[7:20] not in text


async def test_it_remembers_a_key_for_five_seconds_and_not_longer(alice: Member) -> None:
    clock = Clock(1000.1)
    directory = KeyDirectory(clock=clock)
    assert await directory.find(digest_of(alice)) is not None
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(revoked_at=timezone.now())

    clock.now += 4.9
    assert await directory.find(digest_of(alice)) is not None
    clock.now += 0.2
    assert await directory.find(digest_of(alice)) is None


async def test_it_remembers_that_a_key_is_unknown(alice: Member) -> None:
    clock = Clock(1000.1)
    directory = KeyDirectory(clock=clock)
    row, key = new_key(alice.workspace, "later")
    digest = parse(key)
    assert digest is not None
    assert await directory.find(digest) is None
    await row.asave()

    assert await directory.find(digest) is None
    clock.now += 5
    assert await directory.find(digest) is not None


async def test_it_notices_an_expiry_at_once(alice: Member) -> None:
    expiry = timezone.now() + timedelta(days=1)
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(expires_at=expiry)
    today = [expiry - timedelta(seconds=1)]
    directory = KeyDirectory(clock=Clock(1000.1), today=lambda: today[0])
    assert await directory.find(digest_of(alice)) is not None
    today[0] = expiry
    assert await directory.find(digest_of(alice)) is None


async def test_it_forgets_the_oldest_answers_beyond_its_capacity(alice: Member) -> None:
    directory = KeyDirectory(capacity=3)
    for number in range(10):
        await directory.find(bytes([number]) * 32)
    assert len(directory) == 3


async def test_it_records_the_use_of_a_key_at_most_once_a_minute(alice: Member) -> None:
    async def last_used() -> object:
        return (await ApiKey.objects.aget(pk=alice.row.pk)).last_used_at

    assert await last_used() is None
    await KeyDirectory().find(digest_of(alice))
    first = await last_used()
    assert first is not None
    await KeyDirectory().find(digest_of(alice))
    assert await last_used() == first

    long_ago = timezone.now() - timedelta(seconds=61)
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(last_used_at=long_ago)
    await KeyDirectory().find(digest_of(alice))
    assert await last_used() > long_ago
