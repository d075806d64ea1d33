"""How a task of recognition is read."""

from __future__ import annotations

import asyncio
import struct
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.inference.recognition import RecognitionTransport, Unheard, settings_of
from voiceapp.realtime.transports.interface import Disconnected


@pytest.mark.parametrize(
    ("languages", "language"),
    [(("de", "en"), "en-GB"), ((), "fi"), (("de", "fi"), "fi")],
    ids=["the first that is known", "any, where none are named", "in the order of the hints"],
)
def test_the_hints_choose_a_language(languages: tuple[str, ...], language: str) -> None:
    hints = ["fi", "en-GB", "de"]
    opening, _, _ = settings_of({"language_hints": hints}, languages)
    assert opening["input_audio_transcription"] == {"language": language}


def test_languages_that_nobody_knows_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="de, en only"):
        settings_of({"language_hints": ["zh"]}, ("de", "en"))


PACKET = bytes([(3 << 3) | 3, 2])
"""Opus: two frames of 60 ms, empty."""
SLICE_BYTES = 16_000
"""Half a second of 16 kHz."""


def minutes_of_silence() -> bytes:
    """Ogg Opus whose 80 kB are 50 minutes."""
    table = bytes([len(PACKET)] * 255)
    page = b"OggS\0\0" + struct.pack("<qIIIB", 0, 1, 0, 0, len(table)) + table + PACKET * 255
    return page * 100


async def test_little_that_decodes_to_much_is_decoded_as_it_is_heard() -> None:
    task = RecognitionTransport("task", nowhere, "opus", 16_000, Unheard())
    await task.hear(minutes_of_silence())
    tracemalloc.start()
    heard = await task.receive()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(heard, ev.AudioAppend)
    assert len(heard.audio) == SLICE_BYTES
    assert peak < 10_000_000


@pytest.mark.parametrize("waits", [False, True], ids=["between slices", "while its pace is kept"])
async def test_what_a_client_who_left_has_sent_is_not_heard_any_more(waits: bool) -> None:
    task = RecognitionTransport("task", nowhere, "opus", 16_000, Unheard())
    await task.hear(minutes_of_silence())
    slices_at_once = 30  # 15 seconds
    for _ in range(slices_at_once):
        await task.receive()
    if waits:
        asyncio.get_running_loop().call_soon(task.lose, 1006)
    else:
        task.lose(1006)
    with pytest.raises(Disconnected):
        await task.receive()


async def nowhere(_message: Mapping[str, Any]) -> None:
    """A client who reads."""
