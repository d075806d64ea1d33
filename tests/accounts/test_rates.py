"""How often an account may call: exactly, in this process and across processes."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.accounts.redis import RedisServer
from tests.certificates import self_signed
from tests.ports import free_port
from voiceapp.accounts import rates as rates_module
from voiceapp.accounts.rates import Rate, Rates, RedisLog, SlidingLog, limit, rates
from voiceapp.errors import Throttled

TWENTY = Rate(20, 1.0)
TWENTY_AN_HOUR = Rate(20, 3600.0)
"""For tests that the window must outlast, however busy the machine is."""


class House:
    def __init__(self, rate: Rate | None = TWENTY) -> None:
        self.now = 5000.0
        self.rates = Rates(limit_of=lambda operation: rate, clock=lambda: self.now)

    async def lets_through(self, account_id: int = 1, operation: str = "tasks.query") -> bool:
        return await lets_through(self.rates, account_id, operation)


async def lets_through(limits: Rates, account_id: int = 1, operation: str = "tasks.query") -> bool:
    try:
        await limits.admit(account_id, operation)
    except Throttled:
        return False
    return True


async def test_it_never_lets_more_than_twenty_through_in_any_second() -> None:
    house = House()
    dice = random.Random(1)
    through: list[float] = []
    while house.now < 5060:
        house.now += dice.choice([0.0, 0.0, 0.001, 0.01, 0.03, 0.2, 0.9])
        if await house.lets_through():
            through.append(house.now)
    assert len(through) > 200
    assert all(later - first >= 1 for first, later in zip(through, through[20:], strict=False))


async def test_it_lets_a_steady_caller_have_all_twenty_of_every_second() -> None:
    house = House()
    through = 0
    for _ in range(25 * 8):
        house.now += 1 / 32
        through += await house.lets_through()
    assert through == 6 * 20 + 8, "six full seconds, and the first eight calls of the seventh"


async def test_it_counts_every_account_and_operation_for_itself() -> None:
    house = House(Rate(1, 1.0))
    assert await house.lets_through(1, "tasks.query")
    assert not await house.lets_through(1, "tasks.query")
    assert await house.lets_through(1, "tasks.cancel")
    assert await house.lets_through(2, "tasks.query")


async def test_it_says_when_to_come_back_and_means_it() -> None:
    house = House(Rate(2, 10.0))
    await house.rates.admit(1, "chat")
    house.now += 4
    await house.rates.admit(1, "chat")
    house.now += 0.5
    with pytest.raises(Throttled) as refused:
        await house.rates.admit(1, "chat")
    assert (refused.value.code, refused.value.http_status) == ("Throttling.RateQuota", 429)
    assert refused.value.retry_after_s == 6
    house.now += 6
    assert await house.lets_through(1, "chat")
    assert not await house.lets_through(1, "chat")


async def test_it_does_not_count_what_it_refused() -> None:
    house = House(Rate(1, 1.0))
    for _ in range(8):
        await house.lets_through()
        house.now += 1 / 8
    assert await house.lets_through()


async def test_it_lets_everything_through_without_a_limit() -> None:
    house = House(None)
    assert all([await house.lets_through() for _ in range(500)])


def test_it_remembers_a_bounded_number_of_logs() -> None:
    log = SlidingLog(capacity=100)
    for number in range(250):
        log.record(str(number), TWENTY, 0.0)
    assert len(log) == 100


def test_it_knows_the_limits_of_the_settings(settings: Settings) -> None:
    assert [limit(f"tasks.{operation}") for operation in ("query", "list", "cancel")] == [TWENTY] * 3
    settings.RATE_LIMITS = {"default": "5/60", "chat": "off"}
    assert limit("embedding") == Rate(5, 60.0)
    assert limit("chat") is None


@pytest.mark.parametrize("text", ["", "20", "20/", "/1", "0/1", "-1/1", "1/0", "1/-1", "1/inf", "1/nan", "many/1"])
def test_it_refuses_a_rate_that_means_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Rate.parse(text)


# ── Across processes ──


PATIENCE_S = 60.0


@pytest.fixture
def redis_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """One that may take its time: on a busy machine, so would a good one."""
    monkeypatch.setattr(rates_module, "REDIS_TIMEOUT_S", PATIENCE_S)
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop()


@asynccontextmanager
async def two(redis_server: RedisServer, rate: Rate) -> AsyncIterator[tuple[Rates, Rates]]:
    pair = [Rates(shared=RedisLog(redis_server.url), limit_of=lambda operation: rate) for _ in range(2)]
    yield (pair[0], pair[1])
    for one in pair:
        await one.close()


async def test_two_processes_let_twenty_through_together(redis_server: RedisServer) -> None:
    async with two(redis_server, TWENTY_AN_HOUR) as pair:
        answers = await asyncio.gather(*(lets_through(pair[number % 2]) for number in range(50)))
        assert sum(answers) == 20
        with pytest.raises(Throttled) as refused:
            await pair[0].admit(1, "tasks.query")
        assert 3000 < refused.value.retry_after_s <= 3600
        assert await lets_through(pair[1], account_id=2)


async def test_two_processes_never_let_more_than_twenty_through_in_any_second(redis_server: RedisServer) -> None:
    began: list[float] = []
    ended: list[float] = []

    async def press(one: Rates) -> None:
        while len(ended) < 60:
            asked_at = time.monotonic()
            if await lets_through(one):
                began.append(asked_at)
                ended.append(time.monotonic())
            else:
                await asyncio.sleep(0.01)

    async with two(redis_server, TWENTY) as pair:
        await asyncio.gather(*(press(one) for one in pair for _ in range(3)))
    began.sort()
    ended.sort()
    # A call was let through between being asked and being answered: 21 of them span a second at least.
    assert all(last - first >= 1 for first, last in zip(began, ended[20:], strict=False))


OTHER_PROCESS = """
import asyncio, sys
from django.conf import settings
settings.configure(RATE_LIMITS={"default": "20/3600"}, REDIS_URL=sys.argv[1])
from voiceapp.accounts import rates as rates_module
from voiceapp.accounts.rates import rates
from voiceapp.errors import Throttled
rates_module.REDIS_TIMEOUT_S = float(sys.argv[2])
async def main():
    through = 0
    for _ in range(25):
        try:
            await rates().admit(1, "chat")
            through += 1
        except Throttled:
            pass
    print(through)
    await rates().close()
asyncio.run(main())
"""


def test_real_processes_share_one_limit(redis_server: RedisServer) -> None:
    root = Path(rates_module.__file__).parents[2]
    command = [sys.executable, "-c", OTHER_PROCESS, redis_server.url, str(PATIENCE_S)]
    processes = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) for _ in range(2)]
    assert sum(int(process.communicate(timeout=120)[0]) for process in processes) == 20


async def test_it_goes_on_counting_alone_when_redis_is_gone(redis_server: RedisServer) -> None:
    async with two(redis_server, TWENTY_AN_HOUR) as (one, _):
        assert [await lets_through(one) for _ in range(15)] == [True] * 15
        redis_server.stop()
        answers = [await lets_through(one) for _ in range(25)]
        assert answers == [True] * 5 + [False] * 20
        assert one.alone == 5

        redis_server.start()
        await asyncio.sleep(rates_module.REDIS_PAUSE_S)
        assert await lets_through(one, account_id=2)
        assert one.alone == 5, "Redis decides again"


async def test_it_does_not_wait_for_a_redis_that_says_nothing(tmp_path: Path) -> None:
    asked = 0

    def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1

    silent = await asyncio.start_unix_server(say_nothing, tmp_path / "silent.sock")
    one = Rates(shared=RedisLog(f"unix://{tmp_path}/silent.sock"), limit_of=lambda operation: TWENTY_AN_HOUR)
    assert sum([await lets_through(one) for _ in range(25)]) == 20
    assert 1 <= asked < 5, "each of them cost its caller a while"
    assert one.alone == 20
    await one.close()
    silent.close()


def test_it_asks_redis_when_the_settings_name_one(settings: Settings, tmp_path: Path) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nothing.sock"
    assert asyncio.run(_alone_after_a_call()) == 1
    rates.cache_clear()
    settings.REDIS_URL = ""
    assert asyncio.run(_alone_after_a_call()) == 0


def test_it_trusts_the_authority_that_the_address_of_redis_names(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates_module, "REDIS_TIMEOUT_S", PATIENCE_S)
    self_signed(tmp_path)
    redis = RedisServer(tmp_path, port=free_port(), has_tls=True)
    redis.start()
    address = f"rediss://127.0.0.1:{redis.port}/0"
    try:
        for settings.REDIS_URL, alone in ((address, 1), (f"{address}?ssl_ca_certs={tmp_path}/certificate.pem", 0)):
            rates.cache_clear()
            assert asyncio.run(_alone_after_a_call()) == alone
    finally:
        redis.stop()


async def _alone_after_a_call() -> int:
    await rates().admit(1, "chat")
    await rates().close()
    return rates().alone
