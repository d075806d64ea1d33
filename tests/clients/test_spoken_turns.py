"""A spoken turn with each realtime client library of OpenAI's dialect, as its registry gives it: words come, sound
comes, and the library reports nothing."""

from __future__ import annotations

import json
import shutil
import wave
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.environments import is_tried, reached, run
from tests.engines.speech import word_errors
from tests.realtime.product import Product
from tests.realtime.talker import pcm_at
from voiceapp.engines.interfaces import Samples

QUESTION = "What is twelve times twelve?"
REPLY = "12 times 12 is 144."
RATE_HZ = 24_000
PROGRAMS = {
    "openai_agents.py": "openai-agents",
    "livekit_agents.py": "livekit",
    "pipecat_bot.py": "pipecat",
    "openai.mjs": "javascript",
    "openai_agents.mjs": "javascript",
}
"""In which environment each runs."""


@pytest.fixture
def recording(voices: Callable[[str], Samples], tmp_path: Path) -> Path:
    """The question and the silence behind it."""
    path = tmp_path / "question.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE_HZ, 0, "NONE", ""))
        file.writeframes(pcm_at(voices(QUESTION), RATE_HZ) + bytes(2 * RATE_HZ))
    return path


@pytest.mark.parametrize("name", [name for name, environment in PROGRAMS.items() if is_tried(environment)])
def test_it_completes(name: str, product: Product, recording: Path) -> None:
    program = Path(shutil.copy(Path(__file__).with_name("spoken") / name, recording.parent))

    with reached(name, product.address, recording.parent) as (address, variables):
        printed = run(program, PROGRAMS[name], address, product.keys["good"], recording.name, **variables)

    noted = json.loads(printed.splitlines()[-1])
    assert noted["problems"] == []
    assert word_errors(QUESTION, noted["heard"]) <= 1
    assert noted["words"] == REPLY
    assert noted["sound_ms"] > 1000
    assert noted.get("typed") in (None, "2 plus 2 is 4.")
