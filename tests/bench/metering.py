"""`python -m tests.bench.metering`: what a charge adds to a call, in microseconds, its rows on SQLite included."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voiceapp.accounts.caller import Caller

CALLS = 1000
WARM_UP = 50
AIM_US = 3000


def main() -> None:
    """Set up a database of its own and measure on it."""
    with tempfile.TemporaryDirectory(prefix="voiceapp-metering-") as folder:
        os.environ |= {"DEBUG": "1", "VAR_DIR": folder, "DATABASE_URL": f"sqlite:///{folder}/metering.sqlite3"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "voiceapp.settings"
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> None:
    from django.conf import settings
    from django.db import reset_queries

    from voiceapp.accounts.auth import DEFAULT_WORKSPACE, caller_from_bearer
    from voiceapp.accounts.charges import charge
    from voiceapp.accounts.keys import new_key
    from voiceapp.accounts.models import Account
    from voiceapp.accounts.rates import Rate, Rates, RedisLog
    from voiceapp.formats import request_id

    settings.DEBUG = False  # which would keep every query in memory
    reset_queries()
    settings.RATE_LIMITS = {"default": "1000000/1"}
    account = await Account.objects.acreate(name="bench")
    row, key = new_key(await account.workspaces.acreate(name=DEFAULT_WORKSPACE), "bench")
    await row.asave()
    caller = await caller_from_bearer(f"Bearer {key}")
    with_budget = dataclasses.replace(caller, monthly_budget_nano=10**15)

    async def call(who: Caller = caller) -> None:
        async with charge(
            who, operation="rerank", model="bench", family="rerank", request_id=request_id(), input_tokens=100
        ) as meter:
            meter.used(input_tokens=90)

    settings.QUOTA_ENFORCED = "never"
    print(f"Microseconds for a call, {CALLS} calls one after the other; the aim is {AIM_US} at p50\n")
    _print("rate, ledger", await _times(call))
    settings.QUOTA_ENFORCED = "always"
    settings.FREE_QUOTAS = {"rerank": 10**12}
    _print("rate, quota, ledger", await _times(call))
    _print("rate, quota, budget, ledger", await _times(lambda: call(with_budget)))
    settings.LEDGER_PRICES = {"realtime": {"audio_seconds": 1}}
    for who, title in ((caller, "turn of a session"), (with_budget, "turn of a session, budget")):
        _print(title, await _times(_turns(who)))

    rate = Rate(10**6, 1.0)
    alone = Rates(limit_of=lambda operation: rate)
    _print("rate alone, in this process", await _times(lambda: alone.admit(1, "chat")))
    if shutil.which("redis-server"):
        from tests.accounts.redis import RedisServer

        server = RedisServer(folder)
        server.start()
        shared = Rates(shared=RedisLog(server.url), limit_of=lambda operation: rate)
        _print("rate alone, in Redis", await _times(lambda: shared.admit(1, "chat")))
        await shared.close()
        server.stop()


def _turns(caller: Caller) -> Callable[[], Awaitable[None]]:
    """The turns of one session, one at each call."""
    from voiceapp.engines.interfaces import NextResponse
    from voiceapp.protocol.work import TurnEnded
    from voiceapp.realtime.records.turn_charges import TurnCharges

    charges = TurnCharges(caller, "bench", f"sess_{caller.monthly_budget_nano}")
    ordinals = itertools.count(1)

    async def turn() -> None:
        ordinal = next(ordinals)
        if charges.before_response is not None:
            assert not await charges.before_response(NextResponse(ordinal, 1000, 400, None, True))
        charges.ended(
            TurnEnded(ordinal, "completed", "", "", "", False, 1000, 3000, 9, 9, True, None, None, None, None)
        )
        await charges.write()

    return turn


async def _times(call: Callable[[], Awaitable[None]]) -> tuple[list[float], float]:
    """What each call took, and the processor time of one; all in microseconds."""
    for _ in range(WARM_UP):
        await call()
    times = []
    processor = time.process_time()
    for _ in range(CALLS):
        begun = time.perf_counter()
        await call()
        times.append((time.perf_counter() - begun) * 1e6)
    return times, (time.process_time() - processor) / CALLS * 1e6


def _print(what: str, measured: tuple[list[float], float]) -> None:
    times, processor = measured
    p95 = statistics.quantiles(times, n=20)[-1]
    print(f"{what:32} p50 {statistics.median(times):7.0f}   p95 {p95:7.0f}   processor {processor:7.0f}")


if __name__ == "__main__":
    main()
