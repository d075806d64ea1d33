"""How calls end, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.webrtc.caller import LOUD, Caller, calling
from tests.realtime.webrtc.network import Faults

PROMPT_S = 15.0
"""Five seconds are promised, to those whose machine does not run tests meanwhile. Without a look at what comes from a
caller, it would be thirty."""
AT_ONCE = 5
WARM_UP = 100
CALLS = int(os.environ.get("CALLS_IN_A_ROW", "60"))
"""`make soak` has thousands; what is left of them may be no more."""
GROWTH_MB = 12
"""A call that stays holds about 0.25 MB, so 15 MB here. Those that are over wait for the collector, some dozens."""


async def closed_books(product: Product, caller: Caller) -> dict[str, Any]:
    return await product.row(
        "select * from realtime_realtimesession where id = ? and ended_at is not null",
        caller.heard[0].event["session"]["id"],
    )


def media_sockets(product: Product) -> int:
    """UDP sockets of the server: every peer has some, and nothing else does."""
    process = Path("/proc") / str(product.pid)
    datagram = {
        line.split()[9] for table in ("udp", "udp6") for line in (process / "net" / table).read_text().splitlines()[1:]
    }
    names = []
    for fd in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            names.append(fd.readlink().name)
    return sum(name.removeprefix("socket:[").removesuffix("]") in datagram for name in names)


async def all_gone(product: Product, gone: float) -> None:
    while media_sockets(product):
        assert time.monotonic() - gone < PROMPT_S, "a peer is still there"
        await asyncio.sleep(0.05)


async def test_a_reloaded_page_ends_its_call(product: Product) -> None:
    async with calling(product.origin, product.keys["good"]) as caller:
        assert media_sockets(product)
        await caller.connection.close()
        gone = time.monotonic()
        row = await closed_books(product, caller)
        await all_gone(product, gone)
    assert row["transport"] == "webrtc"
    assert row["close_code"] == 1001


async def test_a_closed_channel_ends_the_call(product: Product) -> None:
    async with calling(product.origin, product.keys["good"]) as caller:
        assert caller.channel is not None
        caller.channel.close()
        gone = time.monotonic()
        row = await closed_books(product, caller)
        await caller.wait_closed()
        await all_gone(product, gone)
    assert row["close_code"] == 1001


async def test_a_caller_whose_network_is_cut_is_missed(product: Product) -> None:
    faults = Faults()
    async with calling(product.origin, product.keys["good"], faults=faults) as caller:
        await caller.ask("What can you do?")
        await caller.wait_loud()
        faults.is_cut = True
        gone = time.monotonic()
        row = await closed_books(product, caller)
        await all_gone(product, gone)
    assert row["close_code"] == 1006
    assert product.rows("select * from realtime_turn where session_id = ?", row["id"])


async def test_the_session_s_lifetime_is_announced(serve: Serve) -> None:
    product = serve(SESSION_LIFETIME_S="2")
    async with calling(product.origin, product.keys["good"]) as caller:
        closing = await caller.wait("session.closing")
        await caller.wait_closed(PROMPT_S)
        row = await closed_books(product, caller)
    assert closing["code"] == row["close_code"] == 4000


async def test_a_stopping_server_speaks_to_the_end(serve: Serve) -> None:
    product = serve(DRAIN_S="15")

    async def loud_frames(*, is_stopped: bool) -> int:
        """How much of the answer is heard; pauses of a busy machine do not count."""
        async with calling(product.origin, product.keys["good"]) as caller:
            await caller.ask("What is twelve times twelve?")
            await caller.wait_loud()
            if is_stopped:
                product.signal()
                assert (await caller.wait("session.closing"))["code"] == 4012
                await caller.wait_closed()
            await caller.wait_quiet()
        return sum(sound.peak > LOUD for sound in caller.sounds)

    whole = await loud_frames(is_stopped=False)
    assert await loud_frames(is_stopped=True) > 0.95 * whole
    assert await asyncio.to_thread(product.stop) == 0
    rows = product.rows("select close_code from realtime_realtimesession order by started_at")
    assert rows[1] == {"close_code": 4012}
    assert "Traceback" not in product.log
    assert "was destroyed" not in product.log


def has_answers(caller: Caller, count: int) -> bool:
    return bool(caller.all("error")) or len(caller.all("input_audio_buffer.cleared")) == count


async def test_a_flood_of_messages_ends_the_call(product: Product) -> None:
    async with calling(product.origin, product.keys["good"]) as caller:
        answers = 0
        while not caller.all("error"):  # not more at once: what still comes holds up the server's last words
            for _ in range(500):
                await caller.send("input_audio_buffer.clear")
            answers += 500
            await caller.until(partial(has_answers, caller, answers))
        error = (await caller.wait("error"))["error"]
        closing = await caller.wait("session.closing")
    assert error["code"] == "too_many_messages"
    assert closing["code"] == 4408


async def test_many_calls_leave_nothing_behind(serve: Serve) -> None:
    # While DEBUG is on, Django itself keeps the text of the last 9000 queries of every connection.
    product = serve(
        DEBUG="0",
        HTTPS="0",
        ALLOWED_HOSTS="127.0.0.1",
        RTC_ALLOW_PRIVATE="1",
        MALLOC_ARENA_MAX="1",  # what allocators hold in reserve says nothing
        MALLOC_TRIM_THRESHOLD_="65536",
    )

    async def one() -> None:
        async with calling(product.origin, product.keys["good"]) as caller:
            await caller.send("input_audio_buffer.clear")
            await caller.wait("input_audio_buffer.cleared")

    async def some(count: int) -> None:
        for _ in range(count // AT_ONCE):
            await asyncio.gather(*(one() for _ in range(AT_ONCE)))

    async def held() -> tuple[int, int, float]:
        """Sockets, threads and memory (MB) of the server, once its last call is over."""
        await product.row("select 1 where not exists (select 1 from realtime_realtimesession where ended_at is null)")
        await asyncio.sleep(0.5)
        process = Path("/proc") / str(product.pid)
        sockets = [fd for fd in (process / "fd").iterdir() if fd.readlink().name.startswith("socket:")]
        lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        return len(sockets), int(lines["Threads"]), int(lines["VmRSS"].split()[0]) / 1024

    await some(WARM_UP)
    before = await held()
    await some(CALLS)
    after = await held()
    assert after[0] <= before[0]
    assert media_sockets(product) == 0
    assert after[1] <= before[1] + 2  # pools grow to their size
    print(f"{CALLS} calls: {before[2]:.1f} MB before, {after[2]:.1f} MB after")
    assert after[2] - before[2] < GROWTH_MB
    assert len(product.rows("select 1 from realtime_realtimesession")) == WARM_UP + CALLS
