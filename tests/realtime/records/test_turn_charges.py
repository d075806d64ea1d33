"""What sessions are charged, turn by turn: nothing is begun that the key's budget does not allow."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db.models import Sum
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.realtime.records.test_recorder import locked_database
from tests.realtime.test_bridge import turn
from voiceapp.accounts import charges as accounts_charges
from voiceapp.accounts.caller import Caller
from voiceapp.accounts.models import ApiKey, Hold, MonthlySpend, UsageRecord
from voiceapp.database.thread import run_in_db_thread
from voiceapp.engines.interfaces import NextResponse
from voiceapp.realtime.records import turn_charges
from voiceapp.realtime.records.turn_charges import LAST_WORDS, TurnCharges

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = 1_000
"""What a second of audio costs, and all that costs something, unless a test says otherwise."""
TURN_S = 31
"""Set aside for a turn in which the user spoke for a second."""


@pytest.fixture(autouse=True)
def _prices(settings: Settings) -> None:
    settings.LEDGER_PRICES = {"realtime": {"audio_seconds": SECOND}}


async def caller_with(member: Member, budget_nano: int | None) -> Caller:
    await ApiKey.objects.filter(pk=member.row.pk).aupdate(monthly_budget_nano=budget_nano)
    member.row.monthly_budget_nano = budget_nano
    return Caller.of(member.row)


def following(ordinal: int = 1, **changes: Any) -> NextResponse:
    known = {"input_audio_ms": 1000, "input_bytes": 400, "max_tokens": None, "speaks": True}
    return NextResponse(ordinal, **{**known, **changes})


async def asked(charges: TurnCharges, ordinal: int = 1, **changes: Any) -> str:
    assert charges.before_response is not None
    return await charges.before_response(following(ordinal, **changes))


async def took(charges: TurnCharges, ordinal: int, seconds: int) -> None:
    """A turn of so many seconds ends and is written."""
    charges.ended(turn(ordinal, input_audio_ms=1000, output_audio_ms=1000 * (seconds - 1)))
    await charges.write()


async def over(charges: TurnCharges) -> None:
    """The session ends, and what was cut off while it was written is written."""
    await charges.finish()
    while unfinished := set(accounts_charges._unfinished):
        await asyncio.gather(*unfinished, return_exceptions=True)


async def spent() -> int:
    """What the month's row says, which is what the ledger says while nothing is held."""
    row = await MonthlySpend.objects.aget()
    if not await Hold.objects.aexists():
        assert row.spent_nano == ((await UsageRecord.objects.aaggregate(sum=Sum("cost_nano")))["sum"] or 0)
    return row.spent_nano


async def test_tokens_of_replies_that_were_dropped_have_a_line_and_a_price_of_their_own(
    alice: Member, settings: Settings
) -> None:
    settings.LEDGER_PRICES = {"realtime": {"dropped_tokens": 7}}
    charges = TurnCharges(await caller_with(alice, None), "voice", "sess_1")
    charges.ended(turn(1, dropped_tokens=250))
    await charges.write()
    row = await UsageRecord.objects.aget(request_id="sess_1:1", unit="dropped_tokens")
    assert (row.quantity, row.cost_nano) == (250, 1750)


async def test_a_turn_is_set_aside_before_and_paid_after(alice: Member) -> None:
    charges = TurnCharges(await caller_with(alice, 100 * SECOND), "voice", "sess_1")

    assert await asked(charges) == ""
    assert await spent() == TURN_S * SECOND
    await took(charges, 1, seconds=5)

    assert await spent() == 5 * SECOND
    lines = {row.unit: row.quantity async for row in UsageRecord.objects.filter(request_id="sess_1:1")}
    assert lines == {"input_tokens": 3, "output_tokens": 4, "audio_seconds": 5}


async def test_a_turn_beyond_the_budget_gets_the_last_words(alice: Member) -> None:
    charges = TurnCharges(await caller_with(alice, (TURN_S + 4) * SECOND), "voice", "sess_1")
    assert await asked(charges) == ""
    await took(charges, 1, seconds=5)
    used_up = asyncio.create_task(charges.used_up())
    await asyncio.sleep(0)
    assert not used_up.done()

    assert await asked(charges, 2) == LAST_WORDS

    await used_up
    await took(charges, 2, seconds=8)
    assert await spent() == 5 * SECOND, "what is said in place of a reply costs nothing"
    assert await asked(charges, 3) == LAST_WORDS


async def test_a_raised_budget_counts_from_the_next_turn(alice: Member) -> None:
    charges = TurnCharges(await caller_with(alice, TURN_S * SECOND), "voice", "sess_1")
    assert await asked(charges) == ""
    await took(charges, 1, seconds=5)

    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(monthly_budget_nano=1000 * SECOND)

    assert await asked(charges, 2) == ""
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(monthly_budget_nano=None)
    await took(charges, 2, seconds=2000)
    assert await asked(charges, 3) == ""
    await took(charges, 3, seconds=2000)
    assert await spent() == 4005 * SECOND


async def test_a_lowered_budget_counts_from_the_next_turn(alice: Member) -> None:
    charges = TurnCharges(await caller_with(alice, 1000 * SECOND), "voice", "sess_1")
    assert await asked(charges) == ""
    await took(charges, 1, seconds=5)
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(monthly_budget_nano=5 * SECOND)
    assert await asked(charges, 2) == LAST_WORDS


async def test_several_sessions_spend_no_more_than_one_turn_each_beyond_the_budget(
    alice: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_charges, "RESERVE_S", 60)  # however busy the machine is
    caller = await caller_with(alice, 10 * TURN_S * SECOND)
    sessions = [TurnCharges(caller, "voice", f"sess_{number}") for number in range(50)]

    said = await asyncio.gather(*(asked(session) for session in sessions))

    assert said.count("") == 10
    assert said.count(LAST_WORDS) == 40
    begun = [session for session, words in zip(sessions, said, strict=True) if not words]
    await asyncio.gather(*(took(session, 1, seconds=TURN_S + 9) for session in begun))
    assert await spent() == 10 * (TURN_S + 9) * SECOND
    assert [await asked(session, 2) for session in begun] == [LAST_WORDS] * 10


async def test_a_response_waits_for_the_turn_ahead_of_it(alice: Member) -> None:
    charges = TurnCharges(await caller_with(alice, (TURN_S + 20) * SECOND), "voice", "sess_1")
    assert await asked(charges) == ""

    second = asyncio.create_task(asked(charges, 2))
    await run_in_db_thread(bool)
    assert not second.done()
    charges.ended(turn(1, input_audio_ms=1000, output_audio_ms=29_000))

    assert await second == LAST_WORDS, "thirty seconds were used, and twenty-one are left"
    assert await spent() == 30 * SECOND


async def test_a_response_that_is_cut_off_while_it_waits_holds_nothing(alice: Member) -> None:
    charges = TurnCharges(await caller_with(alice, TURN_S * SECOND), "voice", "sess_1")
    for ordinal in range(1, 8):
        waiting = asyncio.create_task(asked(charges, ordinal))
        for _ in range(ordinal):
            await asyncio.sleep(0.0005)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        charges.ended(turn(ordinal, input_audio_ms=0, output_audio_ms=0, input_tokens=0, output_tokens=0))
        await charges.write()
    await over(charges)

    assert not await Hold.objects.aexists()
    assert await TurnCharges(Caller.of(alice.row), "voice", "sess_2")._before_response(following()) == ""


async def test_a_session_that_breaks_off_gives_back_what_was_set_aside(alice: Member) -> None:
    charges = TurnCharges(await caller_with(alice, TURN_S * SECOND), "voice", "sess_1")
    assert await asked(charges) == ""
    await charges.finish()
    assert await spent() == 0


async def test_a_reply_in_writing_sets_aside_less_and_a_limit_counts(alice: Member, settings: Settings) -> None:
    settings.LEDGER_PRICES = {"realtime": {"audio_seconds": SECOND, "input_tokens": 1, "output_tokens": 10}}
    for changes, expected in (
        ({}, TURN_S * SECOND + 100 + 512 * 10),
        ({"speaks": False}, SECOND + 100 + 512 * 10),
        ({"speaks": False, "max_tokens": 20, "input_audio_ms": 0}, 100 + 20 * 10),
        ({"speaks": False, "max_tokens": 100_000, "input_audio_ms": 0}, 100 + 512 * 10),
    ):
        charges = TurnCharges(await caller_with(alice, 10**9), "voice", "sess_1")
        assert await asked(charges, **changes) == ""
        assert (await Hold.objects.aget()).cost_nano == expected
        await charges.finish()


@pytest.mark.parametrize("case", ["no budget", "no price", "guest"])
async def test_whom_no_budget_holds_back_is_not_asked(alice: Member, settings: Settings, case: str) -> None:
    caller = await caller_with(alice, None if case != "no price" else 0)
    if case == "no price":
        settings.LEDGER_PRICES = {"chat": {"input_tokens": 1}}
    assert TurnCharges(caller, "voice", "sess_1").before_response is None


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_charges, "RESERVE_S", 0.2)


async def test_a_session_outlasts_the_database_within_what_was_left(alice: Member, impatient: None) -> None:
    charges = TurnCharges(await caller_with(alice, (TURN_S + 10) * SECOND), "voice", "sess_1")
    assert await asked(charges) == ""
    await took(charges, 1, seconds=5)
    with locked_database():
        assert await asked(charges, 2) == "", "36 of 41 seconds were left"
        charges.ended(turn(2, input_audio_ms=1000, output_audio_ms=35_000))
        assert await asked(charges, 3) == LAST_WORDS
    await over(charges)

    assert await spent() == 41 * SECOND
    assert not await Hold.objects.aexists()


async def test_turns_that_wait_for_the_database_are_bounded_and_none_is_lost(
    alice: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_charges, "MOST_UNWRITTEN", 3)
    charges = TurnCharges(await caller_with(alice, None), "voice", "sess_1")
    for ordinal in range(1, 11):
        charges.ended(turn(ordinal, input_audio_ms=1000, output_audio_ms=0))
    await charges.write()

    seconds = UsageRecord.objects.filter(unit="audio_seconds")
    assert await seconds.acount() == 3
    assert (await seconds.aaggregate(sum=Sum("quantity")))["sum"] == 10


async def test_a_session_that_only_transcribes_ends_with_its_budget(alice: Member) -> None:
    charges = TurnCharges(await caller_with(alice, 10 * SECOND), "voice", "sess_1")
    used_up = asyncio.create_task(charges.used_up())
    for ordinal in (1, 2):
        await took(charges, ordinal, seconds=4)
    await asyncio.sleep(0)
    assert not used_up.done()

    await took(charges, 3, seconds=4)
    async with asyncio.timeout(5):
        await used_up
    assert await spent() == 12 * SECOND


async def test_a_session_that_only_transcribes_goes_on_with_a_budget_that_was_raised(alice: Member) -> None:
    charges = TurnCharges(await caller_with(alice, 10 * SECOND), "voice", "sess_1")
    used_up = asyncio.create_task(charges.used_up())
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(monthly_budget_nano=20 * SECOND)
    await took(charges, 1, seconds=11)
    await asyncio.sleep(0)
    assert not used_up.done()
    used_up.cancel()
