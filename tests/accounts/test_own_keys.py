"""Keys that people make for themselves, and how many."""

from __future__ import annotations

import asyncio

from tests.conftest import Member
from voiceapp.accounts.models import ApiKey
from voiceapp.accounts.own_keys import AT_ONCE, make_own_key
from voiceapp.errors import AccessDenied


async def test_of_many_made_at_once_exactly_as_many_as_one_person_may_have(alice: Member, bob: Member) -> None:
    made = await asyncio.gather(*(make_own_key(alice.user) for _ in range(3 * AT_ONCE)), return_exceptions=True)
    assert sum(isinstance(one, tuple) for one in made) == AT_ONCE
    assert sum(isinstance(one, AccessDenied) for one in made) == 2 * AT_ONCE
    assert await ApiKey.objects.filter(name__startswith="Made by").acount() == AT_ONCE
    assert await make_own_key(bob.user), "another person of the same account has a number of their own"
