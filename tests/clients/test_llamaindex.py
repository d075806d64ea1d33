"""LlamaIndex calls functions and binds replies to classes, with the language model that comes with the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.environments import run
from tests.realtime.product import Home, Product

ENVIRONMENT = "llamaindex"
LONDON = {"sky": "rain over London"}


@pytest.fixture
def product(home: Home, tmp_path: Path) -> Iterator[Product]:
    served = Product(home, tmp_path / "served", CHAT_MODEL_THREADS="1")
    yield served
    served.stop()


def test_functions_are_called_and_replies_bound(product: Product) -> None:
    program = Path(__file__).with_name("functions") / "llamaindex.py"

    told = json.loads(run(program, ENVIRONMENT, product.address, product.keys["good"]).splitlines()[-1])

    assert told["reply"] == told["streamed"] == "2 plus 2 is 4."
    assert json.loads(told["called"]) == LONDON
    assert told["insisted"] == {"get_weather": {"city": "London"}}
    assert (set(told["animal"]), told["animal"]["legs"] in (2, 4, 8)) == ({"name", "legs"}, True)
    assert told["agent"] == "sky: rain over London."
    assert told["asked"] == ["London", "London"]
