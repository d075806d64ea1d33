"""The process of a language model: it comes back when it dies or hangs, and never outlives the server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import pytest
from django.conf import settings

from tests.engines.llama_cpp.conftest import chat_of
from tests.engines.llama_cpp.test_chat import CAPITAL, ask, text
from voiceapp.engines.interfaces import ChatMessage, ChatRequest
from voiceapp.engines.llama_cpp.chat import LlamaChat
from voiceapp.engines.llama_cpp.process import LOOK_S, LlamaOptions, LlamaProcess
from voiceapp.errors import EngineTimeout, EngineUnavailable

GONE_S = 20.0
STORY = ChatRequest((ChatMessage("user", "Tell me a very long story about a dog."),), max_tokens=200)

_SERVER = """
import asyncio, sys
from pathlib import Path
from voiceapp.engines.llama_cpp.process import LlamaOptions, LlamaProcess
async def main():
    process = LlamaProcess(LlamaOptions(Path(sys.argv[1]), 1, 256, 1))
    print((await process.running(within_s=60)).process_id, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


_LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from voiceapp.engines.llama_cpp.process import LlamaOptions, LlamaProcess
from voiceapp.errors import EngineUnavailable
resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9, 3 * 10**9))
async def main():
    process = LlamaProcess(LlamaOptions(Path(sys.argv[1]), 1, 1_000_000, 4))
    try:
        await process.running(within_s=60)
    except EngineUnavailable as refusal:
        print(refusal.message, flush=True)
    process.close()
asyncio.run(main())
"""


async def process_id(chat: LlamaChat) -> int:
    return (await chat._process.running()).process_id


def has_gone(process_id: int) -> bool:
    """Whether no such process runs any more; one that nobody has waited for yet counts as gone."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


async def test_a_reply_is_asked_for_again_when_the_process_was_dead(chat: LlamaChat) -> None:
    dead = await process_id(chat)
    os.kill(dead, signal.SIGKILL)
    assert "Paris" in text(await ask(chat, temperature=0.0))
    assert await process_id(chat) != dead


async def test_a_reply_that_is_cut_off_says_so_and_the_next_one_comes(chat: LlamaChat) -> None:
    async with aclosing(chat.stream(STORY)) as deltas:
        await anext(deltas)
        os.kill(await process_id(chat), signal.SIGKILL)
        with pytest.raises(EngineUnavailable, match="stopped in the middle"):
            [delta async for delta in deltas]
    assert "Paris" in text(await ask(chat, temperature=0.0))


@pytest.mark.parametrize("is_stopped", [True, False])
async def test_a_process_that_hangs_is_replaced(small_model: Path, is_stopped: bool) -> None:
    """Stopped, or with a schema that takes a minute to compile: its other threads still say that it is well."""
    chat = chat_of(small_model)
    chat._process._hung_s = 1.0
    model = await chat._process.running()
    if is_stopped:
        os.kill(model.process_id, signal.SIGSTOP)
        waiting = asyncio.create_task(ask(chat, *CAPITAL, temperature=0.0))
    else:
        shape = {"name": "a", "schema": {"enum": [f"value {number}" for number in range(30_000)]}}
        extra = {"response_format": {"type": "json_schema", "json_schema": shape}}
        hanging = asyncio.create_task(ask(chat, extra=extra))
    await asyncio.wait_for(asyncio.wrap_future(model.ended), GONE_S)
    chat._process._hung_s = 60.0
    if not is_stopped:
        hanging.cancel()
        waiting = asyncio.create_task(ask(chat, *CAPITAL, temperature=0.0))
    assert "Paris" in text(await waiting)
    await chat.close()


async def test_a_reply_has_a_deadline(chat: LlamaChat) -> None:
    chat._longest_reply_s = 0.5
    with pytest.raises(EngineTimeout):
        await ask(chat, *STORY.messages, max_tokens=1000)
    chat._longest_reply_s = 60.0
    assert "Paris" in text(await ask(chat, temperature=0.0))


def test_its_log_is_cut_and_not_at_its_callers_speed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A refused pattern of 40 kB was one line of the server's log."""
    process = LlamaProcess(LlamaOptions(tmp_path / "a.gguf", 1, 256, 1))
    (tmp_path / "log").write_bytes(b"0.0 W pattern " + b"(" * 40_000 + b"\nGood.\n" + b"0.0 W cancelled\n" * 100)
    with caplog.at_level("INFO"):
        process._log((tmp_path / "log").open("rb", buffering=0))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 60
    assert max(map(len, lines)) < 350
    assert lines[1] == "language model a.gguf: Good."


async def test_closing_a_stream_stops_the_writing(chat: LlamaChat) -> None:
    for _ in range(4):  # there are two slots: what went on writing would keep them
        async with asyncio.timeout(30), aclosing(chat.stream(STORY)) as deltas:
            await anext(deltas)


async def test_it_rests_when_it_is_idle_and_starts_with_the_next_call(small_model: Path) -> None:
    chat = chat_of(small_model, idle_s=0.1)
    first = await process_id(chat)
    async with asyncio.timeout(GONE_S):
        async with aclosing(chat.stream(STORY)) as deltas:
            await anext(deltas)
            await asyncio.sleep(LOOK_S + 0.5)  # longer than the watch needs to find it idle
            assert not has_gone(first)
        while not has_gone(first):  # noqa: ASYNC110 - another process has no event
            await asyncio.sleep(0.05)
        assert text(await ask(chat))
        assert await process_id(chat) != first
    await chat.close()


async def test_closing_ends_the_process(small_model: Path) -> None:
    chat = chat_of(small_model)
    await chat.warm()
    running = await process_id(chat)
    await chat.close()
    assert has_gone(running)


@pytest.mark.parametrize("content", [b"no model at all", b"GGUF\x03\x00\x00\x00half a header", b""])
async def test_a_file_that_is_no_model_is_named_and_nothing_stays(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(content)
    process = LlamaProcess(LlamaOptions(file, 1, 256, 1))
    with pytest.raises(EngineUnavailable, match="cannot be loaded") as refusal:
        await process.running()
    assert str(file) in refusal.value.for_operators
    assert str(file) not in refusal.value.message
    await asyncio.to_thread(process.close)


def test_a_model_that_has_no_room_in_memory_is_refused(small_model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(small_model)],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.stdout == "The language model cannot be loaded.\n", done.stderr


async def test_half_a_file_is_no_model(tmp_path: Path, small_model: Path) -> None:
    file = tmp_path / "half.gguf"
    with small_model.open("rb") as whole:
        file.write_bytes(whole.read(40_000_000))
    process = LlamaProcess(LlamaOptions(file, 1, 256, 1))
    with pytest.raises(EngineUnavailable, match="cannot be loaded"):
        await process.running()
    await asyncio.to_thread(process.close)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_the_process_dies_with_a_server_that_is_killed(small_model: Path, is_stopped: bool) -> None:
    if is_stopped and sys.platform != "linux":
        return  # elsewhere a stopped process notices once it is continued
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(small_model)],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "tests.settings"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    child = int(server.stdout.readline())
    if is_stopped:
        os.kill(child, signal.SIGSTOP)
    server.kill()
    server.wait()
    server.stdout.close()
    deadline = time.monotonic() + GONE_S
    while not has_gone(child):
        assert time.monotonic() < deadline, "the language model outlived its server"
        time.sleep(0.05)
