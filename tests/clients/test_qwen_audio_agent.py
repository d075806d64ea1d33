"""The realtime client of `qwen-audio-agent`, which brings instructions and functions of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.clients.conftest import QUESTION, Record
from tests.clients.environments import run
from tests.engines.speech import word_errors
from tests.realtime.product import Product


def test_qwen_audio_agent_talks(product: Product, record: Record) -> None:
    recording = record(16_000)
    program = Path(shutil.copy(Path(__file__).with_name("spoken") / "qwen_audio_agent.mjs", recording.parent))
    variables = {
        "QWEN_AUDIO_REALTIME_BASE_URL": f"ws://{product.address}/api-ws/v1/realtime",
        "QWEN_AUDIO_REALTIME_API_KEY": product.keys["good"],
    }

    noted = json.loads(run(program, "javascript", recording.name, **variables).splitlines()[-1])

    assert noted["problems"] == []
    assert word_errors(QUESTION, noted["heard"]) <= 1
    assert noted["typed"]
    assert noted["words"] or noted["called"], "its instructions and functions go to the small language model"
    assert noted["sound_ms"] > 1000
