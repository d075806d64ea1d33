"""One running server, and somebody to talk to it."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.environments import is_tried
from tests.realtime.conftest import home, product, serve, voices
from tests.realtime.talker import pcm_at
from voiceapp.engines.interfaces import Samples

__all__ = ["home", "product", "serve", "voices"]

QUESTION = "What is twelve times twelve?"
NEEDED = {
    "test_asyncapi.py": "javascript",
    "test_llamaindex.py": "llamaindex",
    "test_pages.py": "javascript",
    "test_qwen_audio_agent.py": "javascript",
}
collect_ignore = [file for file, environment in NEEDED.items() if not is_tried(environment)]

Record = Callable[[int], Path]


@pytest.fixture
def record(voices: Callable[[str], Samples], tmp_path: Path) -> Record:
    """Makes a file of the question and the silence behind it, with a sample rate."""

    def write(rate_hz: int) -> Path:
        path = tmp_path / "question.wav"
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, rate_hz, 0, "NONE", ""))
            file.writeframes(pcm_at(voices(QUESTION), rate_hz) + bytes(2 * rate_hz))
        return path

    return write
