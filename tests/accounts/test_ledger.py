"""The ledger: written once, at the price of the moment, never changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db.models import ProtectedError
from pytest_django import Settings

from tests.conftest import Member
from voiceapp.accounts.auth import Caller, caller_from_bearer
from voiceapp.accounts.ledger import Entry, cost_nano, price_nano, record
from voiceapp.accounts.models import ApiKey, MonthlySpend, UsageRecord
from voiceapp.catalogue.cards import ModelCard
from voiceapp.database.thread import run_in_db_thread


async def write_one(caller: Caller, *, request_id: str = "r1", **quantities: int) -> bool:
    return await run_in_db_thread(record, Entry(caller, "rerank", "m", "rerank", request_id, quantities), None)


def test_it_prices_as_the_specification_says() -> None:
    assert price_nano("any", "rerank", "input_tokens") * 1_000_000 == 100_000_000  # 0.1 dollars
    assert price_nano("any", "embedding", "input_tokens") * 1_000_000 == 70_000_000  # 0.07 dollars
    assert price_nano("any", "chat", "output_tokens") == 0


def test_a_model_may_have_a_price_of_its_own_under_any_of_its_names(
    settings: Settings, only_models: Callable[..., None]
) -> None:
    only_models(ModelCard("big", "chat", "x", aliases=("large",)))
    settings.LEDGER_PRICES = {"chat": {"input_tokens": 1}, "big": {"input_tokens": 5, "output_tokens": 7}}
    assert cost_nano("large", "chat", {"input_tokens": 10, "output_tokens": 1}) == 57
    assert cost_nano("small", "chat", {"input_tokens": 10, "output_tokens": 1}) == 10


async def test_it_writes_a_line_for_every_unit(alice: Member) -> None:
    caller = await caller_from_bearer(alice.authorization)
    assert await write_one(caller, input_tokens=1_000_003, output_tokens=4, audio_seconds=0)
    lines = {line.unit: line async for line in UsageRecord.objects.all()}
    assert set(lines) == {"input_tokens", "output_tokens"}
    line = lines["input_tokens"]
    assert (line.account_id, line.workspace_id, line.key_id) == (alice.account.pk, alice.workspace.pk, alice.row.pk)
    assert (line.operation, line.model, line.family, line.request_id) == ("rerank", "m", "rerank", "r1")
    assert (line.quantity, line.unit_price_nano, line.cost_nano) == (1_000_003, 100, 100_000_300)
    assert line.caller == str(alice.row)
    assert alice.key not in line.caller
    assert (await MonthlySpend.objects.aget(key=alice.row)).spent_nano == 100_000_300


async def test_it_bills_once_what_is_written_twice(alice: Member) -> None:
    caller = await caller_from_bearer(alice.authorization)
    assert await write_one(caller, input_tokens=5)
    assert not await write_one(caller, input_tokens=5)
    assert not await write_one(caller, input_tokens=9, output_tokens=1)
    assert [line.quantity async for line in UsageRecord.objects.all()] == [5]
    assert (await MonthlySpend.objects.aget()).spent_nano == 500


async def test_nothing_in_it_changes_or_goes(alice: Member) -> None:
    await write_one(await caller_from_bearer(alice.authorization), input_tokens=5)
    line = await UsageRecord.objects.aget()
    line.quantity = 1
    with pytest.raises(TypeError):
        await line.asave()
    with pytest.raises(TypeError):
        await line.adelete()
    with pytest.raises(TypeError):
        await UsageRecord.objects.aupdate(quantity=1)
    with pytest.raises(TypeError):
        await UsageRecord.objects.all().adelete()
    with pytest.raises(ProtectedError):
        await alice.account.adelete()
    assert (await UsageRecord.objects.aget()).quantity == 5


async def test_it_outlives_the_key_and_takes_its_last_call(alice: Member) -> None:
    caller = await caller_from_bearer(alice.authorization)
    await write_one(caller, input_tokens=5)
    pk, name = alice.row.pk, str(alice.row)
    await ApiKey.objects.filter(pk=pk).adelete()
    assert await write_one(caller, request_id="r2", input_tokens=5)
    assert [(line.key_id, line.caller) async for line in UsageRecord.objects.all()] == [(pk, name)] * 2
