"""A spoken turn with each realtime client library of OpenAI's dialect, as its registry gives it: words come, sound
comes, and the library reports nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.clients.conftest import QUESTION, Record
from tests.clients.environments import is_tried, reached, run
from tests.engines.speech import word_errors
from tests.realtime.conftest import Serve
from tests.realtime.product import Product

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
MODELS = {"gpt-realtime": False, "voice": False, "own": True, "openai": True}
"""Whether a front passes each on: to a service in this server's dialect, and to one in OpenAI's."""


@pytest.fixture(scope="module")
def front(serve: Serve, product: Product) -> Product:
    """A server that passes sessions on to another, known as two services."""
    services = {
        "own": {"BASE_URL": product.origin},
        "openai": {"BASE_URL": f"{product.origin}/v1", "DIALECT": "openai"},
    }
    usual = {"API_KEY": product.keys["good"], "REALTIME_MODEL": "voice"}
    variables = {
        f"UPSTREAM_{alias.upper()}_{name}": value
        for alias, about in services.items()
        for name, value in {**usual, **about}.items()
    }
    return serve(UPSTREAM_SERVICES=",".join(services), **variables)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", [name for name, environment in PROGRAMS.items() if is_tried(environment)])
def test_it_completes(name: str, model: str, product: Product, front: Product, record: Record) -> None:
    recording = record(RATE_HZ)
    server = front if MODELS[model] else product
    program = Path(shutil.copy(Path(__file__).with_name("spoken") / name, recording.parent))

    with reached(name, server.address, recording.parent) as (address, variables):
        printed = run(program, PROGRAMS[name], address, server.keys["good"], recording.name, model, **variables)

    noted = json.loads(printed.splitlines()[-1])
    assert noted["problems"] == []
    assert word_errors(QUESTION, noted["heard"]) <= 1
    assert noted["words"] == REPLY
    assert noted["sound_ms"] > 1000
    assert noted.get("typed") in (None, "2 plus 2 is 4.")
