"""Conversations whose key has spent its monthly budget, against the real server: the caller is told so, aloud."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone

from tests.engines.speech import word_errors
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import Talker, call, samples_at
from tests.realtime.webrtc.caller import Caller
from voiceapp.accounts.budgets import month_of
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.interfaces import Samples
from voiceapp.realtime.records.turn_charges import LAST_WORDS, USUAL_REPLY_S

SECOND = 1_000_000
"""What a second of audio costs, in nano-dollars."""
QUESTION = "What is twelve times twelve?"
MISHEARD = 8
"""Of the 28 last words: the synthetic voice is robotic."""


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(LEDGER_PRICES=json.dumps({"realtime": {"audio_seconds": SECOND}}))


def give(product: Product, seconds: int) -> None:
    """A budget for so many seconds of audio."""
    product.write("update accounts_apikey set monthly_budget_nano = ? where name = 'good'", seconds * SECOND)


def forget(product: Product) -> None:
    for table in ("hold", "monthlyspend"):
        product.write(f"delete from accounts_{table}")


async def books(product: Product, session_id: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The session's row when it is over, and its seconds in the ledger."""
    row = await product.row("select * from realtime_realtimesession where id = ? and ended_at is not null", session_id)
    lines = product.rows(
        "select * from accounts_usagerecord where request_id like ? and unit = 'audio_seconds' order by id",
        f"{session_id}:%",
    )
    return row, lines


async def assert_told(talker: Talker | Caller, *, turns: int) -> None:
    """In place of a reply the caller gets the last words; then the reason, and the end."""
    closing = await talker.wait("session.closing")
    assert closing["code"] == 4402
    error = talker.all("error")[-1]["error"]
    assert error["code"] == "budget_used_up"
    assert "budget" in error["message"]
    said = talker.all("response.audio_transcript.done")
    assert len(said) == turns
    assert said[-1]["transcript"] == LAST_WORDS
    assert talker.all("response.done")[-1]["response"]["status"] == "completed"
    ends = [heard.event["type"] for heard in talker.heard]
    last = len(ends) - 1 - ends[::-1].index("response.done")
    assert [type_ for type_ in ends[last:] if type_ in ("response.done", "error", "session.closing")] == [
        "response.done",
        "error",
        "session.closing",
    ]


async def assert_audible(heard: Samples) -> None:
    assert word_errors(LAST_WORDS, (await Moonshine().recognize(heard)).text) <= MISHEARD


async def test_a_budget_that_is_used_up_ends_the_conversation_within_a_turn(product: Product) -> None:
    forget(product)
    give(product, USUAL_REPLY_S + 2)
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask(QUESTION)
        await talker.wait("response.done")
        assert "144" in talker.all("response.audio_transcript.done")[0]["transcript"]
        await talker.ask(QUESTION)
        await assert_told(talker, turns=2)
        assert await talker.wait_closed() == 4402
        last = talker.all("response.done")[-1]["response"]["id"]
        await assert_audible(samples_at(talker.audio(last), 24_000))

    row, lines = await books(product, talker.heard[0].event["session"]["id"])
    assert (row["close_code"], row["turn_count"]) == (4402, 2)
    assert [line["request_id"].partition(":")[2] for line in lines] == ["1"]
    (spent,) = product.rows("select spent_nano from accounts_monthlyspend")
    assert spent["spent_nano"] == lines[0]["cost_nano"] <= (USUAL_REPLY_S + 2) * SECOND
    assert not product.rows("select * from accounts_hold")


async def test_who_only_reads_reads_the_last_words(product: Product) -> None:
    forget(product)
    give(product, 1)
    async with call(product.url, product.keys["good"]) as talker:
        await talker.send("session.update", session={"modalities": ["text"]})
        product.write(
            "insert into accounts_monthlyspend (key_id, month, spent_nano) "
            "select id, ?, ? from accounts_apikey where name = 'good'",
            month_of(timezone.now()),
            SECOND,
        )
        await talker.ask(QUESTION)
        assert (await talker.wait("response.text.done"))["text"] == LAST_WORDS
        assert await talker.wait_closed() == 4402
