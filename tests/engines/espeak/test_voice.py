from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from tests.engines.speech import SENTENCES, pcm, spoken, word_errors, words
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.espeak.process import MAX_PENDING
from voiceapp.engines.espeak.voice import MAX_CLAUSE_CHARS, VOICES, Espeak, clauses
from voiceapp.engines.models.lanes import LaneFull
from voiceapp.errors import EngineUnavailable

SENTENCE = "The living room is on the second floor."
LOUD = 200
"""Amplitude above which there is sound."""


def seconds(sound: bytes, sample_rate_hz: int = 24_000) -> float:
    return len(sound) / 2 / sample_rate_hz


def process_id(espeak: Espeak) -> int:
    assert espeak.process_id is not None
    return espeak.process_id


async def first_piece(espeak: Espeak, text: str) -> bytes:
    async with aclosing(espeak.speak(text, voice="en-us", sample_rate_hz=24_000)) as sound:
        return await anext(sound)


async def test_what_it_says_is_understood(espeak: Espeak, moonshine: Moonshine) -> None:
    heard = [(await moonshine.recognize(await spoken(espeak, sentence))).text for sentence in SENTENCES]
    errors = sum(map(word_errors, SENTENCES, heard))
    assert errors <= 0.2 * len(words(" ".join(SENTENCES))), heard


@pytest.mark.parametrize("sample_rate_hz", [8_000, 16_000, 22_050, 24_000, 48_000])
async def test_it_speaks_at_the_rate_of_the_session(espeak: Espeak, sample_rate_hz: int) -> None:
    native = seconds(await pcm(espeak, SENTENCE, sample_rate_hz=22_050), 22_050)
    sound = await pcm(espeak, SENTENCE, sample_rate_hz=sample_rate_hz)
    assert seconds(sound, sample_rate_hz) == pytest.approx(native, abs=0.01)


@pytest.mark.parametrize("text", [SENTENCE, '"Hello" he said.', "(an aside)", "… and then", "— well"])
async def test_it_begins_and_ends_with_sound(espeak: Espeak, text: str) -> None:
    loud = np.flatnonzero(np.abs(np.frombuffer(sound := await pcm(espeak, text), dtype=np.int16)) > LOUD)
    assert loud[0] / 24_000 <= 0.06
    assert seconds(sound) - loud[-1] / 24_000 <= 0.06


@pytest.mark.parametrize("text", ["", "  \n", "…", "?"])
async def test_it_says_nothing_where_there_are_no_words(espeak: Espeak, text: str) -> None:
    assert seconds(await pcm(espeak, text)) < 0.05


async def test_the_rate_makes_it_faster_and_slower(espeak: Espeak) -> None:
    slow, normal, fast = [seconds(await pcm(espeak, SENTENCE, rate=rate)) for rate in (0.7, 1.0, 1.5)]
    assert slow > normal * 1.2 > fast * 1.5
    assert await pcm(espeak, "Hi.", rate=100)


async def test_each_voice_sounds_different(espeak: Espeak) -> None:
    lengths = {voice.name: len(await pcm(espeak, SENTENCE, voice=voice.name)) for voice in VOICES}
    assert len({*lengths.values()}) >= 3, lengths


async def test_an_unknown_voice_speaks_as_the_default(espeak: Espeak) -> None:
    unknown, default, other = [
        seconds(await pcm(espeak, "Well then.", voice=voice)) for voice in ("Cherry", VOICES[0].name, "en-gb-scotland")
    ]
    assert unknown == pytest.approx(default, abs=0.005)
    assert unknown != pytest.approx(other, abs=0.005)


async def test_it_speaks_any_characters(espeak: Espeak) -> None:
    assert await pcm(espeak, "Zero\0 and a half \ud800 emoji 🎉 and 你好, then “quotes” <b>&amp;</b> [[ok]] done.")


async def test_conversations_that_speak_at_once_do_not_mix(espeak: Espeak) -> None:
    texts = [f"{sentence} {'Indeed. ' * number}" for number, sentence in enumerate(SENTENCES * 3)]
    alone = [seconds(await pcm(espeak, text)) for text in texts]
    together = await asyncio.gather(*[pcm(espeak, text) for text in texts])
    assert [seconds(sound) for sound in together] == pytest.approx(alone, abs=0.05)


async def test_a_slow_listener_holds_nobody_up(espeak: Espeak) -> None:
    async with aclosing(espeak.speak(" ".join(SENTENCES * 20), voice="en-us", sample_rate_hz=24_000)) as slow:
        await anext(slow)
        async with asyncio.timeout(20):
            assert seconds(await pcm(espeak, SENTENCE)) > 1


async def test_a_listener_who_leaves_is_forgotten(espeak: Espeak) -> None:
    await espeak.warm()
    before = process_id(espeak)
    for _ in range(2 * MAX_PENDING):
        await first_piece(espeak, " ".join(SENTENCES))
    assert seconds(await pcm(espeak, SENTENCE)) > 1
    assert process_id(espeak) == before, "leaving costs no restart"


async def test_long_text_is_spoken_whole_with_pauses_between_its_parts(espeak: Espeak) -> None:
    text = " ".join(SENTENCES * 4)
    parts = list(clauses(text))
    assert len(parts) > 2
    apart = sum([seconds(await pcm(espeak, part)) for part in parts])
    assert seconds(await pcm(espeak, text)) > apart + 0.1 * (len(parts) - 1)


async def test_it_starts_again_after_a_crash(espeak: Espeak) -> None:
    await espeak.warm()
    crashed = process_id(espeak)
    os.kill(crashed, signal.SIGKILL)
    assert seconds(await pcm(espeak, SENTENCE)) > 1
    assert process_id(espeak) != crashed


def loaded(process_id: int | str) -> str:
    """The files that a process has mapped."""
    return Path(f"/proc/{process_id}/maps").read_text()


async def test_the_library_stays_out_of_this_process_and_our_secrets_out_of_its(
    espeak: Espeak, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAT_API_KEY", "very-secret")
    await pcm(espeak, SENTENCE)
    assert "libespeak" not in loaded("self")
    assert "libespeak" in loaded(process_id(espeak))
    assert b"very-secret" not in (Path("/proc") / str(process_id(espeak)) / "environ").read_bytes()


async def test_closing_it_ends_the_program(espeak: Espeak) -> None:
    await espeak.warm()
    program = Path("/proc") / str(process_id(espeak))
    assert program.exists()
    await espeak.close()
    assert not program.exists()


def test_the_program_ends_when_the_server_dies() -> None:
    server = (
        "import asyncio, os\nfrom voiceapp.engines.espeak.voice import Espeak\n"
        "espeak = Espeak()\nasyncio.run(espeak.warm())\nprint(espeak.process_id, flush=True)\n"
        "input()\nos._exit(1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", server], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdin is not None
        program = os.pidfd_open(int(run.stdout.readline()))
        run.stdin.write(b"\n")
        run.stdin.flush()
        ended, _, _ = select.select([program], [], [], 10)
        os.close(program)
    assert ended


def test_it_can_be_used_from_one_event_loop_after_another() -> None:
    espeak = Espeak()
    for _ in range(2):
        assert seconds(asyncio.run(pcm(espeak, SENTENCE))) > 1
    asyncio.run(espeak.close())


# Programs that speak the protocol badly.

HELLO = "import os, struct, sys, time\nos.write(1, struct.pack('<IIII', 0, 0, 4, 16000))\n"
HANGS = HELLO + "time.sleep(60)"


@pytest_asyncio.fixture
async def broken(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Espeak]:
    program = tmp_path / "program.py"
    program.write_text(request.param)
    espeak = Espeak(program, patience_s=0.3 if request.param == HANGS else 30.0)
    yield espeak
    await espeak.close()


@pytest.mark.parametrize("broken", ["raise SystemExit(1)"], indirect=True, ids=["ends at once"])
async def test_a_program_that_does_not_start_makes_it_unavailable(broken: Espeak) -> None:
    with pytest.raises(EngineUnavailable):
        await pcm(broken, SENTENCE)


@pytest.mark.parametrize("broken", [HELLO + "sys.stdin.readline()"], indirect=True, ids=["ends on a text"])
async def test_a_text_that_kills_the_program_twice_is_given_up(broken: Espeak) -> None:
    with pytest.raises(EngineUnavailable, match="stopped"):
        await pcm(broken, SENTENCE)


@pytest.mark.parametrize("broken", [HANGS], indirect=True, ids=["hangs"])
async def test_a_program_that_hangs_is_ended(broken: Espeak) -> None:
    with pytest.raises(EngineUnavailable, match="no sound"):
        await pcm(broken, SENTENCE)
    assert broken.process_id is None


@pytest.mark.parametrize("broken", [HANGS], indirect=True, ids=["hangs"])
async def test_it_refuses_when_too_many_replies_wait(broken: Espeak) -> None:
    results = await asyncio.gather(*[pcm(broken, SENTENCE) for _ in range(MAX_PENDING + 5)], return_exceptions=True)
    assert sum(isinstance(result, LaneFull) for result in results) == 5


@pytest.mark.parametrize(
    "text",
    ["word " * 200, "No end" * 200, f"One sentence here. {'and more, ' * 60} end.", "Short."],
)
def test_clauses_are_short_and_lose_no_word(text: str) -> None:
    pieces = list(clauses(text))
    assert max(map(len, pieces)) <= MAX_CLAUSE_CHARS
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_a_clause_ends_with_a_sentence_where_it_can() -> None:
    text = "This is one of many sentences. " * 20
    assert all(piece.endswith(".") for piece in clauses(text))


async def test_every_voice_reads_in_its_own_language(espeak: Espeak) -> None:
    (english,) = await espeak.phonemes(["21 nation"], voice="en-us")
    for voice in VOICES:
        (found,) = await espeak.phonemes(["21 nation"], voice=voice.name)
        assert (found == english) == (voice.name.startswith("en-us")), voice
        assert not set("()") & set(found), voice
