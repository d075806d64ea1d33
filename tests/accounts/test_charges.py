"""Charging calls: what may begin, and what is in the books when it ends."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections
from django.db.models import Sum
from pytest_django import Settings

from tests.conftest import Member
from voiceapp.accounts import charges
from voiceapp.accounts.auth import Caller, caller_from_bearer
from voiceapp.accounts.budgets import HOLD_LIFETIME
from voiceapp.accounts.charges import charge, require_model
from voiceapp.accounts.models import Hold, MonthlySpend, Quota, UsageRecord
from voiceapp.catalogue.cards import ModelCard
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import AccessDenied, Throttled
from voiceapp.formats import request_id


@pytest.fixture(autouse=True)
def _everybody_is_held_back(settings: Settings) -> None:
    settings.QUOTA_ENFORCED = "always"


@pytest.fixture
async def caller(alice: Member) -> Caller:
    return await caller_from_bearer(alice.authorization)


async def rerank(
    caller: Caller, *, reserved: int = 10, used: int | None = None, id_: str | None = None, model: str = "m"
) -> int:
    """A call as a door makes it; what its answer says was used."""
    used = reserved if used is None else used
    async with charge(
        caller,
        operation="rerank",
        model=model,
        family="rerank",
        input_tokens=reserved,
        request_id=id_ or request_id(),
    ) as meter:
        await asyncio.sleep(0)
        meter.used(input_tokens=used)
    return used


async def ledger_tokens() -> int:
    return int((await UsageRecord.objects.aaggregate(sum=Sum("quantity")))["sum"] or 0)


async def quota_used() -> int:
    return (await Quota.objects.aget()).used


async def test_what_was_used_is_in_the_ledger_when_the_call_ends(caller: Caller) -> None:
    await rerank(caller, reserved=10, used=7, id_="r1")
    line = await UsageRecord.objects.aget()
    assert (line.request_id, line.unit, line.quantity, line.cost_nano) == ("r1", "input_tokens", 7, 700)
    assert await quota_used() == 7
    assert not await Hold.objects.aexists()


async def test_of_several_reports_the_last_one_counts(caller: Caller) -> None:
    async with charge(caller, operation="chat", model="m", family="chat", request_id="r1") as meter:
        meter.used(input_tokens=30)
        for count in range(1, 6):
            meter.used(output_tokens=count)
        with pytest.raises(ValueError, match="cannot be"):
            meter.used(output_tokens=-1)
    assert {line.unit: line.quantity async for line in UsageRecord.objects.all()} == {
        "input_tokens": 30,
        "output_tokens": 5,
    }


async def test_a_stream_settles_before_its_last_frame(caller: Caller) -> None:
    async with charge(caller, operation="rerank", model="m", family="rerank", request_id="r1", input_tokens=9) as meter:
        meter.used(input_tokens=4)
        await meter.settle()
        assert await ledger_tokens() == await quota_used() == 4
        meter.used(input_tokens=8)
    assert await ledger_tokens() == await quota_used() == 4


async def test_a_call_that_failed_pays_what_it_had_used(caller: Caller) -> None:
    async def fail() -> None:
        async with charge(
            caller, operation="rerank", model="m", family="rerank", request_id="r1", input_tokens=9
        ) as meter:
            meter.used(input_tokens=2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await ledger_tokens() == await quota_used() == 2


async def test_a_call_that_used_nothing_leaves_nothing(caller: Caller) -> None:
    await rerank(caller, used=0)
    assert not await UsageRecord.objects.aexists()
    assert not await Hold.objects.aexists()
    assert await quota_used() == 0


async def test_a_call_cancelled_at_any_moment_holds_nothing_for_ever(caller: Caller) -> None:
    for turns in range(12):
        task = asyncio.create_task(rerank(caller))
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        task.cancel()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await asyncio.gather(*charges._unfinished)
    await run_in_db_thread(bool)  # everything that was written before
    assert not await Hold.objects.aexists()
    quota = await Quota.objects.afirst()
    assert (quota.used if quota else 0) == await ledger_tokens()


async def test_a_hundred_calls_at_once_spend_no_more_than_the_budget(caller: Caller, settings: Settings) -> None:
    settings.QUOTA_ENFORCED = "never"
    poor = dataclasses.replace(caller, monthly_budget_nano=1049)
    answers = await asyncio.gather(*(rerank(poor, reserved=1) for _ in range(100)), return_exceptions=True)
    assert sum(answer == 1 for answer in answers) == 10
    assert sum(isinstance(answer, AccessDenied) for answer in answers) == 90
    assert (await MonthlySpend.objects.aget()).spent_nano == 1000


async def test_the_books_add_up(caller: Caller, settings: Settings) -> None:
    """What answers say was used, the ledger, the quota and the month's spending are one sum."""
    settings.FREE_QUOTAS = {"rerank": 900}
    dice = random.Random(3)
    calls = []
    for _ in range(120):
        reserved = dice.randint(0, 20)
        calls.append(rerank(caller, reserved=reserved, used=dice.randint(0, reserved)))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    answered = sum(answer for answer in answers if isinstance(answer, int))
    assert any(isinstance(answer, Throttled) for answer in answers) or answered < 900
    assert answered == await ledger_tokens() == await quota_used()
    assert (await MonthlySpend.objects.aget()).spent_nano == 100 * answered
    assert not await Hold.objects.aexists()


async def test_a_stream_ends_when_it_has_used_up_the_budget(caller: Caller) -> None:
    poor = dataclasses.replace(caller, monthly_budget_nano=1000)
    reported = 0

    async def stream() -> None:
        nonlocal reported
        async with charge(
            poor, operation="rerank", model="m", family="rerank", request_id="r1", input_tokens=1
        ) as meter:
            for count in range(1, 100):
                meter.used(input_tokens=count)
                reported = count

    with pytest.raises(AccessDenied, match="used up"):
        await stream()
    assert reported == 10
    assert await ledger_tokens() == 11, "the token that broke the budget was made, and is paid for"
    with pytest.raises(AccessDenied):
        await rerank(poor, reserved=1)


async def test_what_costs_nothing_needs_no_budget(caller: Caller) -> None:
    poor = dataclasses.replace(caller, monthly_budget_nano=0)
    async with charge(poor, operation="chat", model="m", family="chat", request_id="r", input_tokens=99) as meter:
        meter.used(output_tokens=5)
    with pytest.raises(AccessDenied):
        await rerank(poor)


async def test_it_refuses_what_is_too_fast_before_anything_is_held(caller: Caller, settings: Settings) -> None:
    settings.RATE_LIMITS = {"default": "off", "rerank": "20/60"}
    answers = await asyncio.gather(*(rerank(caller) for _ in range(25)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Throttled)]
    assert len(refused) == 5
    assert {answer.code for answer in refused} == {"Throttling.RateQuota"}
    assert await quota_used() == 200


async def test_a_request_is_billed_once_even_if_its_id_comes_again(caller: Caller) -> None:
    await rerank(caller, used=4, id_="r1")
    await rerank(caller, used=6, id_="r1")
    assert await ledger_tokens() == await quota_used() == 4
    assert not await Hold.objects.aexists()


async def test_it_lets_a_key_use_only_its_models(
    caller: Caller, settings: Settings, only_models: Callable[..., None]
) -> None:
    only_models(ModelCard("own", "rerank", "x", aliases=("qwen3-rerank",)))
    narrow = dataclasses.replace(caller, allowed_models=frozenset({"qwen3-rerank"}))
    require_model(narrow, "own", "rerank")
    require_model(caller, "anything", "rerank")
    await rerank(narrow, model="own")
    with pytest.raises(AccessDenied, match="'other'"):
        await rerank(narrow, model="other")
    with pytest.raises(AccessDenied):
        require_model(narrow, "own", "chat")


KILLED = """
import asyncio, os, sys
import django
from django.conf import settings
django.setup()
settings.QUOTA_ENFORCED = "always"
settings.RATE_LIMITS = {"default": "off"}
from voiceapp.accounts.auth import caller_from_bearer
from voiceapp.accounts.charges import charge
from voiceapp.formats import request_id
async def main():
    caller = await caller_from_bearer(f"Bearer {os.environ['KEY']}")
    while True:
        async with charge(
            caller, operation="rerank", model="m", family="rerank", request_id=request_id(), input_tokens=10
        ) as meter:
            meter.used(input_tokens=7)
        os.write(1, b"7\\n")
asyncio.run(main())
"""


def _kill_at_some_moment(key: str, moment_s: float) -> int:
    """The tokens that the answers of a process mention before it is killed without warning."""
    database = connections["default"].settings_dict
    url = f"sqlite:///{database['NAME']}"
    if database["ENGINE"] != "voiceapp.database.sqlite3":
        login = f"{database['USER']}:{database['PASSWORD']}"
        url = f"postgres://{login}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    environment = {**os.environ, "KEY": key, "DATABASE_URL": url}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        cwd=Path(charges.__file__).parents[2],
        env=environment,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(moment_s)
    process.kill()
    rest = process.stdout.read()
    process.wait()
    return sum(map(int, (first + rest).split()))


async def test_a_kill_between_call_and_ledger_bills_nobody_twice_and_loses_no_quota(
    alice: Member, caller: Caller
) -> None:
    dice = random.Random()
    for _ in range(4):
        before = await ledger_tokens()
        answered = await asyncio.to_thread(_kill_at_some_moment, alice.key, dice.uniform(0, 0.05))
        written = await ledger_tokens() - before
        assert answered > 0
        assert written - answered in (0, 7), "all that was answered is written; one more may have been, unanswered"

    held = [row async for row in Hold.objects.all()]
    assert await quota_used() == await ledger_tokens() + 10 * len(held)
    assert len(held) <= 4
    # Half an hour later, somebody who asks for all that is left gets what the killed processes held.
    await Hold.objects.aupdate(created_at=(await Quota.objects.aget()).first_used_at - HOLD_LIFETIME, expires_at=None)
    quota = await Quota.objects.aget()
    await rerank(caller, reserved=quota.granted - await ledger_tokens(), used=1)
    assert not await Hold.objects.aexists()
    assert await quota_used() == await ledger_tokens()
