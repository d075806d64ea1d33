"""Whatever the unit: calls in parallel never spend more than a key's budget, and what was used is in the ledger."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from tests.conftest import Member
from voiceapp.accounts.caller import Caller
from voiceapp.accounts.charges import Charge, charge, require_budget
from voiceapp.accounts.ledger import UNITS
from voiceapp.accounts.models import Hold, MonthlySpend, UsageRecord
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import AccessDenied
from voiceapp.formats import request_id


@pytest.fixture
def caller(alice: Member) -> Caller:
    return Caller.of(alice.row)


PRICES_OF_UNITS = {unit: 1_000 + number for number, unit in enumerate(UNITS)}


@pytest.fixture
def priced(settings: Settings) -> None:
    """Every unit of the family has a price of its own, and free quotas hold nobody back."""
    settings.QUOTA_ENFORCED = "never"
    settings.LEDGER_PRICES = {"any": PRICES_OF_UNITS}


@pytest.mark.parametrize("unit", UNITS)
async def test_of_fifty_calls_at_once_ten_run_on_a_budget_for_ten(caller: Caller, priced: None, unit: str) -> None:
    budget_nano = 10 * 3 * PRICES_OF_UNITS[unit]
    poor = dataclasses.replace(caller, monthly_budget_nano=budget_nano)

    async def call() -> int:
        quantities: Any = {unit: 3}
        async with charge(
            poor, operation="any", model="m", family="any", request_id=request_id(), **quantities
        ) as meter:
            await asyncio.sleep(0)
            meter.used(**quantities)
        return 3

    results = await asyncio.gather(*(call() for _ in range(50)), return_exceptions=True)

    assert sum(result == 3 for result in results) == 10
    assert sum(isinstance(result, AccessDenied) for result in results) == 40
    await assert_spent(budget_nano, lines=10)


async def assert_spent(nano: int, *, lines: int) -> None:
    """So much is in the ledger and spent of the budget, and nothing is held."""
    assert await UsageRecord.objects.acount() == lines
    assert (await UsageRecord.objects.aaggregate(sum=Sum("cost_nano")))["sum"] == nano
    assert (await MonthlySpend.objects.aget()).spent_nano == nano
    assert not await Hold.objects.aexists()


async def test_a_call_reserves_more_when_it_knows_more(caller: Caller, priced: None) -> None:
    price = PRICES_OF_UNITS["audio_seconds"]
    poor = dataclasses.replace(caller, monthly_budget_nano=10 * price)

    async def transcribe(seconds: int) -> None:
        async with charge(
            poor, operation="any", model="m", family="any", request_id=request_id(), audio_seconds=1
        ) as meter:
            await meter.reserve(audio_seconds=seconds)
            assert (await Hold.objects.aget()).cost_nano == seconds * price
            meter.used(audio_seconds=seconds)

    await transcribe(7)
    with pytest.raises(AccessDenied, match="does not allow"):
        await transcribe(4)
    await assert_spent(7 * price, lines=1)
    await transcribe(3)
    await assert_spent(10 * price, lines=2)


async def test_what_a_dead_worker_held_is_there_for_the_next_attempt(caller: Caller, priced: None) -> None:
    poor = dataclasses.replace(caller, monthly_budget_nano=PRICES_OF_UNITS["video_count"])
    died = Charge(poor, operation="any", model="m", family="any", request_id="task-1")
    await died.reserve(video_count=1)

    with pytest.raises(AccessDenied):
        await Charge(poor, operation="any", model="m", family="any", request_id="task-2").reserve(video_count=1)
    async with charge(poor, operation="any", model="m", family="any", request_id="task-1", video_count=1) as meter:
        meter.used(video_count=1)

    await assert_spent(PRICES_OF_UNITS["video_count"], lines=1)


async def test_work_that_takes_long_holds_long(caller: Caller, priced: None) -> None:
    poor = dataclasses.replace(caller, monthly_budget_nano=PRICES_OF_UNITS["video_count"])
    lifetime = timedelta(hours=2)
    video = Charge(poor, operation="any", model="m", family="any", request_id="long", lifetime=lifetime)
    await video.reserve(video_count=1)
    row = await Hold.objects.aget()
    assert row.expires_at - row.created_at == lifetime


async def test_a_check_for_later_work_sets_nothing_aside(caller: Caller, priced: None) -> None:
    poor = dataclasses.replace(caller, monthly_budget_nano=2 * PRICES_OF_UNITS["image_count"])
    await require_budget(poor, "m", "any", image_count=2)
    await require_budget(poor, "m", "any")
    with pytest.raises(AccessDenied, match="does not allow"):
        await require_budget(poor, "m", "any", image_count=3)
    await require_budget(caller, "m", "any", image_count=3)
    await require_budget(poor, "m", "without prices", image_count=3)
    assert not await MonthlySpend.objects.aexists()

    killed = Charge(poor, operation="any", model="m", family="any", request_id="killed")
    await killed.reserve(image_count=2)
    with pytest.raises(AccessDenied):
        await require_budget(poor, "m", "any")
    await Hold.objects.aupdate(expires_at=timezone.now())
    await require_budget(poor, "m", "any", image_count=2)


async def test_a_caller_without_a_budget_costs_four_queries(caller: Caller, priced: None) -> None:
    """What a call did before anything but tokens could be reserved: begin, the line, the month's sum, commit."""

    async def call() -> None:
        async with charge(
            caller, operation="any", model="m", family="any", request_id=request_id(), characters=9
        ) as meter:
            await meter.reserve(characters=7)
            meter.used(characters=7)

    await call()  # from now on there is a row for this month
    asked = await run_in_db_thread(lambda: CaptureQueriesContext(connection).__enter__())
    await call()
    await run_in_db_thread(asked.__exit__, None, None, None)
    assert len(asked.captured_queries) <= 4, [query["sql"] for query in asked.captured_queries]
